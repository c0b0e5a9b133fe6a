"""max, hz and scale: the floor and vehicled poll simulated adapters in turns."""
import statistics, time

import rig
from rig import Adapters, Daemon, HZ, TOOLS, Trouble, cpu, end, last_words, memory, running, start
from verdict import judge, median, show


def polling(contender, devices, hz, seconds):
    """One program polls new adapters on the same CPU, so that no wake-up crosses CPUs."""
    with running(Adapters(rig.same, hz or HZ)) as adapters:
        if contender == "floor":
            process = start([TOOLS / "floor", adapters.port, devices, hz], "floor", rig.same)
        else:
            process = Daemon(adapters.port, devices, hz, rig.same).process
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
    """Runs floor and vehicled in turns, prints the table, and returns the rounds of each."""
    runs = {"floor": [], "vehicled": []}
    for number in range(rounds):
        for contender in sorted(runs, reverse=number % 2):
            runs[contender].append(polling(contender, devices, hz, seconds))
    print(f"\n{title}: {rounds} x {seconds:g} s")
    columns = [("polls/s", "rate", "{:.0f}"), ("CPU µs/poll", "cpu", "{:.1f}"), ("CPU %", "load", "{:.1f}"),
               ("adapters' %", "own_load", "{:.1f}"), ("RSS kB", "rss", "{:.0f}")]
    if hz:
        columns[1:1] = [("missed", "missed", "{:.0f}"), ("late p50 µs", "late_p50", "{:.0f}"), ("p99", "late_p99", "{:.0f}"),
                        ("max", "late_max", "{:.0f}"), ("drift µs", "drift", "{:.0f}")]
    rows = [[name, *(form.format(median(results, key)) for _, key, form in columns)] for name, results in runs.items()]
    show(["", *(c[0] for c in columns)], rows)
    for name, results in runs.items():
        behind = sum(r["rate"] < 0.99 * devices * hz for r in results)
        if behind:
            print(f"  {name} did not keep up in {behind} of {rounds} rounds, so its CPU per poll is too low; the machine may be busy: measure again")
    return runs


def ratio(runs, key):
    """The median of the ratios of each round, vehicled's to the floor's."""
    return statistics.median(v[key] / max(f[key], 1e-9) for f, v in zip(runs["floor"], runs["vehicled"]))


def run_max(options):
    runs = compare("One adapter back to back", 1, 0, options.seconds or (2 if options.quick else 5), options.rounds)
    judge("max.rate", ratio(runs, "rate"))
    judge("max.cpu", ratio(runs, "cpu"))
    return runs


def run_hz(options):
    whole = options.seconds or (10 if options.quick else 60)  # divided among the rounds, so that noise affects both programs
    runs = compare(f"One adapter at {HZ} Hz, no client", 1, HZ, whole / options.rounds, options.rounds)
    judge("hz.cpu", ratio(runs, "cpu"))
    judge("hz.missed", sum(r["missed"] for r in runs["vehicled"]))
    judge("hz.drift", max(r["drift"] for r in runs["vehicled"]))
    judge("hz.late", ratio(runs, "late_p50"))
    return runs


def run_scale(options):
    results = {}
    for devices in (1, 100, 1000):
        seconds = options.seconds or (3 if options.quick or devices == 1 else 10)
        runs = results[devices] = compare(f"{devices} adapters at {HZ} Hz", devices, HZ, seconds, options.rounds)
        if devices == 100:
            judge("scale.100.missed", sum(r["missed"] for r in runs["vehicled"]))
    judge("scale.1000.cpu", ratio(runs, "cpu"))
    judge("scale.1000.memory", (median(runs["vehicled"], "rss") - median(results[1]["vehicled"], "rss")) / 999)
    return results
