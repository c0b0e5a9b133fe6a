// The floor of the MQTT bridge: the minimum work of a program that publishes values at QoS 1 with libmosquitto. It publishes all topics
// once per period, and waits for the acknowledgements in between.
//
//   publish PORT DEVICES PROPERTIES SECONDS PERIOD
//
// The topics are those of the bridge, and the payloads have the size of its values. Prints one line of JSON.
#include "bench.h"
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <poll.h>

static uint64_t acknowledged;

static void on_publish(struct mosquitto *client, void *object, int id, int code, const mosquitto_property *properties) {
  (void)client, (void)object, (void)id, (void)properties;
  if (code >= 0x80) fprintf(stderr, "publish: the broker rejects a message: %s\n", mosquitto_reason_string(code)), exit(1);
  acknowledged++;
}

static void check(int code, const char *what) {
  if (code == MOSQ_ERR_SUCCESS) return;
  fprintf(stderr, "publish: %s: %s\n", what, mosquitto_strerror(code));
  exit(1);
}

// Reads and writes for at most this time, or until something has arrived.
static void exchange(struct mosquitto *client, int milliseconds) {
  struct pollfd polled = {mosquitto_socket(client), POLLIN | (mosquitto_want_write(client) ? POLLOUT : 0), 0};
  if (poll(&polled, 1, milliseconds) > 0 && polled.revents & ~POLLOUT) check(mosquitto_loop_read(client, 100), "read");
  if (mosquitto_want_write(client)) check(mosquitto_loop_write(client, 100), "write");
  check(mosquitto_loop_misc(client), "keep-alive");
}

int main(int count, char **arguments) {
  if (count != 6) return fprintf(stderr, "publish PORT DEVICES PROPERTIES SECONDS PERIOD\n"), 2;
  int devices = atoi(arguments[2]), properties = atoi(arguments[3]);
  int64_t length = atof(arguments[4]) * 1e9, period = atof(arguments[5]) * 1e9;
  mosquitto_lib_init();
  struct mosquitto *client = mosquitto_new("floor", true, NULL);
  if (!client) die("mosquitto_new");
  mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
  mosquitto_int_option(client, MOSQ_OPT_SEND_MAXIMUM, 65535);
  mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
  mosquitto_publish_v5_callback_set(client, on_publish);
  check(mosquitto_connect(client, "127.0.0.1", atoi(arguments[1]), 30), "connect");
  for (int64_t until = now() + 500000000; now() < until;) exchange(client, 50);

  int64_t begun = now(), cpu = own_cpu();
  uint64_t sent = 0;
  for (int64_t next = begun; next - begun < length; next += period) {
    while (now() < next) exchange(client, (next - now()) / 1000000 + 1);
    for (int device = 0; device < devices; device++)
      for (int property = 0; property < properties; property++, sent++) {
        char topic[64], payload[32];
        snprintf(topic, sizeof topic, "vehicled/car%02d/property-%02d", device, property);
        int bytes = snprintf(payload, sizeof payload, "%.2f", 100 + (sent * 7919 % 90000) / 100.0);
        check(mosquitto_publish_v5(client, NULL, topic, bytes, payload, 1, true, NULL), "publish");
      }
    while (acknowledged < sent) exchange(client, 100);
  }
  printf("{\"messages\":%lu,\"cpu\":%.3f,\"seconds\":%.3f}\n", acknowledged, (own_cpu() - cpu) / 1e3 / acknowledged, (now() - begun) / 1e9);
  return 0;
}
