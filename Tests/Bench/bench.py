#!/usr/bin/env python3
"""Benchmarks of vehicled beside the physical floor, measured in the same run.

  bench.py [max] [hz] [scale] [fanout] [idle]     no name: all of them

  max     one adapter back to back: polls a second and CPU per poll, against the C floor
  hz      one adapter at 20 Hz, no client: CPU per poll, missed polls, drift, lateness, against the floor
  scale   100 and 1000 adapters at 20 Hz: missed polls, CPU per poll, memory per adapter, against the floor
  fanout  100 watchers of a 20 Hz stream, one that stops reading, requests back to back; beside gpsd where installed
  idle    memory, wake-ups, start-up, `vehiclectl get`

Rates and lateness are counted by the simulated adapter (fastelm) and CPU by the kernel: one ruler for all. Contenders
take turns, figures are medians of the rounds, ratios are taken within a round. Ends with 1 when a mark is not met.
"""
import argparse, json, os, platform, pty, re, shutil, signal, socket, statistics, subprocess, sys, tempfile, threading, time, tty
from contextlib import contextmanager, suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOLS = ROOT / ".build" / "bench"
HZ = 20

# What must be reached: name -> (what it is, how the figure is written, the least or the most, what is aimed for).
MARKS = {
    "max.rate": ("polls a second, of the floor's", "{:.2f}", ">=", 0.6, 0.8),
    "max.cpu": ("CPU per poll, times the floor's", "{:.2f}", "<=", 2.5, 1.5),
    "hz.cpu": ("CPU per poll, times the floor's", "{:.2f}", "<=", 2.0, 1.5),
    "hz.missed": ("missed polls", "{:.0f}", "<=", 0, None),
    "hz.drift": ("drift over the run, µs", "{:.0f}", "<=", 500, None),
    "hz.late": ("lateness p50, times the floor's", "{:.2f}", "<=", 2.0, None),
    "scale.100.missed": ("missed polls of 100 adapters", "{:.0f}", "<=", 0, None),
    "scale.1000.cpu": ("1000 adapters: CPU per poll, times the floor's", "{:.2f}", "<=", 3.0, None),
    "scale.1000.memory": ("memory per adapter, kB", "{:.1f}", "<=", 32, None),
    "fanout.cpu": ("CPU per message to 100 watchers of one value, µs", "{:.2f}", "<=", 5.5, None),
    "fanout.cpu.gpsd": ("the same, of gpsd's in this run", "{:.2f}", "<=", 0.5, None),
    "fanout.requests.1": ("requests a second on 1 connection, of gpsd's", "{:.2f}", ">=", 1.0, None),
    "fanout.requests.8": ("requests a second on 8 connections, of gpsd's", "{:.2f}", ">=", 1.0, None),
    "fanout.stalled": ("messages others get beside one that stops reading, of those without", "{:.3f}", ">=", 0.98, None),
    "fanout.stalled.spread": ("their spread p50, times that without", "{:.2f}", "<=", 1.5, None),
    "idle.memory": ("resident memory with one device, MB", "{:.1f}", "<=", 20, 14),
    "idle.anonymous": ("of it anonymous, MB", "{:.1f}", "<=", 4, 2),
    "idle.wakeups": ("wake-ups a second with no device", "{:.2f}", "<=", 0, None),
    "idle.wakeups.down": ("wake-ups per attempt to connect with one link down", "{:.1f}", "<=", 5, None),
    "idle.ready": ("from exec to ready, ms", "{:.1f}", "<=", 100, None),
    "idle.get": ("vehiclectl get of one value, ms", "{:.1f}", "<=", 20, None),
}


class Trouble(Exception):
    """A benchmark that cannot be made, and why."""


# ---- Processes ----------------------------------------------------------------------------------------------------
live = []  # every process that was started and has not been ended
folder = None  # for sockets, configurations and logs of this run


def start(command, name, cpus=None, **options):
    log = open(f"{folder}/{name}.log", "a")
    pin = (lambda: os.sched_setaffinity(0, cpus)) if cpus else None
    process = subprocess.Popen([str(part) for part in command], stderr=log, stdin=subprocess.DEVNULL, preexec_fn=pin,
                               **{"stdout": log, "text": True, **options})
    log.close()
    process.name = name
    live.append(process)
    return process


def end(process):
    if process in live:
        live.remove(process)
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout:
        process.stdout.close()


def last_words(process):
    lines = Path(f"{folder}/{process.name}.log").read_text().strip().splitlines()
    return lines[-1] if lines else f"{process.name} said nothing"


