"""flood: the effect of users who flood the socket on a 20 Hz adapter and on an RC car that is driven."""
import math, os, sys, time
from contextlib import suppress

import rig
from rig import Adapters, Daemon, HZ, Trouble
from tilting import Car, Client, latencies, stream
from verdict import judge, median, show

USERS = (61001, 61002, 61003)
CONNECTIONS = 128

# The client of a flooding user: as many connections as it gets, with batches of calls; it reconnects when rejected.
FLOODER = """
import os, socket, sys, time
from contextlib import suppress
path, wanted, user, open_sockets, failed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), [], 0.0
os.setgroups([])
os.setgid(user)
os.setuid(user)
calls = b'{"method":"io.vehicled.Status"}\\0' * 32
while True:
    if len(open_sockets) < wanted and time.monotonic() - failed > 0.01:
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        try:
            client.connect(path)
            open_sockets.append(client)
        except OSError:
            failed = time.monotonic()
    for client in open_sockets[:]:
        try:
            with suppress(BlockingIOError):
                client.send(calls)
            if not client.recv(1 << 16):
                raise ConnectionError
        except BlockingIOError:
            pass
        except OSError:
            open_sockets.remove(client)
            failed = time.monotonic()
"""


def connect(path, user):
    """A client of this user: the kernel stores the credentials at connect."""
    os.seteuid(user)
    try:
        return Client(path)
    finally:
        os.seteuid(0)


def flood(seconds, users, driver):
    """Polls and drives while these users flood the socket, with or without access rights."""
    car = Car()
    more = f'[device.car]\nkind = "rc-car"\nlink = "tcp:127.0.0.1:{car.port}"\nstatus-interval = 0\n[control]\ncontrol-users = ["{driver}"]\n'
    with rig.running(Adapters(rig.same)) as adapters, rig.running(Daemon(adapters.port, 1, HZ, rig.same, more=more)) as daemon:
        adapters.wait_for(1, daemon.process)
        car.wait_for(b"Stop", 0)  # the end of the greeting
        holder, points = connect(daemon.socket, driver), connect(daemon.socket, driver)
        lease = holder.drive("car")

        def tilt(number):
            values = {"roll": round(0.1 + number / 1e6, 6), "pitch": 0.0, "yaw": 0.0}
            points.send("Call", {"device": "car", "action": "tilt", "lease": lease,
                                 "arguments": {name: {"float": value} for name, value in values.items()}}, oneway=True)

        stream(1, lambda number: tilt(0))  # Continue goes first
        flooders = [rig.start([sys.executable, "-c", FLOODER, daemon.socket, CONNECTIONS, user], f"flooder-{user}", rig.other)
                    for user in users]
        try:
            begun = len(stream(2, lambda number: tilt(number + 1)))
            calls = statistic(daemon.socket, "vehicled_calls")
            adapters.reset()
            since = time.monotonic_ns()
            said = stream(seconds, lambda number: tilt(begun + number + 1))
            report = adapters.report()
            calls = statistic(daemon.socket, "vehicled_calls") - calls
            if dead := [flooder for flooder in flooders if flooder.poll() is not None]:
                raise Trouble(f"no flood: {rig.last_words(dead[0])}")
            holder.socket.setblocking(False)
            lost = 0
            with suppress(BlockingIOError):
                print(f"  lease lost: {holder.socket.recv(4096)}")
                lost = 1
            trip = math.inf if lost else latencies(car, said, since, first=begun + 1)["p99"]
            return {"missed": report["missed"], "late": report["late_p99"] / 1e3, "lost": lost, "calls": calls / seconds, "trip": trip}
        finally:
            for flooder in flooders:
                rig.end(flooder)
            car.listener.close()


def statistic(path, name):
    client = Client(path)
    client.send("Statistics", {})
    found = [entry["value"] for entry in client.receive()["parameters"]["statistics"] if entry["name"] == name]
    client.socket.close()
    return found[0]


def run_flood(options):
    if os.geteuid() != 0:
        print("\nflood: skipped: needs root to flood as other users")
        return {}
    os.chmod(rig.folder, 0o755)
    seconds = options.seconds or (5 if options.quick else 20)
    contenders = {"one user": (USERS[:1], 0), "three users": (USERS, 0), "the driver's own user": (USERS[:1], USERS[0])}
    rounds = {name: [] for name in contenders}
    for _ in range(options.rounds):
        for name, (users, driver) in contenders.items():
            rounds[name].append(flood(seconds, users, driver))
    print(f"\n{CONNECTIONS} connections of each user flood while an adapter is polled and a car is driven: {options.rounds} x {seconds:g} s")
    columns = (("calls", "calls/s", ".0f"), ("missed", "missed", ".0f"), ("late", "late p99 ms", ".2f"), ("trip", "setpoint p99 ms", ".2f"), ("lost", "leases lost", ".0f"))
    show(["", *[head for _, head, _ in columns]],
         [[name] + [f"{median(runs, key):{form}}" for key, _, form in columns] for name, runs in rounds.items()])
    every = [run for runs in rounds.values() for run in runs]
    judge("flood.missed", sum(run["missed"] for run in every))
    judge("flood.late", max(median(runs, "late") for runs in rounds.values()))
    judge("flood.lost", sum(run["lost"] for run in every))
    return rounds
