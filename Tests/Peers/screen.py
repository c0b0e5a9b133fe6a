"""Shows a program's terminal output as text: runs it in a pseudo terminal, and renders what it writes with pyte.

    screen.py [--write] COLUMNSxROWS KEYS GOLDEN PROGRAM SOCKET COMMAND [ARGUMENT ...]

runs vehiclectl's COMMAND, types the KEYS, which are separated by spaces, and compares the screen with the file GOLDEN, or writes it. Behind
SOCKET is a fixed daemon: its devices, values and ages are always the same, so that the picture is too."""
import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import sys
import termios
import threading
import time

import pyte

# How often a picture that differs is taken again: a busy computer can show a value when it is a second older.
ATTEMPTS = 5


class Screen(pyte.Screen):
    """A screen that also knows the attribute dim, as the colour brightblack."""

    def select_graphic_rendition(self, *attributes, **options):
        super().select_graphic_rendition(*attributes, **options)
        if 2 in attributes:
            self.cursor.attrs = self.cursor.attrs._replace(fg="brightblack")


class Terminal:
    """A program in a pseudo terminal, and its screen."""

    def __init__(self, command, columns, rows, environment=None):
        self.screen = Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.bytes = 0
        self.first = None
        self.started = time.monotonic()
        self.process, self.master = pty.fork()
        if self.process == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(command[0], command, {**os.environ, "TERM": "xterm-256color", "TZ": "UTC", **(environment or {})})
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        """Renders the output of at most this time; False at its end."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.master], [], [], left)[0]:
                return True
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return False
            if not data:
                return False
            self.first = self.first or time.monotonic()
            self.bytes += len(data)
            self.stream.feed(data)
        return True

    def type(self, keys):
        os.write(self.master, keys.encode())

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def end(self):
        """Ends the program, and returns its exit status."""
        try:
            os.kill(self.process, signal.SIGTERM)
        except ProcessLookupError:
            pass
        while self.read(5):
            pass
        os.close(self.master)
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


def prop(name, group, rank, unit=None, type="float", low=None, high=None):
    declared = {"name": name, "type": type, "unit": unit, "minimum": low, "maximum": high, "writable": False, "motion": False, "help": name,
                "group": group, "rank": rank}
    return {key: value for key, value in declared.items() if value is not None}


CELLS = [[("?" if bank == 2 and cell == 7 else f"{3.80 + 0.02 * ((bank * 7 + cell * 3) % 11 == 0) + 0.02 * (cell == 20):.2f}") for cell in range(32)]
         for bank in range(6)]
# Each property with its value, or the reason why it has none, and its age in seconds.
EV = [
    (prop("rpm", "drive", 2, "rpm", "int"), 3308, 0), (prop("speed", "drive", 1, "km/h"), 50.4, 0),
    (prop("regenerating", "drive", 2, type="bool"), True, 0), (prop("odometer", "drive", 2, "km"), 12345.6, 200),
    (prop("gear", "drive", 2, type="string"), "D", 0), (prop("pedal-position", "drive", 2, "%", low=0, high=100), 37.5, 0),
    (prop("wheel-speed-front-left", "drive", 3, "km/h"), "not known yet", 0),
    (prop("state-of-charge-display", "battery", 1, "%", low=0, high=100), 78.5, 0),
    (prop("battery-power", "battery", 1, "kW"), -12.4, 0), (prop("battery-voltage", "battery", 2, "V"), 697.2, 0),
    (prop("battery-current", "battery", 2, "A"), -17.8, 0), (prop("state-of-health", "battery", 2, "%", low=0, high=100), 100, 200),
    (prop("available-charge-power", "battery", 3, "kW"), 180.5, 30_000), (prop("charging", "battery", 2, type="bool"), False, 0),
    (prop("module-temperature-1", "temperatures", 3, "°C"), 21, 0), (prop("battery-max-temperature", "temperatures", 2, "°C"), 23, 0),
    (prop("coolant-temperature", "temperatures", 2, "°C"), "not reported by this car", 0),
    (prop("tyre-pressure-front-left", "tyres", 2, "kPa"), 245, 200), (prop("tyre-pressure-front-right", "tyres", 2, "kPa"), 250, 200),
    (prop("aux-battery-voltage", "body", 2, "V"), 14.1, 0), (prop("aux-battery-charge", "body", 2, "%", low=0, high=100), 87, 0),
    (prop("mil", "diagnostics", 2, type="bool"), True, 200), (prop("dtc-count", "diagnostics", 2, type="int"), 2, 200),
    (prop("vin", "identity", 2, type="string"), "KMHKN81AFNU012345", 30_000), (prop("poll-rate", "statistics", 3, "Hz"), 20, 0),
    (prop("round-trip", "statistics", 4, "ms"), 31.5, 0), (prop("adapter", "adapter", 2, type="string"), "ELM327 v1.5", 30_000),
    (prop("cell-voltage-max", "cells", 2, "V"), 3.84, 0), (prop("cell-voltage-min", "cells", 2, "V"), 3.8, 0),
] + [(prop(f"cells-{bank * 32 + 1}-{bank * 32 + 32}", "cells", 3, "V", "list"), CELLS[bank], 0) for bank in range(6)]
DEVICES = [
    ("ev", "obd", "polling", "tcp:192.168.0.10:35000", None, EV),
    ("torq", "longboard", "ready", "ble:Torq", None, [
        (prop("speed", "drive", 1, "km/h"), 0, 0), (prop("battery", "battery", 1, "%", low=0, high=100), 15, 0),
        (prop("mode", "drive", 2, type="string"), "eco", 0)]),
    ("rover", "rc-car", "ready", "tcp:rover:12345", None, [
        (prop("running", "drive", 1, type="bool"), False, 0), (prop("motor-battery-voltage", "battery", 1, "V"), 7.4, 0)]),
    ("mirror", "mirror", "down", "ble:Mirror", "no advertisement received", [(prop("led", "settings", 1, "%", low=0, high=100), "link down: no advertisement received", 0)]),
    ("home", "weather", "ready", None, None, [
        (prop("temperature", "weather", 1, "°C"), 11.5, 200), (prop("condition", "weather", 1, type="string"), "light rain", 200)]),
    ("golf", "obd", "parked", "tcp:192.168.0.11:35000", None, [
        (prop(name, group, rank, unit), "the vehicle has not been used for 600 s: it is polled every 30 s", 0)
        for name, group, rank, unit in [("speed", "drive", 1, "km/h"), ("rpm", "engine", 1, "rpm"), ("engine-load", "engine", 2, "%"),
                                        ("fuel-level", "engine", 1, "%"), ("coolant-temperature", "temperatures", 2, "°C")]] + [
        (prop("adapter-voltage", "adapter", 2, "V"), 12.345678, 0)]),
]
FAULTS = {"golf": "the vehicle has not been used for 600 s: it is polled every 30 s"}
# The log of each device: level, link, message. All records are of one time.
LOG = {"ev": [("notice", "main", "link is up: tcp:192.168.0.10:35000"), ("notice", None, "vehicle detected: electric Hyundai or Kia (e-gmp)"),
              ("warning", "main", "no reply to 220101 within 200 ms")]}
LOGGED_AT = 1_577_934_245_000_000
# The last minute of the numbers that change, one value a second, the oldest first.
CURVES = {"speed": lambda t: 50.4 + (59 - t) * 0.5 if t > 20 else 70 - t, "battery-power": lambda t: -12.4 + 3 * (59 - t) ** 0.7,
          "rpm": lambda t: 3308 + 40 * ((59 - t) % 12), "battery-voltage": lambda t: 697.2 - (59 - t) * 0.2,
          "pedal-position": lambda t: 37.5 if t > 50 else 0}


def value(of):
    kind = {bool: "bool", int: "int", float: "float", str: "string", list: "list"}[type(of)]
    return {kind: of}


def reading(device, declared, content, age):
    made = {"device": device, "property": declared["name"], "time": int((time.time() - age) * 1e6)}
    if "unit" in declared:
        made["unit"] = declared["unit"]
    if isinstance(content, str) and declared["type"] != "string":
        return {**made, "reason": content}
    return {**made, "value": value(float(content) if declared["type"] == "float" else content), "age": float(age)}


def snapshot():
    made = []
    for name, kind, state, url, problem, rows in DEVICES:
        link = {"name": "main", "url": url, "state": "down" if problem else "up", "since": int((time.time() - 3630) * 1e6)}
        if problem:
            link["reason"] = problem
        made.append({"name": name, "kind": kind, "state": state, "links": [link] if url else [], "readings": [reading(name, *row) for row in rows],
                     **({"fault": FAULTS[name]} if name in FAULTS else {})})
    return made


def serve(path, stop):
    """The fixed daemon: Describe, and Watch with a snapshot, the last minute, and every half second the current values."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()

    def send(connection, parameters, **more):
        connection.sendall(json.dumps({"parameters": parameters, **more}).encode() + b"\0")

    def changes(connection, sequence, readings):
        send(connection, {"sequence": sequence, "changes": readings}, **{"continues": True})

    def client(connection):
        data = b""
        while b := connection.recv(65536):
            data += b
            while b"\0" in data:
                message, data = data.split(b"\0", 1)
                call = json.loads(message)
                method, device = call["method"].split(".")[-1], call.get("parameters", {}).get("device")
                if method == "Describe":
                    send(connection, {"schemas": [{"device": name, "kind": kind, "properties": [row[0] for row in rows], "actions": []}
                                                  for name, kind, _, _, _, rows in DEVICES]})
                elif method == "Status":
                    send(connection, {"devices": [one for one in snapshot() if device in (None, one["name"])]})
                elif method == "Log":
                    send(connection, {"records": [{"time": LOGGED_AT, "level": level, "device": device, "message": text, **({"link": link} if link else {})}
                                                  for level, link, text in LOG.get(device, [])]})
                elif method == "Watch":
                    send(connection, {"sequence": 0, "snapshot": snapshot()}, **{"continues": True})
                    rows = {row[0]["name"]: row for row in EV}
                    past = [reading("ev", rows[name][0], int(curve(t)) if name == "rpm" else float(curve(t)), 59.5 - t)
                            for t in range(59) for name, curve in CURVES.items()]
                    changes(connection, 1, past)
                    sequence = 2
                    while not stop.is_set():
                        changes(connection, sequence, [reading(name, *row) for name, _, _, _, _, rows in DEVICES for row in rows if row[2] == 0])
                        sequence += 1
                        stop.wait(0.5)

    def guarded(connection):
        try:
            client(connection)
        except OSError:
            pass

    while not stop.is_set():
        connection, _ = listener.accept()
        threading.Thread(target=guarded, args=(connection,), daemon=True).start()


