"""history: what recording costs, and how fast a year of recorded values is read. kills: what a killed service loses.

A sample is one polled value, changed or not, as the simulator counts it. The year is made by `vehiclesim history` in virtual time, and
imported; the live drive runs in real time with the daemon and the simulated adapter."""
import json, os, random, signal, socket, sqlite3, statistics, subprocess, time
from contextlib import suppress
from pathlib import Path

import rig
from rig import Daemon, Trouble, cpu, memory, running, threads
from car import polls
from verdict import judge, show

DAY = 86_400_000_000


class Call:
    """A connection to the socket of the history."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(600)
        self.socket.connect(path)
        self.rest = b""

    def __call__(self, method, more=False, **parameters):
        """The parameters of the last reply."""
        call = {"method": f"io.vehicled.history.{method}", "parameters": parameters, **({"more": True} if more else {})}
        self.socket.sendall(json.dumps(call).encode() + b"\0")
        while True:
            reply = self.receive()
            if not reply.get("continues"):
                if "error" in reply:
                    raise Trouble(f"{method}: {reply['error']} {reply.get('parameters')}")
                return reply["parameters"]

    def timed(self, method, more=False, **parameters):
        """The time in ms from the call to the end of its replies, which are not parsed within it, and their parameters."""
        call = {"method": f"io.vehicled.history.{method}", "parameters": parameters, **({"more": True} if more else {})}
        message = json.dumps(call).encode() + b"\0"
        begun = time.monotonic()
        self.socket.sendall(message)
        raw = [self.raw()]
        while b'"continues":true' in raw[-1][-20:]:
            raw.append(self.raw())
        elapsed = (time.monotonic() - begun) * 1e3
        replies = [json.loads(part) for part in raw]
        for reply in replies:
            if "error" in reply:
                raise Trouble(f"{method}: {reply}")
        return elapsed, [reply["parameters"] for reply in replies]

    def receive(self):
        return json.loads(self.raw())

    def raw(self):
        parts = [self.rest]
        while b"\0" not in parts[-1]:
            chunk = self.socket.recv(1 << 20)
            if not chunk:
                raise Trouble("vehicled-history has closed the connection")
            parts.append(chunk)
        message, _, self.rest = b"".join(parts).partition(b"\0")
        return message


class History:
    """vehicled-history, once it replies."""

    def __init__(self, state, daemon="none", name="vehicled-history"):
        self.state, self.socket = state, f"{folder(name)}/history"
        path = Path(f"{folder(name)}/history.toml")
        path.write_text("[history]\n")
        command = [rig.binaries / "vehicled-history", "--config", path, "--socket", self.socket, "--daemon", daemon, "--state", state]
        self.process = rig.start(command, name)
        self.pid = self.process.pid
        deadline = time.monotonic() + 60
        while True:
            with suppress(OSError):
                Call(self.socket)("Status")
                return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Trouble(f"cannot start vehicled-history: {rig.last_words(self.process)}")
            time.sleep(0.01)

    def size(self):
        return sum(os.path.getsize(f"{self.state}/{name}") for name in os.listdir(self.state) if name.startswith("history.db"))


def folder(name):
    path = f"{rig.folder}/{name}"
    os.makedirs(path, exist_ok=True)
    return path


def written(pid):
    """The bytes that a process has caused to be written to the disk."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("write_bytes")).split()[1])


def peak(pid):
    """The highest resident memory in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def thread_cpu(pid, name):
    """The CPU time in µs of the threads with this name."""
    return sum(int(Path(thread, "schedstat").read_text().split()[0]) for thread in threads(pid)
               if Path(thread, "comm").read_text().strip() == name) / 1e3


# The recorded years


def fill(history, options, results):
    """Imports a year, or the days of --days, from the simulator."""
    days = options.days or (14 if options.quick else 365)
    begun, before, used = time.monotonic(), written(history.pid), cpu(history.pid)
    process = rig.start([rig.binaries / "vehiclesim", "history", "--days", days, "--socket", history.socket, "--quiet"], "vehiclesim",
                        stdout=subprocess.PIPE)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Trouble(f"vehiclesim history: {rig.last_words(process)}")
    results["year"] = json.loads(text) | {
        "simulator.cpu": usage.ru_utime + usage.ru_stime, "seconds": time.monotonic() - begun,
        "import.cpu": (cpu(history.pid) - used) / 1e6, "import.written": written(history.pid) - before}
    return results["year"]


def wait_for_periods(call, year, timeout=900):
    """Waits until the trips of the imported values are computed."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        closed = [p for p in call("Periods", kind="trip")["periods"] if not p["open"]]
        if len(closed) >= year["trips"]:
            return len(closed)
        time.sleep(1)
    raise Trouble(f"{len(closed)} of {year['trips']} trips were found")


