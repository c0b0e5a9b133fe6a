"""idle: the cost of the daemon without activity, and the start-up times of daemon and client."""
import os, socket, statistics, subprocess, time

import rig
from rig import Adapters, Daemon, Trouble, memory, running, sleeps
from verdict import judge, show


def wakeups(pid, seconds):
    """The wake-ups of all threads in this time."""
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
        control = rig.binaries / "vehiclectl"
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
