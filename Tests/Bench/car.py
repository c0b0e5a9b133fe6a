"""car: a car behind an adapter with real timing (vehiclesim, `AdapterTiming.real`): the rate of back-to-back polling relative to the limit
of the adapter model, the lateness of the 20 Hz request with all other requests in its gaps, CPU per reply compared with python-OBD, and
allocations per poll."""
import json, mmap, os, re, signal, statistics, struct, subprocess, time

import rig
from beside import simulator, values
from rig import HZ, TOOLS, Adapters, Daemon, Trouble, cpu, end, last_words, running, start
from verdict import judge, median, show

# The time of one battery record from AdapterTiming: the ECU's response time, then nine frames.
RECORD_SECONDS = 5e-3 + 9 * 1.5e-3
PYTHON = rig.ROOT / ".build" / "bench" / "python" / "bin" / "python3"


def car(rate, poll="all"):
    return f'kind = "obd"\nrate = {rate}\npoll = "{poll}"'


def control(daemon, *arguments):
    command = [rig.binaries / "vehiclectl", *arguments]
    return subprocess.run(command, env={**os.environ, "VEHICLED_SOCKET": daemon.socket}, capture_output=True, text=True).stdout


def polls(daemon):
    """The number of polls and its time; it is published once per second."""
    reading = json.loads(control(daemon, "get", "--json", "a0.polls"))["readings"][0]
    return reading.get("value") or 0, (reading.get("time") or 0) / 1e6


def value(daemon, name):
    return values(daemon, name)[0]


def wait_for_polls(daemon, count=20):
    deadline = time.monotonic() + 30
    while polls(daemon)[0] < count:
        if time.monotonic() > deadline:
            raise Trouble(f"no polls: {last_words(daemon.process)}")
        time.sleep(0.2)


def counted(daemon, seconds):
    """Polls per second, and CPU per poll."""
    (earlier, began), used = polls(daemon), cpu(daemon.pid)
    before = time.monotonic()
    time.sleep(seconds)
    load = (cpu(daemon.pid) - used) / (time.monotonic() - before)
    later, ended = polls(daemon)
    rate = (later - earlier) / (ended - began)
    return {"rate": rate, "cpu": load / rate}


def simulated(model, *timing):
    return simulator("tcp", "obd", ["--car", model, *timing])


def told(command, name):
    """The line of JSON that a client prints when it ends."""
    process = start(command, name, rig.same, stdout=subprocess.PIPE)
    report = process.stdout.readline()
    end(process)
    if not report:
        raise Trouble(last_words(process))
    return json.loads(report)


# MARK: the rate

def run_rate(options):
    seconds = options.seconds or (4 if options.quick else 15)
    rounds = {"floor": [], "vehicled": []}
    for _ in range(options.rounds):
        with simulated("e-gmp") as (link, _environment):
            rounds["floor"].append(told([TOOLS / "floor", link.split(":")[-1], 1, 0, seconds, "2201019", "ATSP6", "ATSH7E4"], "floor"))
            with running(Daemon(devices=1, rate=None, cpus=rig.same, link=link, kind=car(0, "fast"))) as daemon:
                wait_for_polls(daemon)
                time.sleep(1)
                rounds["vehicled"].append(counted(daemon, seconds))
    print(f"\nOne battery record back to back, real timing: {options.rounds} x {seconds:g} s")
    show(["", "polls/s", "of the model's"], [["the adapter model", f"{1 / RECORD_SECONDS:.2f}", "1.000"]] + [
        [name, f"{median(runs, 'rate'):.2f}", f"{median(runs, 'rate') * RECORD_SECONDS:.3f}"] for name, runs in rounds.items()])
    judge("car.rate", median(rounds["vehicled"], "rate") * RECORD_SECONDS)
    return rounds


# MARK: lateness

