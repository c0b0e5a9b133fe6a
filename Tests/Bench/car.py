"""car: a car behind an adapter that takes its time, as real ones do (vehiclesim, `AdapterTiming.real`): how near polling back to
back comes to what the adapter model allows, how punctual the 20 Hz request stays while everything else is asked in its gaps, what
a reply costs beside python-OBD, and what is allocated for a poll."""
import json, mmap, os, re, signal, statistics, struct, subprocess, time

import rig
from beside import simulator, values
from rig import HZ, TOOLS, Adapters, Daemon, Trouble, cpu, end, last_words, running, start
from verdict import judge, median, show

# One battery page with its number of frames, from AdapterTiming: the control unit thinks, then nine frames come.
PAGE_SECONDS = 5e-3 + 9 * 1.5e-3
PYTHON = rig.ROOT / ".build" / "bench" / "python" / "bin" / "python3"


def car(rate, poll="all"):
    return f'kind = "obd"\nrate = {rate}\npoll = "{poll}"'


def control(daemon, *arguments):
    command = [rig.binaries / "vehiclectl", *arguments]
    return subprocess.run(command, env={**os.environ, "VEHICLED_SOCKET": daemon.socket}, capture_output=True, text=True).stdout


def polls(daemon):
    """How many polls were sent, and when that was so: it is told once a second."""
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
    """Polls a second, and CPU for each of them."""
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
    """The line of JSON that a client prints at its end."""
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
    print(f"\nOne battery page back to back, real timing: {options.rounds} x {seconds:g} s")
    show(["", "polls/s", "of the model's"], [["the adapter model", f"{1 / PAGE_SECONDS:.2f}", "1.000"]] + [
        [name, f"{median(runs, 'rate'):.2f}", f"{median(runs, 'rate') * PAGE_SECONDS:.3f}"] for name, runs in rounds.items()])
    judge("car.rate", median(rounds["vehicled"], "rate") * PAGE_SECONDS)
    return rounds


# MARK: lateness

def grid(moments, period):
    """Lateness in ms on the grid that fits best, which begins behind the longest time of a period that no poll falls into; and how
    many places of it passed without a poll."""
    phases = sorted(moment % period for moment in moments)
    begin = max((after - before, after) for before, after in zip([phases[-1] - period, *phases], phases))[1]
    slots = [(moment - begin) // period for moment in moments]
    late = sorted((moment - begin) % period / 1e6 for moment in moments)
    return {"p50": statistics.median(late), "p99": late[(len(late) - 1) * 99 // 100], "max": late[-1],
            "polls": len(late), "missed": slots[-1] - slots[0] + 1 - len(set(slots))}


def mixed(daemon):
    """Requests beside the fast one: properties that come, answers a second that are wanted and that come."""
    rows = json.loads(control(daemon, "do", "--json", "a0.rates"))["rows"][1:]
    answered = [row for row in rows if re.fullmatch(r"[\d.]+", row[3])]
    return {"properties": sum(len(row[5].split()) for row in answered), "requests": len(answered),
            "wanted": sum(float(row[2]) for row in answered), "answered": sum(float(row[3]) for row in answered)}


def punctuality(model, seconds):
    """The requests at 20 Hz as vehicled's own recording has them, and a bare timer on the same CPU in the same time."""
    file = f"{rig.folder}/car.ndjson"
    with simulated(model) as (link, _environment), running(Daemon(devices=1, rate=None, cpus=rig.same, link=link, kind=car(HZ))) as daemon:
        wait_for_polls(daemon)
        time.sleep(5)  # all requests are tried, and it is known how long each takes
        request = value(daemon, "request").encode().hex()
        timer = start([TOOLS / "ticks", HZ], "ticks", rig.same, stdout=subprocess.PIPE)
        control(daemon, "record", "a0", file, "--force", "--seconds", str(seconds))
        timer.send_signal(signal.SIGTERM)
        bare = json.loads(timer.stdout.readline())
        end(timer)
        result = mixed(daemon)
    with open(file) as recording:
        lines = [line for line in map(json.loads, recording) if line.get("dir") == "tx"]
    # What was carried before the recording began stands in front.
    moments = [line["t"] for line in lines if line["hex"].startswith(request) and line["t"] > lines[-1]["t"] - seconds * 1e9 + 5e8]
    return {**result, **grid(moments, 10**9 // HZ), "bare": bare["late_p99"] / 1e3, "bare_missed": bare["missed"]}


def run_lateness(options):
    seconds = options.seconds or (10 if options.quick else 60)
    runs = {model: punctuality(model, seconds) for model in ("e-gmp", "petrol")}
    print(f"\n{HZ} Hz beside everything else, real timing: {seconds:g} s")
    show(["", "properties beside it", "answers/s", "wanted", "missed", "late p50 ms", "p99", "max", "bare timer p99"], [
        [model, f"{run['properties']}", f"{run['answered']:.1f}", f"{run['wanted']:.1f}", f"{run['missed']:.0f}", f"{run['p50']:.2f}",
         f"{run['p99']:.2f}", f"{run['max']:.2f}", f"{run['bare']:.2f}"] for model, run in runs.items()])
    few = [model for model, run in runs.items() if run["properties"] < 30]
    if few:
        raise Trouble(f"fewer than 30 properties beside the request: {', '.join(few)}")
    judge("car.late", max(run["p99"] for run in runs.values()))
    return runs


# MARK: python-OBD

def replies(link, seconds):
    """What a reply costs each client, one after the other; all ask what vehicled asks of a petrol car."""
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
        print("\n(python-OBD is not installed: Tests/Setup/setup.sh bench)")
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
    """What the daemon asks the C library's allocator for in so many seconds; `count` says how many polls there were."""
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
