"""Infrastructure of the benchmarks: processes that end with the script, their statistics in the kernel, the simulated adapters, and the
daemon. Contains no targets and prints nothing."""
import json, os, re, shutil, signal, socket, subprocess, time
from contextlib import contextmanager, suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOLS = ROOT / ".build" / "bench"
HZ = 20


class Trouble(Exception):
    """The reason why a benchmark cannot be run."""


live = []  # the running processes
folder = None  # for sockets, configurations and logs of this run
binaries = None  # the directory of vehicled and vehiclectl
same = other = None  # the CPU of simulator and client, and another one if there is one


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
    """The CPU time of a process in µs, without ended threads."""
    total = 0
    for thread in threads(pid):
        with suppress(OSError):
            total += int(Path(thread, "schedstat").read_text().split()[0])
    return total / 1e3


def sleeps(pid):
    """The number of voluntary context switches of each thread."""
    counts = {}
    for thread in threads(pid):
        with suppress(OSError):
            counts[thread] = int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", Path(thread, "status").read_text(), re.M)[1])
    return counts


def memory(pid):
    """The resident and anonymous memory in kB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return tuple(int(re.search(rf"^{key}:\s+(\d+)", text, re.M)[1]) for key in ("Rss", "Anonymous"))


def build_tools():
    TOOLS.mkdir(parents=True, exist_ok=True)
    compiler = next((c for c in (os.environ.get("CC"), "cc", "gcc", "clang") if c and shutil.which(c)), None)
    if not compiler:
        raise Trouble("no C compiler; install gcc")
    newest = max(f.stat().st_mtime for f in HERE.glob("*.[ch]"))
    for tool in ("fastelm", "floor", "fan", "ticks", "allocations"):
        target = TOOLS / tool
        if not target.exists() or target.stat().st_mtime < newest:
            form = ["-shared", "-fPIC"] if tool == "allocations" else []
            subprocess.run([compiler, "-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", *form, "-o", target, HERE / f"{tool}.c"], check=True)


class Adapters:
    """fastelm: each connection to its port is an adapter."""

    def __init__(self, cpus=None, hz=HZ, delay=0):
        self.process = start([TOOLS / "fastelm", hz, delay], "fastelm", cpus, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def reset(self):
        self.process.send_signal(signal.SIGUSR2)

    def report(self):
        self.process.send_signal(signal.SIGUSR1)
        return json.loads(self.process.stdout.readline())

    def wait_for(self, connections, process, timeout=60):
        """Waits until this many connections have been polled."""
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


def configuration(link, devices, rate, kind, more):
    blocks = [f'[device.a{i}]\n{kind}\nlink = "{link}"\n{f"rate = {rate}" if rate is not None else ""}\n' for i in range(devices)]
    path = Path(f"{folder}/vehicled.toml")
    path.write_text('log-level = "notice"\n' + "\n".join(blocks) + more)
    return path


class Daemon:
    """vehicled with this many devices on one port, or with another link, once it is ready."""

    def __init__(self, port=0, devices=0, rate=HZ, cpus=None, link=None, environment={}, kind='kind = "obd"', more=""):
        path = configuration(link or f"tcp:127.0.0.1:{port}", devices, rate, kind, more)
        self.socket = f"{folder}/io.vehicled"
        with suppress(FileNotFoundError):
            os.unlink(f"{folder}/notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(f"{folder}/notify")
            notify.settimeout(30)
            environment = {**os.environ, **environment, "NOTIFY_SOCKET": f"{folder}/notify"}
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
                    raise Trouble(f"cannot start vehicled: {last_words(self.process)}")
            self.ready = (time.monotonic() - begun) * 1e3


@contextmanager
def running(thing):
    try:
        yield thing
    finally:
        end(thing.process)
        thing.process.wait()