def row_size(call, year):
    """The bytes per row of a plain SQLite table, and the seconds of CPU per row: the recorded values of some days, one row for each."""
    path = f"{rig.folder}/rows.db"
    status = call("Status")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE sample (property INTEGER, time INTEGER, value)")
    count, start, used = 0, status["first"], 0
    series = [s["property"] for s in call("Series", device="simulated-car")["series"] if s["type"] in ("int", "float", "bool")]
    stream = Call(call.path)
    message = {"method": "io.vehicled.history.Samples", "more": True,
               "parameters": {"device": "simulated-car", "properties": series, "start": start, "end": start + 5 * DAY}}
    stream.socket.sendall(json.dumps(message).encode() + b"\0")
    while count < 2_000_000:
        reply = stream.receive()
        rows = [(s["series"], s["time"], next(iter(s["value"].values()))) for s in reply["parameters"].get("samples") or [] if s.get("value")]
        begun = time.process_time()
        connection.executemany("INSERT INTO sample VALUES (?, ?, ?)", rows)
        used += time.process_time() - begun
        count += len(rows)
        if not reply.get("continues"):
            break
    connection.commit()
    connection.close()
    return os.path.getsize(path) / count, used / count * 1e6


def ten_years(state):
    """Copies the periods of the recorded year so that there are ten years of them. Only their times and numbers differ."""
    connection = sqlite3.connect(f"{state}/history.db")
    columns = [row[1] for row in connection.execute("PRAGMA table_info(period)") if row[1] != "id"]
    first, last = connection.execute("SELECT min(start), max(\"end\") FROM period WHERE open = 0").fetchone()
    length = last - first + 3_600_000_000
    copies = max(1, round(10 * 365.25 * DAY / length)) - 1
    names = ", ".join(f'"{name}"' for name in columns)
    values = ", ".join(f'"{name}" - ?1' if name in ("start", "end", "summary_start") else f'"{name}"' for name in columns)
    for copy in range(1, copies + 1):
        connection.execute(f"INSERT INTO period ({names}) SELECT {values} FROM period WHERE open = 0 AND start >= ?2", (copy * length, first))
    connection.commit()
    count = connection.execute("SELECT count(*) FROM period WHERE kind = 'trip'").fetchone()[0]
    connection.close()
    return count


def median_time(call, rounds, method, **parameters):
    times = []
    for _ in range(rounds):
        elapsed, replies = call.timed(method, **parameters)
        times.append(elapsed)
    return statistics.median(times), replies


def run_year(options, results):
    state = options.state or f"{rig.folder}/year"
    known = Path(f"{state}/year.json")
    with running(History(state)) as history:
        call = Call(history.socket)
        if known.exists():
            year = results["year"] = json.loads(known.read_text())
        else:
            year = fill(history, options, results)
            year["found"] = wait_for_periods(call, year)
            call("Compact")
            year["size"] = history.size()
            known.write_text(json.dumps(year))
        results["rows"] = row_size(call, year)
        status = call("Status")
        year["span"] = status["last"] - status["first"]
        begun = time.monotonic()
        results["recut.periods"] = call("Recut", more=True)["periods"]
        results["recut"] = time.monotonic() - begun
        results["plot"], _ = median_time(call, 20, "Plot", device="simulated-car", property="battery-power", start=status["first"],
                                         end=status["last"], points=2000)
        results["peak"] = peak(history.pid)
    copy = f"{rig.folder}/ten"
    os.makedirs(copy)
    # Only the tables of periods matter.
    source, target = sqlite3.connect(f"{state}/history.db"), sqlite3.connect(f"{copy}/history.db")
    source.backup(target)
    target.execute("DELETE FROM block")
    target.commit()
    source.close()
    target.close()
    results["trips"] = ten_years(copy)
    with running(History(copy)) as history:
        call = Call(history.socket)
        results["list"], replies = median_time(call, 10, "Periods", more=True, kind="trip")
        listed = sum(len(reply["periods"]) for reply in replies)
        if listed != results["trips"]:
            raise Trouble(f"{listed} of {results['trips']} trips were listed")
        results["list.20"], _ = median_time(call, 10, "Periods", kind="trip", limit=20)


# The live drive


def run_live(options, results):
    """Records a simulated drive in real time, until the service has ended: with everything that it writes at its end."""
    # The marks are for an hour of driving; the service starts and ends once in it.
    seconds = options.seconds or (20 if options.quick else 3600)
    adapter = rig.start([rig.binaries / "vehiclesim", "obd", "--on", "tcp:127.0.0.1:0"], "vehiclesim", rig.same, stdout=subprocess.PIPE)
    link = adapter.stdout.readline().strip()
    state = f"{rig.folder}/live"
    with running(Daemon(devices=1, link=link, cpus=rig.other)) as daemon, running(History(state, daemon.socket)) as history:
        deadline = time.monotonic() + 60
        while memory(history.pid) and not Call(history.socket)("Status")["recording"]:
            if time.monotonic() > deadline:
                raise Trouble("nothing is recorded")
            time.sleep(0.2)
        time.sleep(15)  # the car is detected
        start = {name: thread_cpu(history.pid, name) for name in ("store", "vehicled-histor")}
        first, begun, before = polls(daemon), time.monotonic(), written(history.pid)
        time.sleep(seconds)
        last, ended, after = polls(daemon), time.monotonic(), written(history.pid)
        used = {name: thread_cpu(history.pid, name) - start[name] for name in start}
        resident = memory(history.pid)
        history.process.send_signal(signal.SIGTERM)
        _, status, usage = os.wait4(history.pid, 0)
        history.process.returncode = os.waitstatus_to_exitcode(status)
    rig.end(adapter)
    # The simulator's count for the same car, polled in the same way.
    samples = (last[0] - first[0]) * results["year"]["samples"] / results["year"]["polls"]
    results["live"] = {"seconds": ended - begun, "polls": last[0] - first[0], "samples": samples, "store": used["store"] / samples,
                       "main": sum(used.values()) / samples - used["store"] / samples, "resident": resident[0] / 1024,
                       "driving": (after - before) / (ended - begun) * 3600 / 1e6, "written": usage.ru_oublock * 512 / (ended - begun + 15) * 3600 / 1e6}


