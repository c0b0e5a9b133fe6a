"""frames: the obd kind over slcan against the same over an ELM327's text, and under a load that only frames can carry."""
import json, statistics, subprocess, time

import rig
from rig import HZ, TOOLS, Adapters, Daemon, Trouble, cpu, end, last_words, memory, running, start
from verdict import judge, median, show

ECUS = [0x700 + 16 * row + column for row in range(3) for column in range(8)][:20]
LINKS = {"ELM327 text": "tcp", "slcan": "slcan:tcp"}
REQUESTS = {"ELM327 text": "2201019", "slcan": "t7E480322010100000000"}


def polled(scheme, hz, seconds, delay=0, more="", kind="", wanted=1):
    """Polls a new adapter on the same CPU, and returns what the adapter has counted and the daemon has used."""
    options = "bit-rate = 500000\nmax-bus-load = 0\n" if scheme.startswith("slcan") else ""
    with running(Adapters(rig.same, hz or HZ, delay)) as adapters:
        daemon = Daemon(devices=1, rate=hz, cpus=rig.same, link=f"{scheme}:127.0.0.1:{adapters.port}", more=more,
                        kind=f'kind = "obd"\nvehicle = "e-gmp"\npoll = "fast"\n{options}{kind}')
        try:
            adapters.wait_for(1, daemon.process)
            time.sleep(2)
            before = cpu(daemon.pid)
            adapters.reset()
            time.sleep(seconds)
            used, report = cpu(daemon.pid) - before, adapters.report()
            if report["lost"] or daemon.process.poll() is not None:
                raise Trouble(f"vehicled lost {report['lost']} connections: {last_words(daemon.process)}")
            if report["polls"] < wanted:
                raise Trouble(f"only {report['polls']} polls")
            return {**report, "cpu": used / report["polls"], "load": used / 1e4 / report["seconds"], "rss": memory(daemon.pid)[0]}
        finally:
            end(daemon.process)


def floor(name, seconds):
    """The rate and CPU per record of the least program that reads the same records."""
    with running(Adapters(rig.same, HZ, 0)) as adapters:
        process = start([TOOLS / "floor", adapters.port, 1, 0, seconds, REQUESTS[name]], "floor", rig.same, stdout=subprocess.PIPE)
        line = process.stdout.readline()
        end(process)
        if not line:
            raise Trouble(last_words(process))
        report = json.loads(line)
        return {"rate": report["rate"], "cpu": report["cpu_per_poll_us"]}


def run_frames(options):
    seconds = options.seconds or (2 if options.quick else 5)
    runs = {name: [] for name in LINKS}
    floors = {name: [] for name in LINKS}
    for number in range(options.rounds):
        for name in sorted(LINKS, reverse=number % 2):
            runs[name].append(polled(LINKS[name], 0, seconds))
            floors[name].append(floor(name, seconds))
    print(f"\nOne battery record back to back: {options.rounds} x {seconds:g} s")
    columns = [("records/s", "rate", "{:.0f}"), ("CPU µs/record", "cpu", "{:.1f}"), ("CPU %", "load", "{:.1f}"), ("RSS kB", "rss", "{:.0f}")]
    show(["", *(c[0] for c in columns), "the floor's CPU µs"], [
        [name, *(form.format(median(r, key)) for _, key, form in columns), f"{median(floors[name], 'cpu'):.1f}"] for name, r in runs.items()])
    times = lambda of: statistics.median(f["cpu"] / t["cpu"] for f, t in zip(of["slcan"], of["ELM327 text"]))
    print(f"The floor needs {times(floors):.2f} times the CPU per record over slcan: its frames are two exchanges, the text is one.")
    judge("frames.rate", median(runs["slcan"], "rate"))
    judge("frames.cpu", times(runs))

    whole = options.seconds or (5 if options.quick else 60)
    runs["100 Hz"] = [polled("slcan:tcp", 100, whole, delay=5)]
    # The clock of the record's device is that of the signals, so its own requests count too.
    signals = "".join(f'[device.a0.signal.ecu-{ecu:x}]\nrequest = "220001"\nheader = "{ecu:03X}"\nvalue = "A"\nperiod = 0.05\n' for ecu in ECUS)
    runs["20 ECUs"] = [polled("slcan:tcp", 20, whole, more=signals, wanted=whole * 20 * len(ECUS) / 2)]
    print(f"\nWhat only frames can carry: {whole:g} s")
    show(["", "requests/s", "missed", "late p50 ms", "p99", "max", "CPU %"], [
        [name, f"{run['rate']:.0f}", f"{run['missed']:.0f}", *(f"{run[key] / 1e3:.2f}" for key in ("late_p50", "late_p99", "late_max")), f"{run['load']:.1f}"]
        for name, run in (("100 Hz, an ECU that answers in 5 ms", runs["100 Hz"][0]), ("20 ECUs at 20 Hz", runs["20 ECUs"][0]))])
    judge("frames.missed", runs["100 Hz"][0]["missed"])
    judge("frames.late", runs["100 Hz"][0]["late_p99"] / 1e3)
    judge("frames.ecus", runs["20 ECUs"][0]["missed"])
    return runs
