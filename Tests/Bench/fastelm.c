// A fast adapter on TCP for benchmarks: any number of connections, one thread, immediate replies. Each connection is an ELM327 or, if it
// sends slcan, a CAN adapter. Supports the set-up commands of vehicled and the battery record (220101), and counts requests. Over slcan, any
// other request of service 22 has a reply of one frame, and the requests to each ECU are counted like those of a connection of its own.
//
//   fastelm [HZ [MS [INTERFACE]]]   prints its port; HZ (20) is the grid that lateness and missed polls are measured against; over slcan, an
//                                   ECU answers after MS (0); with the name of a CAN interface, the ECUs are on this bus, too, without delay
//
// SIGUSR1 prints one line of JSON about the time since SIGUSR2; SIGTERM ends it. Reply n of a connection carries the
// motor speed 7n mod 10000, so every reply differs from the one before.
#include "bench.h"
#include <linux/can.h>
#include <linux/can/raw.h>
#include <net/if.h>

enum { TIMES = 1 << 14, FRAMES = 9 };

struct Connection {
  int descriptor, length;
  struct Connection *bus;  // counts the requests to one ECU on the bus of this connection; NULL for a connection itself
  unsigned ecu;
  int timer, due;          // delays the replies of ECUs: the timer, and the bytes in `delayed`
  char delayed[64];
  char command[32];
  char echo, spaces, headers, feeds;
  unsigned replies, polls;  // since the connection, since the last reset
  int64_t *times;           // times of polls since the last reset
  struct Connection *next;
};

static int poller;
static struct Connection *connections;
static unsigned lost;
static int64_t begun, cpu_begun;
static double period = 1e9 / 20;
static long delay_ns;

// The reply of an E-GMP car: 3 bytes that echo the request, then the record. Big endian.
static unsigned char page[62] = {
    0x62, 0x01, 0x01, 0xEF, 0xFB, 0xE7, 0xEF, 152,                // field mask; state of charge 76 %
    0x46, 0x50, 0x61, 0xA8, 0x00, 0x01, 0x2C, 0x1B, 0x58,         // powers, status, 30.0 A, 700.0 V
    24, 22, 23, 22, 23, 24, 22, 0, 21, 195, 19, 194, 113, 0, 0, 128,  // °C, 3.90 V in cell 19, 3.88 V in cell 113, 12.8 V
    0, 0, 0x7C, 0x60, 0, 0, 0x76, 0x34, 0, 0, 0x56, 0x54, 0, 0, 0x50, 0x64,  // charge and energy, in and out
    0, 0x23, 0x1E, 0x16, 0, 0x02, 0xBC, 0, 0, 0, 0, 0x0B, 0xB8};  // seconds, ignition, 700 V, two motors, 3000 kOhm

static char *put_hex(char *out, const unsigned char *bytes, int count, int spaces) {
  for (int i = 0; i < count; i++) {
    *out++ = "0123456789ABCDEF"[bytes[i] >> 4];
    *out++ = "0123456789ABCDEF"[bytes[i] & 15];
    if (spaces) *out++ = ' ';
  }
  return out;
}

static char *end_line(const struct Connection *c, char *out) {
  *out++ = '\r';
  if (c->feeds) *out++ = '\n';
  return out;
}

// The record as ISO-TP frames with headers, or as numbered lines after its length.
static char *put_page(struct Connection *c, char *out) {
  unsigned speed = 7 * c->replies++ % 10000;
  page[56] = speed >> 8;
  page[57] = speed;
  if (!c->headers) out = end_line(c, out + sprintf(out, "%03X", (unsigned)sizeof page));
  for (int frame = 0, at = 0; frame < FRAMES; frame++) {
    unsigned char bytes[8] = {0x20 | (frame & 15)};
    int head = frame ? 1 : 2, take = 8 - head < (int)sizeof page - at ? 8 - head : (int)sizeof page - at;
    if (!frame) memcpy(bytes, (unsigned char[]){0x10, sizeof page}, 2);
    memcpy(bytes + head, page + at, take);
    at += take;
    if (c->headers) {
      memcpy(out, "7EC ", 4);
      out = put_hex(out + 3 + c->spaces, bytes, 8, c->spaces);
    } else {
      *out++ = "0123456789ABCDEF"[frame & 15];
      memcpy(out, ": ", 2);
      out = put_hex(out + 1 + c->spaces, bytes + head, 8 - head, c->spaces);
    }
    out = end_line(c, out);
  }
  return out;
}

