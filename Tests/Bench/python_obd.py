"""python-OBD asks one request back to back, as fast as it can; run by the Python that has it.

  python_obd.py LINK REQUEST SECONDS      prints one line of JSON: replies, and the CPU seconds they took

It repeats the request by an empty line and gives the number of frames (its fast mode), and reads each reply into engine
speed and road speed with its own decoders."""
import json, sys, time

import obd
from obd import OBDCommand, decoders
from obd.protocols import ECU


class Part:
    """One parameter's bytes of an answer, as its decoder wants them: behind the service and the number."""

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
        sys.exit("python-OBD gets no answer")
replies, began, used = 0, time.monotonic(), time.process_time()
while time.monotonic() - began < seconds:
    replies += not connection.query(command, force=True).is_null()
print(json.dumps({"replies": replies, "seconds": time.monotonic() - began, "cpu": time.process_time() - used}))
