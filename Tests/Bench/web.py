"""web: the web server with three browsers, each of which watches 80 properties that change ten times per second: CPU and memory of the
server, and the time from the first request to the first values.

The values come from a fake daemon, because no simulated car has 80 properties that all change at this rate. The server only passes bytes
on, so their source makes no difference to it. The figures of the page itself are measured in a real browser."""
import base64, json, os, socket, struct, subprocess, threading, time
from contextlib import suppress

import rig
from rig import Trouble, cpu, end, last_words, memory, start
from verdict import judge

BROWSERS, PROPERTIES, HZ = 3, 80, 10


class FakeDaemon:
    """A server of Watch, for any number of watchers."""

    def __init__(self):
        self.path = f"{rig.folder}/web.io.vehicled"
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.path)
        self.server.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=(self.server.accept()[0],), daemon=True).start()

    @staticmethod
    def readings(step):
        now = int(time.time() * 1e6)
        return [{"device": "ev", "property": f"cell-voltage-{i:03}", "value": {"float": 3.5 + (step + i) % 100 / 100}, "unit": "V", "time": now, "age": 0.012}
                for i in range(PROPERTIES)]

    def serve(self, connection):
        with suppress(OSError):
            connection.recv(65536)
            device = {"name": "ev", "kind": "obd", "state": "polling", "links": [], "readings": self.readings(0)}
            due, step, parameters = time.monotonic(), 0, {"snapshot": [device]}
            while True:
                message = {"parameters": {"sequence": step, **parameters}, "continues": True}
                connection.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\0")
                step, due = step + 1, due + 1 / HZ
                time.sleep(max(0, due - time.monotonic()))
                parameters = {"changes": self.readings(step)}

    def close(self):
        self.server.close()


class Server:
    """vehicled-web, once it has printed its link."""

    def __init__(self, daemon, cpus=None):
        page = rig.ROOT / "Sources" / "vehicled-web" / "Page"
        self.process = start([rig.binaries / "vehicled-web", "--daemon", daemon, "--files", page], "vehicled-web", cpus, stdout=-1)
        link = self.process.stdout.readline().strip()
        if not link:
            raise Trouble(f"cannot start vehicled-web: {last_words(self.process)}")
        self.pid, (self.origin, self.token) = self.process.pid, link.split("/#token=")
        self.port = int(self.origin.rsplit(":", 1)[1])