static void switch_to(char *what, char digit) { if (digit == '0' || digit == '1') *what = digit == '1'; }

static void power_up(struct Connection *c) { c->echo = c->spaces = 1, c->headers = c->feeds = 0; }

static void count_poll(struct Connection *c) {
  if (c->polls < TIMES) c->times[c->polls] = now();
  c->polls++;
}

static void send_text(struct Connection *c, const char *text, size_t count) {
  if (write(c->descriptor, text, count) != (ssize_t)count) return;
}

static void answer(struct Connection *c) {
  char text[1024], *out = text, *command = c->command;
  if (c->echo) out += sprintf(out, "%s\r", command);
  if (!strcmp(command, "220101") || !strcmp(command, "2201019")) {
    count_poll(c);
    out = put_page(c, out);
  } else {
    const char *words = "?";
    int is_at = !strncmp(command, "AT", 2);
    if (is_at) {
      words = command[2] == 'Z' || command[2] == 'I' ? "ELM327 v1.5" : "OK";
      if (command[2] == 'Z') power_up(c);
      if (command[2] == 'E') switch_to(&c->echo, command[3]);
      if (command[2] == 'S') switch_to(&c->spaces, command[3]);
      if (command[2] == 'H') switch_to(&c->headers, command[3]);
      if (command[2] == 'L') switch_to(&c->feeds, command[3]);
    } else if (*command && strspn(command, "0123456789ABCDEF") == strlen(command)) {
      words = "NO DATA";
    }
    out = end_line(c, out + sprintf(out, "%s", words));
  }
  out = end_line(c, out);
  *out++ = '>';
  send_text(c, text, out - text);
}

static struct Connection *add_connection(struct Connection connection) {
  struct Connection *c = malloc(sizeof *c);
  *c = connection;
  c->times = malloc(TIMES * sizeof *c->times);
  c->next = connections;
  return connections = c;
}

// The counter of the requests to this ECU.
static struct Connection *ecu_on(struct Connection *bus, unsigned ecu) {
  for (struct Connection *c = connections; c; c = c->next)
    if (c->bus == bus && c->ecu == ecu) return c;
  return add_connection((struct Connection){.descriptor = -1, .timer = -1, .bus = bus, .ecu = ecu});
}

// Sends the acknowledgement of the adapter, and the frame of an ECU after the delay. One ECU answers at a time.
static void send_later(struct Connection *c, const char *text, int count) {
  if (!delay_ns) return send_text(c, text, count);
  send_text(c, text, 2);
  c->due = count - 2;
  memcpy(c->delayed, text + 2, c->due);
  timerfd_settime(c->timer, 0, &(struct itimerspec){.it_value.tv_nsec = delay_ns}, NULL);
}

// Frame `frame` of the record; the bytes are 0 before.
static void fill_frame(unsigned char bytes[8], int frame) {
  int head = frame ? 1 : 2, at = frame ? 7 * frame - 1 : 0, take = 8 - head < (int)sizeof page - at ? 8 - head : (int)sizeof page - at;
  bytes[0] = 0x20 | (frame & 15);
  if (!frame) memcpy(bytes, (unsigned char[]){0x10, sizeof page}, 2);
  memcpy(bytes + head, page + at, take);
}

// The same as a line of slcan.
static char *put_frame(char *out, int frame) {
  unsigned char bytes[8] = {0};
  fill_frame(bytes, frame);
  memcpy(out, "t7EC8", 5);
  out = put_hex(out + 5, bytes, 8, 0);
  *out++ = '\r';
  return out;
}

static void begin_page(struct Connection *c) {
  unsigned speed = 7 * c->replies++ % 10000;
  page[56] = speed >> 8;
  page[57] = speed;
  count_poll(c);
}

// Answers a line of slcan: a command to the adapter, or a frame to an ECU, which the adapter acknowledges. Without a delay, what follows at
// once is sent together with the acknowledgement, as adapters on USB do.
static void answer_slcan(struct Connection *c) {
  char text[1024] = "z\r", *out = text + 2, *command = c->command;
  if (*command != 't') return send_text(c, text, sprintf(text, "%s\r", *command == 'V' ? "V1013" : *command == 'F' ? "F00" : ""));
  unsigned ecu, did;
  if (!strncmp(command, "t7E4803220101", 13)) {
    begin_page(c);
    out = put_frame(out, 0);
    send_later(c, text, out - text);
  } else if (!strncmp(command, "t7E4830", 7)) {
    for (int frame = 1; frame < FRAMES; frame++) out = put_frame(out, frame);
    send_text(c, text, out - text);
  } else if (sscanf(command, "t%3x80322%4x", &ecu, &did) == 2) {
    struct Connection *counter = ecu_on(c, ecu);
    count_poll(counter);
    out += sprintf(out, "t%03X80462%04X%02X000000\r", ecu + 8, did, counter->replies++ & 0x7F);
    send_later(c, text, out - text);
  } else {
    send_text(c, text, 2);
  }
}

