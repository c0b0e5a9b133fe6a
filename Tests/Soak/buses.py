"""The devices on a CAN bus: a car that is asked through a slcan adapter, and a bus that is only listened to."""
import os, subprocess

import truth
from house import Line, free_ports, now
from simulator import Simulator

ECUS = ["lost-frame:40", "wrong-sequence:40", "nrc-78:20:300", "nrc:12:40", "no-data:25", "no-broadcasts", "bus-off:150:2000", "babble",
        "garbage:30"]
BROKEN = ["no-traffic", "rejects-listening"]
# Three cycle times of each message, but at least 0.3 s; the age of a value that does not change is updated once a second. A client does
# not know which values change, and allows this second for all.
SIGNALS = {"engine-speed": 0.3, "throttle": 1.3, "vehicle-speed": 0.3, "gear": 1.3, "coolant-temperature": 3.0}


class Listener(Simulator):
    """A simulated bus, whose cycle begins when its channel is first opened on a connection."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.openings = []  # the times of each command, and of the first frame after it
        self.is_new = False
        self.line.heard, self.line.connected = self.passed_on, self.connected

    def connected(self):
        self.is_new = True

    def passed_on(self, is_daemons, data):
        if is_daemons and self.is_new and (b"L\r" in data or b"O\r" in data):
            self.openings.append([now(), None])
            self.is_new = False
        elif not is_daemons and self.openings and self.openings[-1][1] is None and b"t0C9" in data:
            self.openings[-1][1] = now()

    def moments(self, at, slack):
        if not super().moments(at, slack):
            return []
        first, found = self.earliest(at, slack), []
        for index, (asked, begun) in enumerate(self.openings):
            replaced = self.openings[index + 1][0] if index + 1 < len(self.openings) else at
            # Times can be rounded down.
            if asked <= at + 0.05 and at <= replaced + 0.5 + slack:
                found.append((max(0, first - (begun or at)), max(0, at + 0.2 - asked)))
        return found


def write_signals(house):
    """Writes the signals of the simulated bus, as a user would."""
    os.mkdir(house.path("signals.d"))
    with open(house.path("bus.dbc"), "w") as file:
        subprocess.run([house.binaries / "vehiclesim", "dbc"], stdout=file, check=True)
    subprocess.run([house.binaries / "vehiclectl", "import", house.path("bus.dbc"), "--output", house.path("signals.d/bus.toml")],
                   capture_output=True, check=True)


def add_buses(house, add, linked, values, counters):
    write_signals(house)
    line = Line(free_ports(1))
    add("slcan", f'kind = "obd"\nlink = "slcan:tcp:127.0.0.1:{line.port}"',
        Simulator(house, "slcan", "obd", line=line, scheme="slcan:"), lively=values,
        known=truth.electric(78.9, "KNAC381AVN5000042"), faults=(*linked, "cut", "shut", "key"), rough=ECUS, growing=counters,
        variants=("rate = 20", "rate = 10"))
    line = Line(free_ports(1))
    add("bus", f'kind = "can"\nlink = "slcan:tcp:127.0.0.1:{line.port}"\nbit-rate = 500000',
        Listener(house, "bus", "can", line=line, scheme="slcan:"), states=("listening",), lively=SIGNALS, declared=1.0, known=truth.bus,
        faults=("kill", "end", "stop", "stop", "cut", "shut", "broken", "disconnect", "reconfigure"), broken=BROKEN,
        variants=("", "record = true"), growing=("bad-messages",))
