"""Measures the full-screen view of vehiclectl: CPU, bytes to the terminal, and the time to the first frame.

    screen.py DIRECTORY-OF-THE-PROGRAMS [SECONDS]

Six devices with 504 properties in all, of which every one changes in every update, ten updates a second: what the daemon sends at most for
values that are polled at 20 Hz, because it merges the changes of 100 ms. The terminal has 120 columns and 40 rows. Needs the package pyte."""
import json
import math
import os
import socket
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Peers"))
from screen import Terminal, prop  # noqa: E402

DEVICES, PROPERTIES, PERIOD = 6, 84, 0.1
MARKS = {"cpu": 5.0, "kilobytes": 30.0, "first": 50.0}
GROUPS = ["drive", "battery", "temperatures", "tyres", "body"]
NAMES = [f"value-{number}" for number in range(PROPERTIES)]


def schema(device):
    rows = [prop(name, GROUPS[number * len(GROUPS) // PROPERTIES], 1 if number < 3 else 2, "km/h" if number % 2 else "%", low=0, high=100)
            for number, name in enumerate(NAMES)]
    return {"device": device, "kind": "obd", "properties": rows, "actions": []}


def readings(device, tick):
    now = int(time.time() * 1e6)
    return [{"device": device, "property": name, "value": {"float": round(50 + 50 * math.sin(tick / 20 + number), 1)}, "time": now, "age": 0.01,
             "unit": "km/h" if number % 2 else "%"} for number, name in enumerate(NAMES)]


def serve(listener):
    names = [f"device-{number}" for number in range(DEVICES)]

    def send(connection, parameters, more=True):
        connection.sendall(json.dumps({"parameters": parameters, **({"continues": True} if more else {})}, separators=(",", ":")).encode() + b"\0")

    def client(connection):
        data = b""
        try:
            while received := connection.recv(65536):
                *messages, data = (data + received).split(b"\0")
                for message in messages:
                    if b"Describe" in message:
                        send(connection, {"schemas": [schema(name) for name in names]}, more=False)
                    else:
                        link = {"name": "main", "url": "tcp:127.0.0.1:1", "state": "up", "since": int(time.time() * 1e6)}
                        send(connection, {"sequence": 0, "snapshot": [
                            {"name": name, "kind": "obd", "state": "polling", "links": [link], "readings": readings(name, 0)} for name in names]})
                        sequence, due = 1, time.monotonic()
                        while True:
                            for name in names:
                                send(connection, {"sequence": sequence, "changes": readings(name, sequence)})
                                sequence += 1
                            due += PERIOD
                            time.sleep(max(0, due - time.monotonic()))
        except OSError:
            pass

    while True:
        threading.Thread(target=client, args=(listener.accept()[0],), daemon=True).start()


def cpu(process):
    fields = open(f"/proc/{process}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    program = f"{sys.argv[1]}/vehiclectl"
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20
    with tempfile.TemporaryDirectory() as directory:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{directory}/socket")
        listener.listen()
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        command = [program, "--socket", f"{directory}/socket", "--color", "always", "watch"]
        firsts = []
        for _ in range(11):
            terminal = Terminal(command, 120, 40)
            while terminal.first is None:
                terminal.read(0.005)
            firsts.append((terminal.first - terminal.started) * 1000)
            terminal.end()
        terminal = Terminal(command, 120, 40)
        terminal.read(2)
        before, sent, start = cpu(terminal.process), terminal.bytes, time.monotonic()
        terminal.read(seconds)
        length = time.monotonic() - start
        measured = {"cpu": (cpu(terminal.process) - before) / length * 100, "kilobytes": (terminal.bytes - sent) / length / 1000,
                    "first": statistics.median(firsts)}
        terminal.end()
    units = {"cpu": "% of a core", "kilobytes": "kB/s to the terminal", "first": "ms from exec to the first frame (median of 11)"}
    for name, mark in MARKS.items():
        print(f"{'ok  ' if measured[name] <= mark else 'FAIL'} {measured[name]:6.1f} {units[name]}, at most {mark:g}")
    sys.exit(any(measured[name] > mark for name, mark in MARKS.items()))


if __name__ == "__main__":
    main()
