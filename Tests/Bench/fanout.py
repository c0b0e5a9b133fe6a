"""fanout: many watchers and many requests on the control socket, compared with gpsd if it is installed."""
import json, os, pty, shutil, socket, statistics, subprocess, threading, time, tty
from contextlib import contextmanager, suppress

import rig
from rig import HZ, TOOLS, Adapters, Daemon, Trouble, cpu, end, last_words, running, start
from verdict import judge, median, show


class GPSD:
    """gpsd with NMEA sentences through a pty at the rate of the stream."""

    def __init__(self, cpus=None):
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        os.chmod(os.ttyname(self.slave), 0o666)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = start(["gpsd", "-N", "-n", "-b", "-S", self.port, os.ttyname(self.slave)], "gpsd", cpus)
        self.pid, self.socket, self.fed = self.process.pid, str(self.port), True
        self.feeder = threading.Thread(target=self.feed, daemon=True)
        self.feeder.start()
        for _ in range(200):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.05)
        raise Trouble(f"cannot start gpsd: {last_words(self.process)}")

    def feed(self):
        begun, sent = time.time(), 0
        while self.fed and self.process.poll() is None:
            moment = time.gmtime(begun + sent / HZ)
            clock = time.strftime("%H%M%S", moment) + f".{sent % HZ * 100 // HZ:02d}"
            place = f"4807.{sent % 10000:04d},N,01131.0000,E"
            with suppress(OSError):
                os.write(self.master, b"".join(map(self.sentence, (
                    f"GPRMC,{clock},A,{place},022.4,084.4,{time.strftime('%d%m%y', moment)},,,A",
                    f"GPGGA,{clock},{place},1,08,0.9,545.4,M,46.9,M,,"))))
            sent += 1
            time.sleep(max(0, begun + sent / HZ - time.time()))

    @staticmethod
    def sentence(body):
        check = 0
        for byte in body.encode():
            check ^= byte
        return f"${body}*{check:02X}\r\n".encode()

    def stop(self):
        self.fed = False
        self.feeder.join()
        end(self.process)
        os.close(self.master)
        os.close(self.slave)


def call(method, more=False, **parameters):
    return json.dumps({"method": f"io.vehicled.{method}", "parameters": parameters, **({"more": True} if more else {})})


WATCHERS = {"vehicled": 100, "gpsd": 60}  # gpsd accepts at most 64 clients
SPEECH = {  # the requests for each server
    "vehicled": {"watch": ["-h", call("Watch", True, references=["a0.rpm"]), "-m", '"changes"'],
                 "all": ["-h", call("Watch", True), "-m", '"changes"'],
                 "ask": ["-r", call("Get", references=["a0.rpm"]), "-m", '"readings"']},
    "gpsd": {"watch": ["-d", "line", "-h", '?WATCH={"enable":true,"json":true};', "-m", '"class":"TPV"'],
             "ask": ["-d", "line", "-h", '?WATCH={"enable":true,"json":false};', "-r", "?POLL;", "-m", '"class":"POLL"']},
}


def fan(mode, server, speech, connections, seconds, *more):
    """Loads a server: the output of fan, and the server's CPU time in µs while it counted."""
    command = [TOOLS / "fan", mode, server.socket, "-n", connections, "-s", seconds, *speech, *more]
    process = start(command, "fan", rig.same if mode == "ask" else rig.other, stdout=subprocess.PIPE)
    try:
        if process.stdout.readline() != "begin\n":
            raise Trouble(f"no messages from {server.process.name}: {last_words(process)}")
        before = cpu(server.pid)
        report = process.stdout.readline()
        used = cpu(server.pid) - before
        if not report:
            raise Trouble(f"{server.process.name} failed: {last_words(process)}")
        return {**json.loads(report), "cpu": used}
    finally:
        end(process)


@contextmanager
def serving(name, rate=HZ):
    """A server and its source of values on the same CPU."""
    if name == "gpsd":
        server = GPSD(rig.same)
        try:
            time.sleep(2)
            yield server
        finally:
            server.stop()
    else:
        with running(Adapters(rig.same)) as adapters, running(Daemon(adapters.port, 1, rate, rig.same)) as server:
            adapters.wait_for(1, server.process)
            yield server


