"""ble: the cost of a link through BlueZ compared with TCP, for the same simulated adapter: a mock BlueZ on a private message bus, with the
sockets of AcquireNotify and AcquireWrite.
vesc: the cost of a VESC polled at 50 Hz compared with an OBD adapter at the same rate, both simulated, over TCP."""
import json, os, shutil, subprocess, time
from contextlib import contextmanager

import rig
from rig import Daemon, Trouble, cpu, end, last_words, memory, start
from verdict import judge, median, show


@contextmanager
def simulator(name, peer, options=("--instant",)):
    """vehiclesim over TCP or on a message bus: its link, and the daemon's environment."""
    place, environment, bus = "tcp:127.0.0.1:0", {}, None
    if name == "ble":
        address = f"unix:path={rig.folder}/bus"
        bus = start(["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address", f"--address={address}"], "bus", stdout=subprocess.PIPE)
        bus.stdout.readline()
        place, environment = f"ble:{address}", {"DBUS_SYSTEM_BUS_ADDRESS": address}
    command = [rig.binaries / "vehiclesim", peer, "--on", place, *options] + (["--mtu", "247"] if name == "ble" else [])
    process = start(command, "vehiclesim", rig.same, stdout=subprocess.PIPE)
    try:
        link = process.stdout.readline().strip()
        if not link:
            raise Trouble(f"cannot start vehiclesim: {last_words(process)}")
        yield link, environment
    finally:
        end(process)
        if bus:
            end(bus)  # it removes its socket


def values(daemon, *names):
    command = [rig.binaries / "vehiclectl", "get", "--json", *[f"a0.{name}" for name in names]]
    reply = subprocess.run(command, env={**os.environ, "VEHICLED_SOCKET": daemon.socket}, capture_output=True, text=True)
    return [reading.get("value") for reading in json.loads(reply.stdout)["readings"]]


KINDS = {"obd": 'kind = "obd"', "vesc": 'kind = "longboard"\nprotocol = "vesc"'}


def run(name, seconds, peer="obd", rate=rig.HZ):
    with simulator(name, peer) as (link, environment), rig.running(
            Daemon(devices=1, rate=rate, cpus=rig.same, link=link, environment=environment, kind=KINDS[peer])) as daemon:
        deadline = time.monotonic() + 20
        while not (values(daemon, "polls")[0] or 0) > 20:
            if time.monotonic() > deadline:
                raise Trouble(f"no polls over {name}: {last_words(daemon.process)}")
            time.sleep(0.2)
        time.sleep(2)
        before, polls, resident = cpu(daemon.pid), values(daemon, "polls")[0], memory(daemon.pid)[0]
        time.sleep(seconds)
        used, (after, median_trip, p99) = cpu(daemon.pid) - before, values(daemon, "polls", "round-trip", "round-trip-p99")
        return {"cpu": used / max(after - polls, 1), "polls": after - polls, "median": median_trip, "p99": p99,
                "growth": memory(daemon.pid)[0] - resident}


def run_ble(options):
    if not shutil.which("dbus-daemon"):
        raise Trouble("dbus-daemon is not installed; apt install dbus")
    seconds = options.seconds or (5 if options.quick else 15)
    rounds = {"tcp": [], "ble": []}
    for _ in range(options.rounds):
        for name in rounds:
            rounds[name].append(run(name, seconds))
    print(f"\nOne adapter at 20 Hz over BLE and over TCP: {options.rounds} x {seconds:g} s")
    show(["", "polls", "CPU µs/poll", "round trip p50 ms", "p99 ms", "growth kB"],
         [[name] + [f"{median(runs, key):{form}}" for key, form in (("polls", ".0f"), ("cpu", ".1f"), ("median", ".2f"), ("p99", ".2f"), ("growth", ".0f"))]
          for name, runs in rounds.items()])
    judge("ble.cpu", median([{"ratio": b["cpu"] / t["cpu"]} for b, t in zip(rounds["ble"], rounds["tcp"])], "ratio"))
    judge("ble.p99", median(rounds["ble"], "p99"))
    return rounds


def run_vesc(options):
    seconds = options.seconds or (5 if options.quick else 15)
    rounds = {"obd": [], "vesc": []}
    for _ in range(options.rounds):
        for peer in rounds:
            rounds[peer].append(run("tcp", seconds, peer, rate=50))
    print(f"\nA VESC and an OBD adapter, both at 50 Hz over TCP: {options.rounds} x {seconds:g} s")
    show(["", "polls", "CPU µs/poll", "round trip p50 ms", "growth kB"],
         [[name] + [f"{median(runs, key):{form}}" for key, form in (("polls", ".0f"), ("cpu", ".1f"), ("median", ".2f"), ("growth", ".0f"))]
          for name, runs in rounds.items()])
    judge("vesc.cpu", median([{"ratio": v["cpu"] / o["cpu"]} for v, o in zip(rounds["vesc"], rounds["obd"])], "ratio"))
    return rounds
