"""Polls one request back to back with python-OBD; run it with the Python that has python-OBD.

  python_obd.py LINK REQUEST SECONDS      prints one line of JSON: replies, and their CPU time in seconds

Uses python-OBD's fast mode (the number of frames, and repetition by an empty line) and its decoders for engine speed and road speed."""
import json, sys, time

import obd
from obd import OBDCommand, decoders
from obd.protocols import ECU


class Part:
    """The bytes of one parameter in a reply, in the form that its decoder expects: after service and PID."""

    def __init__(self, data):
        self.data = data


def both(messages):
    data = messages[0].data  # 41 0C AA BB 0D CC
    return RPM([Part(data[0:4])]), decoders.uas(0x09)([Part(b"\x41" + data[4:6])])


RPM = decoders.uas(0x07)
link, request, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
connection = obd.OBD(link, baudrate=38400, protocol="6")
command = OBDCommand("FAST", "engine speed and road speed", request.encode(), 0, both, ECU.ENGINE, fast=True)
for _ in range(20):
    if connection.query(command, force=True).is_null():
        sys.exit("python-OBD gets no reply")
replies, began, used = 0, time.monotonic(), time.process_time()
while time.monotonic() - began < seconds:
    replies += not connection.query(command, force=True).is_null()
print(json.dumps({"replies": replies, "seconds": time.monotonic() - began, "cpu": time.process_time() - used}))
