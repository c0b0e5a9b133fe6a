// libmosquitto, the MQTT client library.
#include <mosquitto.h>
#include <mqtt_protocol.h>