// Answers a frame on the bus of a CAN interface. Consecutive frames are sent together, as over slcan.
static void answer_frame(struct Connection *c) {
  struct can_frame in, out[FRAMES] = {0};
  struct iovec parts[FRAMES];
  struct mmsghdr messages[FRAMES] = {0};
  int count = 0;
  if (read(c->descriptor, &in, sizeof in) != sizeof in || in.len < 4) return;
  if (in.can_id == 0x7E4 && !memcmp(in.data, "\x03\x22\x01\x01", 4)) {
    begin_page(c);
    fill_frame(out[count++].data, 0);
  } else if (in.can_id == 0x7E4 && in.data[0] == 0x30) {
    for (int frame = 1; frame < FRAMES; frame++) fill_frame(out[count++].data, frame);
  } else if (in.data[0] == 3 && in.data[1] == 0x22) {
    struct Connection *counter = ecu_on(c, in.can_id);
    count_poll(counter);
    memcpy(out[count++].data, (unsigned char[]){4, 0x62, in.data[2], in.data[3], counter->replies++ & 0x7F}, 5);
  }
  for (int i = 0; i < count; i++) {
    out[i].can_id = in.can_id + 8;
    out[i].len = 8;
    parts[i] = (struct iovec){&out[i], sizeof out[i]};
    messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
  }
  if (count > 0 && sendmmsg(c->descriptor, messages, count, 0) != count) return;
}

// Sends what was delayed.
static void answer_late(struct Connection *c) {
  uint64_t expirations;
  if (read(c->timer, &expirations, sizeof expirations) == sizeof expirations) send_text(c, c->delayed, c->due);
}

static int is_slcan(const char *command) {
  return *command == 't' || (*command && strchr("CVOFS", *command) && strlen(command) <= 2);
}

static void forget(struct Connection *c) {
  struct Connection **place = &connections;
  while (*place != c) place = &(*place)->next;
  *place = c->next;
  free(c->times);
  free(c);
}

static void hang_up(struct Connection *c) {
  for (struct Connection *other = connections, *next; other; other = next) {
    next = other->next;
    if (other->bus == c) forget(other);
  }
  close(c->descriptor);
  close(c->timer);
  forget(c);
  lost++;
}

static void take(struct Connection *c) {
  char bytes[256];
  ssize_t count = read(c->descriptor, bytes, sizeof bytes);
  if (count <= 0) return hang_up(c);
  for (ssize_t i = 0; i < count; i++) {
    if (bytes[i] == '\r') {
      c->command[c->length] = 0;
      c->length = 0;
      if (is_slcan(c->command)) answer_slcan(c);
      else answer(c);
    } else if (bytes[i] > ' ' && c->length < (int)sizeof c->command - 1) {
      c->command[c->length++] = bytes[i];
    }
  }
}

static void welcome(int listener) {
  int descriptor = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  if (descriptor < 0) return;
  struct Connection *c = add_connection((struct Connection){.descriptor = descriptor, .timer = -1});
  power_up(c);
  no_delay(descriptor);
  add_to(poller, descriptor, c);
  if (!delay_ns) return;
  c->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  add_to(poller, c->timer, (void *)((uintptr_t)c | 1));
}

// Listens to the requests to ECUs on this interface.
static struct Connection *join_bus(const char *interface) {
  int descriptor = socket(AF_CAN, SOCK_RAW | SOCK_CLOEXEC, CAN_RAW);
  struct sockaddr_can address = {.can_family = AF_CAN, .can_ifindex = if_nametoindex(interface)};
  struct can_filter filter = {.can_id = 0x700, .can_mask = 0x708 | CAN_EFF_FLAG | CAN_RTR_FLAG};
  if (descriptor < 0 || !address.can_ifindex || setsockopt(descriptor, SOL_CAN_RAW, CAN_RAW_FILTER, &filter, sizeof filter) ||
      bind(descriptor, (void *)&address, sizeof address))
    die(interface);
  struct Connection *c = add_connection((struct Connection){.descriptor = descriptor, .timer = -1});
  add_to(poller, descriptor, c);
  return c;
}