def run_history(options):
    results = {}
    run_year(options, results)
    run_live(options, results)
    year, live, (row, row_cpu) = results["year"], results["live"], results["rows"]
    days = year["days"]
    print(f"\nHistory: {days} days in virtual time, {year['trips']} trips, {year['charges']} charges, {year['samples'] / 1e6:.0f} million samples")
    show(["", "total", "per sample"],
         [["made by vehiclesim: CPU", f"{year['simulator.cpu']:.0f} s", f"{year['simulator.cpu'] / year['samples'] * 1e6:.3f} µs"],
          ["imported: CPU", f"{year['import.cpu']:.0f} s", f"{year['import.cpu'] / year['samples'] * 1e6:.3f} µs"],
          ["stored values", f"{year['stored'] / 1e6:.0f} million", f"{year['stored'] / year['samples']:.3f}"],
          ["on the disk", f"{year['size'] / 1e6:.1f} MB", f"{year['size'] / year['samples']:.4f} bytes"],
          ["a row a sample in SQLite", f"{row * year['samples'] / 1e9:.1f} GB", f"{row:.1f} bytes, {row_cpu:.2f} µs"]])
    print(f"  live: {live['seconds']:.0f} s, {live['polls']} polls; {live['driving']:.1f} MB an hour written without its start and end; "
          f"peak of resident memory while a year is read: {results['peak']:.1f} MB")
    judge("history.bytes", year["size"] / year["samples"])
    judge("history.rows", row * year["samples"] / year["size"])
    judge("history.cpu", live["store"])
    judge("history.json", live["main"])
    judge("history.written", live["written"])
    judge("history.memory", live["resident"])
    scale = 365 / days
    judge("history.plot", results["plot"])
    judge("history.trips", results["list"])
    print(f"  ({results['trips']} trips; the last 20 of them: {results['list.20']:.1f} ms)")
    judge("history.recut", results["recut"] * scale)
    return results


# Kills


def stored_until(state):
    """The time of the last recorded value in µs of the boot clock; None: nothing was recorded. Fails if the database is damaged."""
    connection = sqlite3.connect(f"{state}/history.db")
    try:
        found = connection.execute("PRAGMA quick_check").fetchall()
        if found != [("ok",)]:
            raise Trouble(f"{state}: {found[:3]}")
        return connection.execute('SELECT max("end") FROM (SELECT "end" FROM recent UNION ALL SELECT "end" FROM block)').fetchone()[0]
    finally:
        connection.close()


def run_kills(options):
    """Several services record the same car, and are killed at random times."""
    count = options.kills or (20 if options.quick else 1000)
    services = min(20, count)
    adapter = rig.start([rig.binaries / "vehiclesim", "obd", "--on", "tcp:127.0.0.1:0"], "vehiclesim", stdout=subprocess.PIPE)
    link = adapter.stdout.readline().strip()
    lost, damage, killed = [], 0, 0
    with running(Daemon(devices=1, link=link)) as daemon:
        time.sleep(10)
        histories = [History(f"{rig.folder}/kill{n}", daemon.socket, f"kill{n}") for n in range(services)]
        began = {history.state: boot_clock() for history in histories}
        due = {history.state: time.monotonic() + random.uniform(1, 25) for history in histories}
        while killed < count:
            histories.sort(key=lambda history: due[history.state])
            history = histories[0]
            time.sleep(max(0, due[history.state] - time.monotonic()))
            history.process.kill()
            history.process.wait()
            at = boot_clock()
            rig.live.remove(history.process)
            killed += 1
            until = stored_until(history.state)
            # What was recorded since the start, or nothing yet.
            lost.append((at - max(until or 0, began[history.state])) / 1e6)
            number = history.state.rsplit("kill", 1)[1]
            histories[0] = History(history.state, daemon.socket, f"kill{number}")
            began[history.state] = boot_clock()
            due[history.state] = time.monotonic() + random.uniform(1, 25)
        for history in histories:
            damage += len(Call(history.socket)("Check", more=True)["damage"])
            rig.end(history.process)
    rig.end(adapter)
    print(f"\nKills: {killed} of {services} services that record one car at 20 Hz")
    print(f"  lost: median {statistics.median(lost):.1f} s, at most {max(lost):.1f} s")
    judge("kills.lost", max(lost))
    judge("kills.damage", damage)
    return {"lost": lost, "damage": damage}


def boot_clock():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
