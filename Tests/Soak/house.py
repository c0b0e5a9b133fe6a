"""Infrastructure of the soak test: a directory, programs that end with the script, TCP proxies that can be cut, and a client of the
daemon's socket. Contains no checks."""
import asyncio, collections, ctypes, json, os, shutil, signal, socket, struct, subprocess, sys, tempfile, time
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)
now = time.monotonic


def ends_with_us():
    """Called in a child: ends it with the script, even after SIGKILL."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Program:
    """A program that was started here. `heard` gets each line of its standard error."""

    def __init__(self, process, name):
        self.process, self.name, self.pid = process, name, process.pid
        self.readers = []

    @property
    def is_running(self):
        return self.process.returncode is None

    def kill(self, number):
        # Not by the process's own method, which may take note of its end before asyncio does.
        if self.is_running:
            os.kill(self.pid, number)

    async def status(self, seconds):
        """The exit status, or None if it does not end in time."""
        with suppress(asyncio.TimeoutError):
            return await asyncio.wait_for(asyncio.shield(self.process.wait()), seconds)
        return None

    async def end(self, number=signal.SIGTERM, seconds=5):
        self.kill(number)
        status = await self.status(seconds)
        if status is None:
            self.kill(signal.SIGKILL)
            await self.process.wait()
        for reader in self.readers:
            reader.cancel()
        return status


class House:
    """The directory and the programs of one run."""

    def __init__(self, binaries):
        self.binaries = Path(binaries).resolve()
        self.folder = Path(tempfile.mkdtemp(prefix="vehicled-soak-", dir="/tmp"))
        self.programs = []
        self.lags = collections.deque(maxlen=4000)
        self.worst = {}  # the maximum lag of each second
        if sys.version_info < (3, 12):
            # As later versions do by themselves. Nobody else waits for our children: until we have, their numbers are theirs.
            asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
            asyncio.get_child_watcher().attach_loop(asyncio.get_running_loop())

    def path(self, name):
        return str(self.folder / name)

    async def start(self, program, *arguments, name=None, heard=None, said=None, environment={}, stdin=False):
        """Starts a program; its standard output goes to `said`, line by line, or to its log."""
        name = name or program
        with open(self.path(f"{name}.log"), "ab") as log:
            process = await asyncio.create_subprocess_exec(
                str(self.binaries / program), *[str(one) for one in arguments], stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE if said else log, stderr=subprocess.PIPE if heard else log, cwd=self.folder,
                env={**os.environ, **environment}, preexec_fn=ends_with_us, start_new_session=True, limit=1 << 20)
        one = self.keep(Program(process, name))
        for stream, tell in ((process.stdout, said), (process.stderr, heard)):
            if tell:
                one.readers.append(asyncio.ensure_future(self.listen(stream, tell)))
        return one

    def keep(self, program):
        self.programs = [other for other in self.programs if other.is_running] + [program]
        return program

    @staticmethod
    async def listen(stream, tell):
        with suppress(ValueError, ConnectionError):
            while line := await stream.readline():
                tell(line.decode(errors="replace").rstrip("\n"))

    async def run(self, program, *arguments, text=None, seconds=60):
        """Runs a program: exit status (None if it did not end), standard output, standard error."""
        process = await asyncio.create_subprocess_exec(
            str(self.binaries / program), *[str(one) for one in arguments], stdin=subprocess.PIPE if text else subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder, preexec_fn=ends_with_us, start_new_session=True)
        one = self.keep(Program(process, program))
        try:
            out, err = await asyncio.wait_for(process.communicate(text.encode() if text else None), seconds)
            return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")
        except asyncio.TimeoutError:
            return None, "", "it did not end"
        finally:
            await one.end(signal.SIGKILL)

    async def close(self):
        for program in reversed(self.programs):
            program.kill(signal.SIGCONT)
            await program.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    # How slow the machine is.

    async def feel(self):
        """Records the scheduling latency of this script, which also delays what it measures."""
        while True:
            before = now()
            await asyncio.sleep(0.05)
            self.lags.append((now(), now() - before - 0.05))
            # A sleep that was too long delays also what was to be done in the seconds before.
            for second in range(int(before), int(now()) + 1):
                self.worst[second] = max(self.worst.get(second, 0), now() - before - 0.05)

    def lag(self, since=10):
        """The maximum of the last seconds."""
        begin = now() - since
        return max((lag for at, lag in self.lags if at >= begin), default=0)

    def lag_between(self, begin, end):
        """The maximum between two times since the start."""
        return max(self.worst.get(second, 0) for second in range(int(begin), int(end) + 1))


# TCP


def free_ports(count, tried=[21000 + os.getpid() % 500 * 20]):
    """This many consecutive free ports, below the ephemeral range."""
    while True:
        first = tried[0]
        tried[0] += count
        if tried[0] > 32000:
            tried[0] = 20000
        taken = []
        try:
            for port in range(first, first + count):
                taken.append(socket.socket())
                taken[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                taken[-1].bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
        finally:
            for one in taken:
                one.close()


class Line:
    """A TCP proxy from a constant port to the simulator. It can be cut."""

    def __init__(self, port):
        self.port, self.target, self.server, self.pairs = port, None, None, set()
        self.heard = None  # gets what is passed on: whether it is the daemon's, and the bytes
        self.connected = lambda: None  # called for each connection

    async def open(self):
        if not self.server:
            self.server = await asyncio.start_server(self.came, "127.0.0.1", self.port, reuse_address=True)

    def close(self):
        """Closes the port: connections are refused."""
        if self.server:
            self.server.close()
            self.server = None

    def cut(self, harshly):
        """Closes all connections, with a reset if `harsh`."""
        for writer in [writer for pair in self.pairs for writer in pair]:
            if harshly:
                with suppress(OSError, AttributeError):
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
            else:
                writer.close()

    async def came(self, reader, writer):
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            return writer.transport.abort()
        self.connected()
        pair = (writer, back)
        self.pairs.add(pair)
        for one in pair:
            one.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await asyncio.gather(self.pump(reader, back, True), self.pump(there, writer, False))
        except asyncio.CancelledError:
            pass  # The script ends.
        finally:
            self.pairs.discard(pair)
            for one in pair:
                one.close()

    async def pump(self, reader, writer, is_daemons):
        try:
            while data := await reader.read(65536):
                if self.heard:
                    self.heard(is_daemons, data)
                writer.write(data)
                await writer.drain()
            writer.write_eof()
        except (OSError, RuntimeError):
            # A reset on one side is one on the other.
            writer.transport.abort()


# The daemon's socket


class Refused(Exception):
    """The daemon replied with an error."""

    def __init__(self, error, parameters):
        super().__init__(f"{error.rpartition('.')[2]} {json.dumps(parameters)}")
        self.error, self.parameters = error.rpartition(".")[2], parameters


class Gone(Exception):
    """The daemon closed the connection."""


class Client:
    """One connection to the daemon's socket."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, path):
        connection = socket.socket(socket.AF_UNIX)
        connection.setblocking(False)
        while True:
            try:
                connection.connect(path)
                return cls(*await asyncio.open_unix_connection(sock=connection, limit=1 << 24))
            except BlockingIOError:
                # As many clients as the kernel lets wait for the daemon to accept them. asyncio would take this for a connection.
                await asyncio.sleep(0.01)
            except OSError:
                connection.close()
                raise

    def say(self, method, parameters=None, **flags):
        method = method if "." in method else f"io.vehicled.{method}"
        self.writer.write(json.dumps({"method": method, "parameters": parameters or {}, **flags}).encode() + b"\0")

    async def next(self):
        """The parameters of the next reply."""
        try:
            message = json.loads((await self.reader.readuntil(b"\0"))[:-1])
        except (asyncio.IncompleteReadError, ConnectionError) as end:
            raise Gone("the daemon closed the connection") from end
        if "error" in message:
            raise Refused(message["error"], message.get("parameters", {}))
        return message.get("parameters", {})

    async def call(self, method, parameters=None):
        self.say(method, parameters)
        return await self.next()

    def close(self):
        self.writer.close()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.close()


# What the kernel knows


def anonymous(pid):
    """Anonymous memory in kB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    return 0


def descriptors(pid):
    """The number of descriptors of each type in a process."""
    sorts = collections.Counter()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(OSError):
            target = os.readlink(f"/proc/{pid}/fd/{name}")
            sorts[target.partition(":[")[0]] += 1
    return sorts


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with suppress(OSError):
            found += [int(one) for one in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    return found


def lives(pid):
    """Whether the process exists and is no zombie."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
