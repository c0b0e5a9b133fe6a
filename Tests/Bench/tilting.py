"""tilt: an RC car that is driven at 60 Hz: the latency from the client's setpoint to the wire, and from the end of the lease to Stop. The
car is a socket that records the arrival of frames; for comparison, the client writes the frames to it directly."""
import json, math, socket, statistics, threading, time
from contextlib import suppress

import rig
from rig import Daemon, Trouble, cpu
from verdict import judge, median, show

HZ = 60
END = b"%^%\r\n"


class Car:
    """Greets like the car, replies to each Modes, and records all frames with their times."""
    MODES = b"Modes#$#Tilt Steering;Tilt, Lights" + END

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.frames = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.sendall(b"Gyro#$#%.13f%b" % (1 / HZ, END))
            client.sendall(self.MODES)
            rest = b""
            with suppress(ConnectionResetError):
                while data := client.recv(4096):
                    now = time.monotonic_ns()
                    *frames, rest = (rest + data).split(END)
                    self.frames += [(now, frame) for frame in frames]
                    for frame in frames:
                        if frame.startswith(b"Modes"):
                            client.sendall(self.MODES)

    def wait_for(self, what, since, patience=5):
        """The time of the first frame with this prefix after a time."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            time.sleep(0.03)  # frequent checks would delay the receiving thread
            for moment, frame in self.frames[-100:]:
                if moment >= since and frame.startswith(what):
                    return moment
        raise Trouble(f"the car did not receive {what.decode()}")


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)

    def send(self, method, parameters, **flags):
        call = {"method": f"io.vehicled.{method}", "parameters": parameters, **flags}
        self.socket.sendall(json.dumps(call).encode() + b"\0")

    def receive(self):
        reply = b""
        while not reply.endswith(b"\0"):
            data = self.socket.recv(4096)
            if not data:
                raise Trouble("vehicled closed the connection")
            reply += data
        return json.loads(reply.split(b"\0")[0])

    def drive(self, device="a0"):
        self.send("Drive", {"device": device}, more=True)
        reply = self.receive()
        if "error" in reply:
            raise Trouble(f"no lease: {reply}")
        return reply["parameters"]["lease"]


def frame(number):
    return b"Gyro#$# 0.%06d; 0.000000; 0.000000" % (100_000 + number)


def stream(seconds, say):
    """Sends setpoints on a 60 Hz grid; returns their times."""
    said, begin = [], time.monotonic() + 0.05
    for number in range(int(seconds * HZ)):
        time.sleep(max(0, begin + number / HZ - time.monotonic()))
        said.append(time.monotonic_ns())
        say(number)
    time.sleep(0.1)
    return said


def latencies(car, said, since, first=0):
    came = {}
    for moment, heard in car.frames:
        if moment >= since:
            came.setdefault(heard, moment)
    trips = sorted((came[frame(number)] - moment) / 1e6 for number, moment in enumerate(said, first) if frame(number) in came)
    if len(trips) < len(said) * 0.9:
        raise Trouble(f"{len(trips)} of {len(said)} setpoints reached the wire")
    middle = statistics.median(trips)
    away = sorted(abs(trip - middle) for trip in trips)
    return {"median": middle, "p99": trips[math.ceil(len(trips) * 0.99) - 1], "jitter": away[math.ceil(len(away) * 0.99) - 1],
            "lost": len(said) - len(trips)}


def run_direct(seconds):
    car = Car()
    link = socket.create_connection(("127.0.0.1", car.port))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    since = time.monotonic_ns()
    said = stream(seconds, lambda number: link.sendall(frame(number) + END))
    link.close()
    car.listener.close()
    return {**latencies(car, said, since), "cpu": 0}


def run_daemon(seconds, stops):
    car = Car()
    with rig.running(Daemon(devices=1, link=f"tcp:127.0.0.1:{car.port}", kind='kind = "rc-car"\nstatus-interval = 0', rate=None)) as daemon:
        car.wait_for(b"Stop", 0)  # the end of the greeting
        time.sleep(0.3)
        holder, driver = Client(daemon.socket), Client(daemon.socket)
        lease = holder.drive()

        def tilt(number):
            values = {"roll": round(0.1 + number / 1e6, 6), "pitch": 0.0, "yaw": 0.0}
            driver.send("Call", {"device": "a0", "action": "tilt", "lease": lease,
                                 "arguments": {name: {"float": value} for name, value in values.items()}}, oneway=True)

        since = time.monotonic_ns()
        tilt(0)
        while not any(moment >= since and heard.startswith(b"Gyro") for moment, heard in car.frames):  # Continue goes first
            time.sleep(0.05)
            tilt(0)
        before, since = cpu(daemon.pid), time.monotonic_ns()
        said = stream(seconds, lambda number: tilt(number + 1))
        result = {"cpu": (cpu(daemon.pid) - before) / len(said), **latencies(car, said, since, first=1)}
        ends = []
        for _ in range(stops):
            since = time.monotonic_ns()
            tilt(0)
            car.wait_for(b"Gyro", since)
            ended = time.monotonic_ns()
            holder.socket.close()
            ends.append((car.wait_for(b"Stop", ended) - ended) / 1e6)
            time.sleep(0.4)
            holder = Client(daemon.socket)
            lease = holder.drive()
        result["stop"] = max(ends)
    car.listener.close()
    return result


def run_tilt(options):
    seconds = options.seconds or (5 if options.quick else 20)
    rounds = {"direct": [], "vehicled": []}
    for _ in range(options.rounds):
        rounds["direct"].append(run_direct(seconds))
        rounds["vehicled"].append(run_daemon(seconds, stops=5 if options.quick else 20))
    print(f"\nAn RC car at 60 Hz, from the client to the wire: {options.rounds} x {seconds:g} s")
    columns = (("median", "p50 ms", ".2f"), ("p99", "p99 ms", ".2f"), ("jitter", "jitter p99 ms", ".2f"), ("lost", "replaced", ".0f"), ("cpu", "CPU µs", ".0f"))
    show(["", *[head for _, head, _ in columns]],
         [[name] + [f"{median(runs, key):{form}}" for key, _, form in columns] for name, runs in rounds.items()])
    judge("tilt.jitter", median(rounds["vehicled"], "jitter"))
    judge("tilt.stop", max(run["stop"] for run in rounds["vehicled"]))
    return rounds