def threads(pid):
    with suppress(FileNotFoundError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            yield f"/proc/{pid}/task/{thread}"


def cpu(pid):
    """CPU time of a process in µs; threads that have ended are not in it."""
    total = 0
    for thread in threads(pid):
        with suppress(OSError):
            total += int(Path(thread, "schedstat").read_text().split()[0])
    return total / 1e3


def sleeps(pid):
    """How often each thread of a process has gone to sleep."""
    counts = {}
    for thread in threads(pid):
        with suppress(OSError):
            counts[thread] = int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", Path(thread, "status").read_text(), re.M)[1])
    return counts


def memory(pid):
    """Resident and anonymous memory in kB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return tuple(int(re.search(rf"^{key}:\s+(\d+)", text, re.M)[1]) for key in ("Rss", "Anonymous"))


def build_tools():
    TOOLS.mkdir(parents=True, exist_ok=True)
    compiler = next((c for c in (os.environ.get("CC"), "cc", "gcc", "clang") if c and shutil.which(c)), None)
    if not compiler:
        raise Trouble("there is no C compiler: install gcc")
    newest = max(f.stat().st_mtime for f in HERE.glob("*.[ch]"))
    for tool in ("fastelm", "floor", "fan"):
        target = TOOLS / tool
        if not target.exists() or target.stat().st_mtime < newest:
            subprocess.run([compiler, "-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-o", target, HERE / f"{tool}.c"], check=True)


# ---- The two ends: simulated adapters, and the daemon ----------------------------------------------------------------
class Adapters:
    """fastelm: every connection to its port is an adapter."""

    def __init__(self, cpus=None, hz=HZ):
        self.process = start([TOOLS / "fastelm", hz], "fastelm", cpus, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def reset(self):
        self.process.send_signal(signal.SIGUSR2)

    def report(self):
        self.process.send_signal(signal.SIGUSR1)
        return json.loads(self.process.stdout.readline())

    def wait_for(self, connections, process, timeout=60):
        """Until so many connections have been polled."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            self.reset()
            time.sleep(0.2)
            report = self.report()
            if report["connections"] >= connections and report["polls"] >= connections:
                return
            if process.poll() is not None:
                break
        raise Trouble(f"{process.name} does not poll: {last_words(process)}")


def configuration(port, devices, rate):
    blocks = [f'[device.a{i}]\nkind = "obd"\nlink = "tcp:127.0.0.1:{port}"\nrate = {rate}\n' for i in range(devices)]
    path = Path(f"{folder}/vehicled.toml")
    path.write_text('log-level = "notice"\n' + "\n".join(blocks))
    return path


class Daemon:
    """vehicled with so many devices on one port, started and told to be ready."""

    def __init__(self, port=0, devices=0, rate=HZ, cpus=None):
        path = configuration(port, devices, rate)
        self.socket = f"{folder}/io.vehicled"
        with suppress(FileNotFoundError):
            os.unlink(f"{folder}/notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(f"{folder}/notify")
            notify.settimeout(30)
            environment = {**os.environ, "NOTIFY_SOCKET": f"{folder}/notify"}
            begun = time.monotonic()
            command = [binaries / "vehicled", "--config", path, "--socket", self.socket, "--state", f"{folder}/state"]
            self.process = start(command, "vehicled", cpus, env=environment)
            self.pid = self.process.pid
            while True:
                notify.settimeout(0.5)
                with suppress(TimeoutError):
                    if b"READY=1" in notify.recv(4096):
                        break
                if self.process.poll() is not None or time.monotonic() - begun > 30:
                    raise Trouble(f"vehicled does not start: {last_words(self.process)}")
            self.ready = (time.monotonic() - begun) * 1e3


@contextmanager
def running(thing):
    try:
        yield thing
    finally:
        end(thing.process)
        thing.process.wait()


# ---- Polling: max, hz, scale -----------------------------------------------------------------------------------------
def polling(contender, devices, hz, seconds):
    """One contender polls fresh adapters; both are on one CPU, so that no wake-up crosses CPUs."""
    with running(Adapters(same, hz or HZ)) as adapters:
        if contender == "floor":
            process = start([TOOLS / "floor", adapters.port, devices, hz], "floor", same)
        else:
            process = Daemon(adapters.port, devices, hz, same).process
        try:
            adapters.wait_for(devices, process)
            time.sleep(1.5)
            before = cpu(process.pid)
            adapters.reset()
            time.sleep(seconds)
            used, report = cpu(process.pid) - before, adapters.report()
            if report["lost"] or process.poll() is not None:
                raise Trouble(f"{contender} lost {report['lost']} connections: {last_words(process)}")
            rss, anonymous = memory(process.pid)
            return {**report, "cpu": used / max(report["polls"], 1), "load": used / 1e4 / report["seconds"],
                    "own_load": 100 * report["own_cpu"] / report["seconds"], "rss": rss, "anonymous": anonymous}
        finally:
            end(process)


def compare(title, devices, hz, seconds, rounds):
    """Floor and vehicled in turns; prints the table and returns the rounds of each."""
    runs = {"floor": [], "vehicled": []}
    for number in range(rounds):
        for contender in sorted(runs, reverse=number % 2):
            runs[contender].append(polling(contender, devices, hz, seconds))
    print(f"\n{title}: {rounds} x {seconds:g} s")
    columns = [("polls/s", "rate", "{:.0f}"), ("CPU µs/poll", "cpu", "{:.1f}"), ("CPU %", "load", "{:.1f}"), ("adapters' %", "own_load", "{:.1f}"),
               ("RSS kB", "rss", "{:.0f}")]
    if hz:
        columns[1:1] = [("missed", "missed", "{:.0f}"), ("late p50 µs", "late_p50", "{:.0f}"), ("p99", "late_p99", "{:.0f}"),
                        ("max", "late_max", "{:.0f}"), ("drift µs", "drift", "{:.0f}")]
    show(["", *(c[0] for c in columns)], [[name, *(form.format(median(results, key)) for _, key, form in columns)] for name, results in runs.items()])
    for name, results in runs.items():
        behind = sum(r["rate"] < 0.99 * devices * hz for r in results)
        if behind:
            print(f"  {name} did not keep up in {behind} of {rounds} rounds; its CPU per poll is too low then. A busy machine? Measure again.")
    return runs


def median(rounds, key):
    return statistics.median(r[key] for r in rounds)


def ratio(runs, key):
    """The median of the ratios of each round, vehicled's to the floor's."""
    return statistics.median(v[key] / max(f[key], 1e-9) for f, v in zip(runs["floor"], runs["vehicled"]))


def run_max(options):
    runs = compare("One adapter back to back", 1, 0, options.seconds or (2 if options.quick else 5), options.rounds)
    judge("max.rate", ratio(runs, "rate"))
    judge("max.cpu", ratio(runs, "cpu"))
    return runs


def run_hz(options):
    whole = options.seconds or (10 if options.quick else 60)  # shared out among the rounds, so that noise meets both contenders
    runs = compare(f"One adapter at {HZ} Hz, no client", 1, HZ, whole / options.rounds, options.rounds)
    judge("hz.cpu", ratio(runs, "cpu"))
    judge("hz.missed", sum(r["missed"] for r in runs["vehicled"]))
    judge("hz.drift", max(r["drift"] for r in runs["vehicled"]))
    judge("hz.late", ratio(runs, "late_p50"))
    return runs


def run_scale(options):
    results = {}
    for devices in (100, 1000):
        seconds = options.seconds or (3 if options.quick else 10)
        runs = results[devices] = compare(f"{devices} adapters at {HZ} Hz", devices, HZ, seconds, options.rounds)
        if devices == 100:
            judge("scale.100.missed", sum(r["missed"] for r in runs["vehicled"]))
        else:
            judge("scale.1000.cpu", ratio(runs, "cpu"))
            judge("scale.1000.memory", (median(runs["vehicled"], "rss") - median(results[100]["vehicled"], "rss")) / 900)
    return results


# ---- The control socket ------------------------------------------------------------------------------------------------
class GPSD:
    """gpsd, fed through a pty with position sentences at the rate of the stream."""

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
        raise Trouble(f"gpsd does not start: {last_words(self.process)}")

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


WATCHERS = {"vehicled": 100, "gpsd": 60}  # gpsd takes no more than 64 clients
SPEECH = {  # how each server is watched and asked
    "vehicled": {"watch": ["-h", call("Watch", True, references=["a0.rpm"]), "-m", '"changes"'],
                 "all": ["-h", call("Watch", True), "-m", '"changes"'],
                 "ask": ["-r", call("Get", references=["a0.rpm"]), "-m", '"readings"']},
    "gpsd": {"watch": ["-d", "line", "-h", '?WATCH={"enable":true,"json":true};', "-m", '"class":"TPV"'],
             "ask": ["-d", "line", "-h", '?WATCH={"enable":true,"json":false};', "-r", "?POLL;", "-m", '"class":"POLL"']},
}


def fan(mode, server, speech, connections, seconds, *more):
    """Load on a server: what fan tells, and the server's CPU while it counted, in µs."""
    command = [TOOLS / "fan", mode, server.socket, "-n", connections, "-s", seconds, *speech, *more]
    process = start(command, "fan", same if mode == "ask" else other, stdout=subprocess.PIPE)
    try:
        if process.stdout.readline() != "begin\n":
            raise Trouble(f"nothing to count at {server.process.name}: {last_words(process)}")
        before = cpu(server.pid)
        report = process.stdout.readline()
        used = cpu(server.pid) - before
        if not report:
            raise Trouble(f"{server.process.name} did not serve: {last_words(process)}")
        return {**json.loads(report), "cpu": used}
    finally:
        end(process)


@contextmanager
def serving(name, rate=HZ):
    """A server with one source of values, on one CPU with it."""
    if name == "gpsd":
        server = GPSD(same)
        try:
            time.sleep(2)
            yield server
        finally:
            server.stop()
    else:
        with running(Adapters(same)) as adapters, running(Daemon(adapters.port, 1, rate, same)) as server:
            adapters.wait_for(1, server.process)
            yield server


def watched(server, name, kind, seconds):
    """Many watchers: CPU per message is what the server uses beyond what it uses without them."""
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
    for name, kind, words in (("vehicled", "watch", "vehicled, one value"), ("vehicled", "all", "vehicled, everything"), ("gpsd", "watch", "gpsd, TPV")):
        if name in runs:
            r = runs[name][kind]
            rows.append([words, str(WATCHERS[name]), f"{median(r, 'rate'):.0f}", f"{median(r, 'least'):.0f}..{median(r, 'most'):.0f}", f"{median(r, 'cpu'):.2f}",
                         f"{median(r, 'spread_p50'):.0f}", f"{median(r, 'spread_p99'):.0f}"])
    show(["", "watchers", "messages/s", "per watcher", "CPU µs/message", "spread p50 µs", "p99"], rows)
    print("\nRequests back to back")
    show(["", "connections", "requests/s", "CPU µs/request", "p50 µs", "p99"], [
        [name, str(n), f"{median(runs[name][n], 'rate'):.0f}", f"{statistics.median(r['cpu'] / r['messages'] for r in runs[name][n]):.1f}", f"{median(runs[name][n], 'wait_p50'):.0f}",
         f"{median(runs[name][n], 'wait_p99'):.0f}"]
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
        print("(gpsd is not installed: nothing to hold these figures against)")
    judge("fanout.stalled", beside["stalled"]["least"] / max(beside["clear"]["least"], 1))
    judge("fanout.stalled.spread", beside["stalled"]["spread_p50"] / max(beside["clear"]["spread_p50"], 1e-9))
    return {**runs, "beside": beside}


def stalled(seconds):
    """Ten readers of a fast stream, without and with an eleventh that never reads: its buffers are full before counting begins."""
    with serving("vehicled", rate=1000) as server:
        watch = SPEECH["vehicled"]["all"]
        runs = {"clear": fan("watch", server, watch, 10, seconds), "stalled": fan("watch", server, watch, 11, seconds, "-x", 1)}
    print("\n10 readers at 1000 Hz, and one that does not read")
    show(["", "messages/s", "per watcher", "spread p50 µs", "p99", "max", "longest silence ms"], [
        [words, f"{r['rate']:.0f}", f"{r['least']}..{r['most']}", f"{r['spread_p50']:.0f}", f"{r['spread_p99']:.0f}", f"{r['spread_max']:.0f}",
         f"{r['wait_max'] / 1e3:.1f}"] for words, r in (("readers alone", runs["clear"]), ("beside it", runs["stalled"]))])
    return runs


# ---- Idle --------------------------------------------------------------------------------------------------------------
def wakeups(pid, seconds):
    """Wake-ups of all threads in so many seconds."""
    before = sleeps(pid)
    time.sleep(seconds)
    return sum(count - before.get(thread, 0) for thread, count in sleeps(pid).items())


def run_idle(options):
    seconds = options.seconds or (5 if options.quick else 15)
    results = {"ready": []}
    for _ in range(5 if options.quick else 15):
        with running(Daemon()) as daemon:
            results["ready"].append(daemon.ready)
    with running(Daemon()) as daemon:
        time.sleep(2)
        results["empty"] = memory(daemon.pid)
        results["wakeups"] = wakeups(daemon.pid, seconds) / seconds
    with socket.socket() as closed:  # bound and not listening: connections are refused
        closed.bind(("127.0.0.1", 0))
        with running(Daemon(closed.getsockname()[1], 1)) as daemon:
            time.sleep(2)
            results["down"] = wakeups(daemon.pid, 15)
    with running(Adapters()) as adapters, running(Daemon(adapters.port, 1)) as daemon:
        adapters.wait_for(1, daemon.process)
        time.sleep(3)
        results["one"] = memory(daemon.pid)
        control = binaries / "vehiclectl"
        if control.exists():
            results["get"] = [get(control, daemon.socket) for _ in range(20)]
    print("\nIdle")
    rows = [["no device", f"{results['empty'][0] / 1024:.1f}", f"{results['empty'][1] / 1024:.1f}"],
            ["one device at 20 Hz", f"{results['one'][0] / 1024:.1f}", f"{results['one'][1] / 1024:.1f}"]]
    show(["", "resident MB", "anonymous MB"], rows)
    judge("idle.memory", results["one"][0] / 1024)
    judge("idle.anonymous", results["one"][1] / 1024)
    judge("idle.wakeups", results["wakeups"])
    judge("idle.wakeups.down", results["down"] / 3)  # from the third to the seventeenth second: after 3, 7 and 15 seconds
    judge("idle.ready", statistics.median(results["ready"]))
    if "get" in results:
        judge("idle.get", statistics.median(results["get"]))
    else:
        print("(vehiclectl is not built)")
    return results


def get(control, path):
    begun = time.monotonic()
    result = subprocess.run([control, "get", "a0.rpm"], env={**os.environ, "VEHICLED_SOCKET": path}, capture_output=True, text=True)
    if result.returncode:
        raise Trouble(f"vehiclectl get: {result.stderr.strip()}")
    return (time.monotonic() - begun) * 1e3


# ---- Output ------------------------------------------------------------------------------------------------------------
verdicts = {}


def judge(name, figure):
    words, form, relation, mark, aim = MARKS[name]
    met = figure >= mark if relation == ">=" else figure <= mark
    verdicts[name] = {"figure": figure, "mark": mark, "aim": aim, "met": met}
    limit = ("at least " if relation == ">=" else "at most ") + f"{mark:g}" + (f", aim {aim:g}" if aim else "")
    print(f"  {words + ':':<68} {form.format(figure):>8}  ({limit})  {'met' if met else 'NOT met'}")
    sys.stdout.flush()


def show(heads, rows):
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    for row in [heads, *rows]:
        print("  " + "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))).rstrip())
    sys.stdout.flush()


def main():
    global folder, binaries, same, other
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="NAME", help="max, hz, scale, fanout, idle")
    parser.add_argument("--bin", type=Path, default=ROOT / ".build" / "release", help="where vehicled and vehiclectl are (.build/release)")
    parser.add_argument("--quick", action="store_true", help="short runs: to see that it works, not to judge by")
    parser.add_argument("--rounds", type=int, help="how often the contenders take turns (3; quick 1)")
    parser.add_argument("--seconds", type=float, help="length of one run, instead of each benchmark's own")
    parser.add_argument("--json", type=Path, help="keep all rounds in this file")
    options = parser.parse_args()
    benchmarks = {"max": run_max, "hz": run_hz, "scale": run_scale, "fanout": run_fanout, "idle": run_idle}
    for name in options.what:
        if name not in benchmarks:
            parser.error(f"there is no benchmark {name}: choose from {', '.join(benchmarks)}")
    options.rounds = options.rounds or (1 if options.quick else 3)
    binaries = options.bin.resolve()
    if not os.access(binaries / "vehicled", os.X_OK):
        parser.error(f"there is no {binaries}/vehicled: build it with swift build -c release, or say where it is with --bin")
    cpus = sorted(os.sched_getaffinity(0))
    same, other = {cpus[0]}, {cpus[-1]}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = tempfile.mkdtemp(prefix="vehicled-bench.")
    results = {}
    try:
        build_tools()
        print(f"{platform.machine()}, {len(cpus)} CPUs, Linux {platform.release()}, load {os.getloadavg()[0]:.1f}")
        for name in options.what or benchmarks:
            try:
                results[name] = benchmarks[name](options)
            except Trouble as trouble:
                print(f"\n{name}: {trouble}", file=sys.stderr)
                verdicts[name] = {"met": False, "trouble": str(trouble)}
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        verdicts["run"] = {"met": False}
    finally:
        for process in list(live):
            end(process)
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        options.json.write_text(json.dumps({"marks": verdicts, "rounds": results}, indent=1))
    missed = [name for name, verdict in verdicts.items() if not verdict["met"]]
    print(f"\n{len(verdicts) - len(missed)} of {len(verdicts)} marks met" + (f"; not met: {', '.join(missed)}" if missed else ""))
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