static void reset(void) {
  for (struct Connection *c = connections; c; c = c->next) c->polls = 0;
  lost = 0;
  begun = now();
  cpu_begun = own_cpu();
}

// Slots without a poll in a gap that no poll ends or begins.
static unsigned slots_in(double gap) { return gap > period * 1.5 ? (unsigned)(gap / period - 0.5) : 0; }

// Lateness is relative to the grid that fits best, on which no poll is early. Drift is the offset between the grids of a connection's
// second and first half.
static void report(void) {
  size_t polls = 0, known = 0, count = 0;
  unsigned missed = 0, extra = 0, open = 0;
  double drift = 0, seconds = (now() - begun) / 1e9;
  for (struct Connection *c = connections; c; c = c->next) polls += c->polls, open += c->descriptor >= 0, known += c->polls < TIMES ? c->polls : TIMES;
  double *late = malloc((known + 1) * sizeof *late);
  for (struct Connection *c = connections; c; c = c->next) {
    size_t times = c->polls < TIMES ? c->polls : TIMES;
    if (times == 0) missed += seconds * 1e9 / period;
    if (times == 0 || c->polls > TIMES) continue;
    double least[2] = {0, 0}, slot = 0, *mine = late + count;
    for (size_t i = 0; i < times; i++) {
      if (i) {
        long step = (c->times[i] - c->times[i - 1]) / period + 0.5;
        if (step > 1) missed += step - 1;
        if (step < 1) extra++;
        slot += step;
      }
      mine[i] = c->times[i] - c->times[0] - slot * period;
      int half = i * 2 >= times;
      if (mine[i] < least[half] || i * 2 == times || i * 2 == times + 1) least[half] = mine[i];
    }
    missed += slots_in(c->times[0] - begun) + slots_in(now() - c->times[times - 1]);
    double base = least[0] < least[1] ? least[0] : least[1];
    for (size_t i = 0; i < times; i++) mine[i] = (mine[i] - base) / 1e3;
    if ((least[1] - least[0]) / 1e3 > drift) drift = (least[1] - least[0]) / 1e3;
    count += times;
  }
  printf("{\"polls\":%zu,\"connections\":%u,\"lost\":%u,\"seconds\":%.3f,\"rate\":%.1f,\"missed\":%u,\"extra\":%u,", polls, open, lost, seconds,
         polls / seconds, missed, extra);
  print_percentiles("late", late, count);
  printf("\"drift\":%.1f,\"own_cpu\":%.6f}\n", drift, (own_cpu() - cpu_begun) / 1e9);
  fflush(stdout);
  free(late);
}

int main(int count, char **arguments) {
  if (count > 1) period = 1e9 / atof(arguments[1]);
  if (count > 2) delay_ns = atof(arguments[2]) * 1e6;
  raise_descriptor_limit();
  signal(SIGPIPE, SIG_IGN);
  poller = epoll_create1(EPOLL_CLOEXEC);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = loopback(0);
  if (bind(listener, (void *)&address, sizeof address) || listen(listener, 4096)) die("listen");
  getsockname(listener, (void *)&address, &(socklen_t){sizeof address});
  int told = signals((int[]){SIGUSR1, SIGUSR2, SIGTERM, SIGINT}, 4);
  add_to(poller, listener, &listener);
  add_to(poller, told, &told);
  struct Connection *bus = count > 3 ? join_bus(arguments[3]) : NULL;
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  reset();
  for (;;) {
    struct epoll_event events[256];
    int ready = epoll_wait(poller, events, 256, -1);
    for (int i = 0; i < ready; i++) {
      void *owner = events[i].data.ptr;
      if (owner == &listener) {
        welcome(listener);
      } else if ((uintptr_t)owner & 1) {
        // A timer, unless its connection was closed in this turn.
        for (struct Connection *c = connections; c; c = c->next)
          if (c == (void *)((uintptr_t)owner - 1)) answer_late(c);
      } else if (owner == &told) {
        struct signalfd_siginfo signal;
        if (read(told, &signal, sizeof signal) != sizeof signal) continue;
        if (signal.ssi_signo == SIGUSR1) report();
        else if (signal.ssi_signo == SIGUSR2) reset();
        else return 0;
      } else if (owner == bus) {
        answer_frame(bus);
      } else {
        take(owner);
      }
    }
  }
}