def watched(server, name, kind, seconds):
    """Many watchers. CPU per message is the additional CPU time of the server."""
    before = cpu(server.pid)
    time.sleep(2)
    alone = (cpu(server.pid) - before) / 2
    run = fan("watch", server, SPEECH[name][kind], WATCHERS[name], seconds)
    if not run["messages"]:
        raise Trouble(f"{name} sent no messages")
    return {**run, "alone": alone, "cpu": (run["cpu"] - alone * run["seconds"]) / run["messages"]}


def run_fanout(options):
    seconds = options.seconds or (2 if options.quick else 5)
    names = ["vehicled"] + (["gpsd"] if shutil.which("gpsd") else [])
    runs = {name: {"watch": [], "all": [], 1: [], 8: []} for name in names}
    for number in range(options.rounds):
        for name in names[::-1] if number % 2 else names:
            with serving(name) as server:
                for kind in ("watch", "all"):
                    if kind in SPEECH[name]:
                        runs[name][kind].append(watched(server, name, kind, seconds))
                for connections in (1, 8):
                    runs[name][connections].append(fan("ask", server, SPEECH[name]["ask"], connections, seconds))

    print(f"\nWatchers of a {HZ} Hz stream: {options.rounds} x {seconds:g} s")
    rows = []
    kinds = (("vehicled", "watch", "vehicled, one value"), ("vehicled", "all", "vehicled, everything"), ("gpsd", "watch", "gpsd, TPV"))
    for name, kind, words in kinds:
        if name in runs:
            r = runs[name][kind]
            rows.append([words, str(WATCHERS[name]), f"{median(r, 'rate'):.0f}", f"{median(r, 'least'):.0f}..{median(r, 'most'):.0f}",
                         f"{median(r, 'cpu'):.2f}", f"{median(r, 'spread_p50'):.0f}", f"{median(r, 'spread_p99'):.0f}"])
    show(["", "watchers", "messages/s", "per watcher", "CPU µs/message", "spread p50 µs", "p99"], rows)
    print("\nRequests back to back")
    show(["", "connections", "requests/s", "CPU µs/request", "p50 µs", "p99"], [
        [name, str(n), f"{median(runs[name][n], 'rate'):.0f}",
         f"{statistics.median(r['cpu'] / r['messages'] for r in runs[name][n]):.1f}",
         f"{median(runs[name][n], 'wait_p50'):.0f}", f"{median(runs[name][n], 'wait_p99'):.0f}"]
        for n in (1, 8) for name in names])

    beside = stalled(seconds)
    judge("fanout.cpu", median(runs["vehicled"]["watch"], "cpu"))
    if "gpsd" in runs:
        def of_gpsd(kind, key):
            return statistics.median(v[key] / g[key] for v, g in zip(runs["vehicled"][kind], runs["gpsd"][kind]))
        judge("fanout.cpu.gpsd", of_gpsd("watch", "cpu"))
        judge("fanout.requests.1", of_gpsd(1, "rate"))
        judge("fanout.requests.8", of_gpsd(8, "rate"))
    else:
        print("(gpsd is not installed: no comparison)")
    judge("fanout.stalled", beside["stalled"]["least"] / max(beside["clear"]["least"], 1))
    judge("fanout.stalled.spread", beside["stalled"]["spread_p50"] / max(beside["clear"]["spread_p50"], 1e-9))
    return {**runs, "beside": beside}


def stalled(seconds):
    """Ten readers of a fast stream, without and with another that never reads and whose buffers are full before counting begins."""
    with serving("vehicled", rate=1000) as server:
        watch = SPEECH["vehicled"]["all"]
        runs = {"clear": fan("watch", server, watch, 10, seconds), "stalled": fan("watch", server, watch, 11, seconds, "-x", 1)}
    print("\n10 readers at 1000 Hz, and one that does not read")
    show(["", "messages/s", "per watcher", "spread p50 µs", "p99", "max", "longest silence ms"], [
        [words, f"{r['rate']:.0f}", f"{r['least']}..{r['most']}", f"{r['spread_p50']:.0f}", f"{r['spread_p99']:.0f}", f"{r['spread_max']:.0f}",
         f"{r['wait_max'] / 1e3:.1f}"] for words, r in (("readers alone", runs["clear"]), ("beside it", runs["stalled"]))])
    return runs