class Browser:
    """The requests of a page: the file, the session, and a WebSocket that watches. `first` is the time from the first request to the
    first values in ms, and `messages` the number of messages."""

    def __init__(self, server, session):
        self.server, self.messages, self.bytes = server, 0, 0
        begun = time.monotonic()
        for path in ("/", "/session"):
            self.open("GET", path, session)[0].close()
        key = base64.b64encode(os.urandom(16)).decode()
        headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}
        self.connection, self.rest = self.open("GET", "/varlink/io.vehicled", {"Origin": server.origin, **session, **headers})
        self.send({"method": "io.vehicled.Watch", "parameters": {"minimumIntervalMilliseconds": 100}, "more": True})
        self.receive()
        self.first = (time.monotonic() - begun) * 1e3
        threading.Thread(target=self.read, daemon=True).start()

    def open(self, method, path, headers, body=b""):
        connection = socket.create_connection(("127.0.0.1", self.server.port))
        connection.settimeout(30)
        lines = {"Host": f"127.0.0.1:{self.server.port}", "Content-Length": str(len(body)), **headers}
        head = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items()), "", ""]
        connection.sendall("\r\n".join(head).encode() + body)
        rest = b""
        while b"\r\n\r\n" not in rest:
            if not (chunk := connection.recv(65536)):
                raise Trouble("vehicled-web has closed the connection")
            rest += chunk
        head, _, rest = rest.partition(b"\r\n\r\n")
        self.head = head.decode().split("\r\n")
        if self.head[0].split()[1] not in ("101", "200", "204"):
            raise Trouble(f"{method} {path}: {self.head[0]}")
        return connection, rest

    @classmethod
    def sign_in(cls, server):
        """The headers of a session: its cookie and its key."""
        browser = cls.__new__(cls)
        browser.server = server
        connection, body = browser.open("POST", "/session", {"Origin": server.origin}, json.dumps({"token": server.token}).encode())
        while not body.endswith(b"}"):
            body += connection.recv(4096)
        connection.close()
        cookie = next(line for line in browser.head if line.lower().startswith("set-cookie:")).split(": ", 1)[1].split(";")[0]
        return {"Cookie": cookie, "Vehicled-Key": json.loads(body)["key"]}

    def send(self, call):
        payload = json.dumps(call).encode()
        self.connection.sendall(bytes([0x81, 0x80 | len(payload)]) + bytes(4) + payload if len(payload) < 126 else
                                bytes([0x81, 0xFE]) + struct.pack(">H", len(payload)) + bytes(4) + payload)

    def take(self, count):
        while len(self.rest) < count:
            if not (chunk := self.connection.recv(1 << 16)):
                raise EOFError
            self.rest += chunk
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def receive(self):
        """Receives one message."""
        while True:
            first, length = self.take(2)
            if length >= 126:
                length, = struct.unpack(*((">H", self.take(2)) if length == 126 else (">Q", self.take(8))))
            self.take(length)
            if first & 15 == 8:
                raise EOFError
            self.bytes += length
            if first & 0x80 and first & 15 < 8:
                self.messages += 1
                return

    def read(self):
        with suppress(EOFError, OSError):
            while True:
                self.receive()


def run_page(options):
    """The page in Chromium, by web_page.py with the Python that has playwright."""
    python = rig.ROOT / ".venv" / "bin" / "python"
    if not python.exists():
        raise Trouble("playwright is not installed; run Tests/Setup/setup.sh")
    command = [python, rig.HERE / "web_page.py", "--seconds", str(options.seconds or (60 if options.quick else 600))]
    print("the page in Chromium", flush=True)
    if subprocess.run(command, env={**os.environ, "VEHICLED_PROGRAMS": str(rig.binaries)}).returncode:
        raise Trouble("a target was missed, or the page could not be measured")


def run_web(options):
    seconds, results = options.seconds or (5 if options.quick else 30), []
    for _ in range(options.rounds):
        daemon = FakeDaemon()
        server = Server(daemon.path, rig.same)
        try:
            session = Browser.sign_in(server)
            browsers = [Browser(server, session) for _ in range(BROWSERS)]
            time.sleep(2)
            used, begun, counts = cpu(server.pid), time.monotonic(), [(b.messages, b.bytes) for b in browsers]
            time.sleep(seconds)
            used, elapsed = cpu(server.pid) - used, time.monotonic() - begun
            messages = [b.messages - count for b, (count, _) in zip(browsers, counts)]
            if min(messages) < 0.95 * HZ * elapsed:
                raise Trouble(f"only {min(messages) / elapsed:.1f} messages per second instead of {HZ}: the machine is busy")
            results.append({"cpu": used / elapsed / 1e4, "memory": memory(server.pid)[0] / 1024, "anonymous": memory(server.pid)[1] / 1024,
                            "first": max(b.first for b in browsers), "rate": sum(b.bytes for b in browsers) / elapsed})
        finally:
            end(server.process)
            daemon.close()
            os.unlink(daemon.path)
    print(f"web: {BROWSERS} browsers, each with {PROPERTIES} properties at {HZ} Hz, {seconds:g} s")
    middle = sorted(results, key=lambda result: result["cpu"])[len(results) // 2]
    judge("web.cpu", middle["cpu"])
    judge("web.memory", max(result["memory"] for result in results))
    judge("web.first", max(result["first"] for result in results))
    return results