def picture(command, columns, rows, keys, wanted):
    """The lines of the screen once they are the wanted ones, or after three seconds. A view shows how to quit; other commands end."""
    terminal = Terminal(command, columns, rows)
    while not any("quit" in line for line in terminal.lines()):
        if not terminal.read(0.05) or time.monotonic() - terminal.started > 10:
            break
    for key in keys:
        terminal.type(key)
        terminal.read(0.15)
    end = time.monotonic() + (3 if wanted else 0.4)
    while time.monotonic() < end and terminal.lines() != wanted:
        if not terminal.read(0.05):
            break
    lines = terminal.lines()
    return lines, terminal


def main():
    arguments = sys.argv[1:]
    writes = arguments[0] == "--write"
    size, keys, golden, program, path, *called = arguments[1:] if writes else arguments
    columns, rows = map(int, size.split("x"))
    stop = threading.Event()
    threading.Thread(target=serve, args=(path, stop), daemon=True).start()
    while not os.path.exists(path):
        time.sleep(0.01)
    command = [program, "--socket", path, "--color", "always", *called]
    keys = [{"space": " ", "tab": "\t"}.get(key, key) for key in keys.split()]
    wanted = None if writes else open(golden, encoding="utf-8").read().split("\n")[:-1]
    for _ in range(1 if writes else ATTEMPTS):
        lines, terminal = picture(command, columns, rows, keys, wanted)
        terminal.end()
        if lines == wanted:
            print("same")
            return
    if writes:
        with open(golden, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        print("\n".join(lines))
        return
    print("\n".join(lines))
    sys.exit(f"the screen differs from {golden}")


if __name__ == "__main__":
    main()