def grid(moments, period):
    """The lateness in ms on the grid that fits best, which begins after the longest part of the period without polls; and the number of
    its slots without a poll."""
    phases = sorted(moment % period for moment in moments)
    begin = max((after - before, after) for before, after in zip([phases[-1] - period, *phases], phases))[1]
    slots = [(moment - begin) // period for moment in moments]
    late = sorted((moment - begin) % period / 1e6 for moment in moments)
    return {"p50": statistics.median(late), "p99": late[(len(late) - 1) * 99 // 100], "max": late[-1],
            "polls": len(late), "missed": slots[-1] - slots[0] + 1 - len(set(slots))}


def mixed(daemon):
    """Requests other than the fast one: polled properties, wanted and actual replies per second."""
    rows = json.loads(control(daemon, "do", "--json", "a0.rates"))["rows"][1:]
    answered = [row for row in rows if re.fullmatch(r"[\d.]+", row[3])]
    return {"properties": sum(len(row[5].split()) for row in answered), "requests": len(answered),
            "wanted": sum(float(row[2]) for row in answered), "answered": sum(float(row[3]) for row in answered)}


def punctuality(model, seconds):
    """The requests at 20 Hz in vehicled's own recording, and a bare timer on the same CPU at the same time."""
    file = f"{rig.folder}/car.ndjson"
    with simulated(model) as (link, _environment), running(Daemon(devices=1, rate=None, cpus=rig.same, link=link, kind=car(HZ))) as daemon:
        wait_for_polls(daemon)
        time.sleep(5)  # until every request was sent once and has a known duration
        request = value(daemon, "request").encode().hex()
        timer = start([TOOLS / "ticks", HZ], "ticks", rig.same, stdout=subprocess.PIPE)
        control(daemon, "record", "a0", file, "--force", "--seconds", str(seconds))
        timer.send_signal(signal.SIGTERM)
        bare = json.loads(timer.stdout.readline())
        end(timer)
        result = mixed(daemon)
    with open(file) as recording:
        lines = [line for line in map(json.loads, recording) if line.get("dir") == "tx"]
    # Without the bytes of a request that began before the recording.
    moments = [line["t"] for line in lines if line["hex"].startswith(request) and line["t"] > lines[-1]["t"] - seconds * 1e9 + 5e8]
    return {**result, **grid(moments, 10**9 // HZ), "bare": bare["late_p99"] / 1e3, "bare_missed": bare["missed"]}


def run_lateness(options):
    seconds = options.seconds or (10 if options.quick else 60)
    runs = {model: punctuality(model, seconds) for model in ("e-gmp", "petrol")}
    print(f"\n{HZ} Hz with all other requests, real timing: {seconds:g} s")
    show(["", "properties beside it", "answers/s", "wanted", "missed", "late p50 ms", "p99", "max", "bare timer p99"], [
        [model, f"{run['properties']}", f"{run['answered']:.1f}", f"{run['wanted']:.1f}", f"{run['missed']:.0f}", f"{run['p50']:.2f}",
         f"{run['p99']:.2f}", f"{run['max']:.2f}", f"{run['bare']:.2f}"] for model, run in runs.items()])
    few = [model for model, run in runs.items() if run["properties"] < 30]
    if few:
        raise Trouble(f"fewer than 30 properties besides the fast request: {', '.join(few)}")
    judge("car.late", max(run["p99"] for run in runs.values()))
    return runs


# MARK: python-OBD

def replies(link, seconds):
    """CPU per reply of each client in turns, with the request that vehicled sends to a petrol car."""
    with running(Daemon(devices=1, rate=None, cpus=rig.same, link=link, kind=car(0, "fast"))) as daemon:
        wait_for_polls(daemon)
        time.sleep(1)
        vehicled = counted(daemon, seconds)
        request = value(daemon, "request")
    python = told([PYTHON, rig.HERE / "python_obd.py", link.replace("tcp:", "socket://"), request, seconds], "python-obd")
    floor = told([TOOLS / "floor", link.split(":")[-1], 1, 0, seconds, request + "1", "ATSP6", "ATSH7E0"], "floor")
    return {"python-OBD": {"rate": python["replies"] / python["seconds"], "cpu": python["cpu"] * 1e6 / python["replies"]},
            "vehicled": vehicled, "floor": {"rate": floor["rate"], "cpu": floor["cpu_per_poll_us"]}}


def run_python(options):
    seconds = options.seconds or (4 if options.quick else 8)
    if not PYTHON.exists():
        print("\n(python-OBD is not installed; run Tests/Setup/setup.sh bench)")
        return {}
    results = {}
    for mark, words, timing in (("car.python", "that answers at once", ["--instant"]), ("car.python.waiting", "with real timing", [])):
        with simulated("petrol", *timing) as (link, _environment):
            rounds = results[mark] = [replies(link, seconds) for _ in range(options.rounds)]
        print(f"\nEngine speed and road speed back to back, an adapter {words}: {options.rounds} x {seconds:g} s")
        show(["", "replies/s", "CPU µs/reply"], [
            [name] + [f"{median([r[name] for r in rounds], key):.1f}" for key in ("rate", "cpu")] for name in rounds[0]])
        judge(mark, statistics.median(r["python-OBD"]["cpu"] / r["vehicled"]["cpu"] for r in rounds))
    return results


# MARK: allocations

def allocations(link, kind, seconds, count):
    """The daemon's allocations in this time; `count` returns the number of polls."""
    path = f"{rig.folder}/allocations"
    with open(path, "w+b") as file:
        file.write(bytes(8))
        file.flush()
        environment = {"LD_PRELOAD": str(TOOLS / "allocations"), "ALLOCATIONS": path}
        with mmap.mmap(file.fileno(), 8) as shared, running(
                Daemon(devices=1, rate=None, cpus=rig.same, link=link, environment=environment, kind=kind)) as daemon:
            time.sleep(8)
            begun, before = struct.unpack("Q", shared)[0], count()
            time.sleep(seconds)
            asked = struct.unpack("Q", shared)[0] - begun
            return {"allocations": asked / seconds, "polls": (count() - before) / seconds}


def run_allocations(options):
    seconds = options.seconds or (2 if options.quick else 10)
    runs = {}
    with running(Adapters(rig.same)) as adapters:
        adapters.reset()
        link = f"tcp:127.0.0.1:{adapters.port}"
        for words, kind in (("back to back", car(0, "fast")), (f"{HZ} Hz", car(HZ, "fast"))):
            runs[words] = allocations(link, kind, seconds, lambda: adapters.report()["polls"])
    print(f"\nAllocations of all threads: {seconds:g} s")
    show(["", "polls/s", "allocations/s", "for each poll"], [
        [words, f"{run['polls']:.0f}", f"{run['allocations']:.1f}", f"{run['allocations'] / run['polls']:.4f}"] for words, run in runs.items()])
    judge("car.allocations", runs["back to back"]["allocations"] / runs["back to back"]["polls"])
    return runs


def run_car(options):
    return {"rate": run_rate(options), "lateness": run_lateness(options), "python": run_python(options), "allocations": run_allocations(options)}
