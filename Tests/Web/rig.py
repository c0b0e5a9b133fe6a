"""The programs that the tests of the page run: simulators, the daemon, the history, vehicled-web; and a fake daemon with any values."""

import json, os, pathlib, signal, socket, socketserver, subprocess, tempfile, threading, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "Sources/vehicled-web/Page"
# The threads of the Swift tests block some signals, which programs inherit; they must be able to end by SIGTERM.
signal.pthread_sigmask(signal.SIG_SETMASK, [])
PROGRAMS = pathlib.Path(os.environ.get("VEHICLED_PROGRAMS", ROOT / ".build/debug"))


def wait(condition, seconds=20):
    """The first true result of a condition; fails after some seconds."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s")
        time.sleep(0.05)
    return result


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Rig:
    """A directory and the programs that were started in it, which `close` ends by their process ids."""

    def __init__(self):
        self.place = tempfile.TemporaryDirectory(prefix="vehicled-web-test.")
        self.directory = pathlib.Path(self.place.name)
        self.daemon_socket = self.directory / "daemon"
        self.history_socket = self.directory / "history"
        self.running = {}

    def start(self, name, program, *arguments, environment={}):
        """Starts a program and returns it; its output is in a file that `output` reads."""
        with open(self.directory / f"{name}.out", "w") as out, open(self.directory / f"{name}.err", "w") as errors:
            self.running[name] = subprocess.Popen(
                [str(PROGRAMS / program), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
                env=os.environ | environment)
        return self.running[name]

    def output(self, name):
        return (self.directory / f"{name}.out").read_text()

    def errors(self, name):
        return (self.directory / f"{name}.err").read_text()

    def first_line(self, name):
        def line():
            assert self.running[name].poll() is None, self.errors(name)
            return self.output(name).partition("\n")[0] if "\n" in self.output(name) else None

        return wait(line)

    def end(self, name, how=signal.SIGTERM):
        process = self.running.pop(name)
        process.send_signal(how)
        process.wait(20)

    def simulate(self, name, *arguments):
        """Starts a simulator, and returns its link."""
        self.start(name, "vehiclesim", *arguments, "--on", "tcp:127.0.0.1:0")
        return self.first_line(name)

    def start_daemon(self, configuration=None):
        if configuration:
            (self.directory / "vehicled.toml").write_text(configuration)
        self.start("daemon", "vehicled", "--config", self.directory / "vehicled.toml", "--socket", self.daemon_socket,
                   "--state", self.directory / "state")
        wait(lambda: self.vehiclectl("version", check=False).returncode == 0)

    def start_history(self, configuration):
        (self.directory / "history.toml").write_text(configuration)
        self.start("history", "vehicled-history", "--config", self.directory / "history.toml", "--socket", self.history_socket,
                   "--daemon", self.daemon_socket, "--state", self.directory / "history-state")
        wait(self.history_socket.exists)

    def start_web(self, *arguments, name="web"):
        """Starts vehicled-web, and returns a link that signs in one browser."""
        self.start(name, "vehicled-web", "--listen", "127.0.0.1:0", "--daemon", self.daemon_socket, "--history", self.history_socket,
                   "--files", PAGE, *arguments)
        return self.first_line(name)

    def vehiclectl(self, *arguments, check=True):
        command = [str(PROGRAMS / "vehiclectl"), "--socket", str(self.daemon_socket), *arguments]
        environment = os.environ | {"VEHICLED_HISTORY_SOCKET": str(self.history_socket)}
        return subprocess.run(command, check=check, capture_output=True, text=True, timeout=30, env=environment)

    def json(self, *arguments):
        return json.loads(self.vehiclectl(*arguments, "--json", check=False).stdout)

    def readings(self, *references):
        return self.json("get", *references)["readings"]

    def periods(self, device):
        return [period for period in self.json("trips")["periods"] if period["device"] == device]

    def close(self):
        for name in reversed(list(self.running)):
            self.end(name, signal.SIGKILL)
        self.place.cleanup()


class FakeDaemon:
    """Serves io.vehicled with the given schemas, devices, findings and texts of actions. `send` sends a reply of Watch to every client that watches."""

    def __init__(self, path, schemas, devices, findings=(), reports={}):
        self.watchers = []
        self.lock = threading.Lock()
        replies = {
            "Describe": lambda _: {"schemas": schemas},
            "Status": lambda _: {"devices": devices},
            "Diagnose": lambda _: {"findings": list(findings)},
            "Call": lambda call: {"text": reports.get(call["action"], "")},
        }
        fake = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                buffer = b""
                while chunk := self.request.recv(65536):
                    *messages, buffer = (buffer + chunk).split(b"\0")
                    for message in messages:
                        self.answer(json.loads(message))

            def answer(self, call):
                method = call["method"].split(".")[-1]
                if method == "Watch":
                    with fake.lock:
                        self.sequence = 0
                        self.stream({"snapshot": devices})
                        fake.watchers.append(self)
                elif method == "Log":
                    self.reply({"parameters": {"records": []}, "continues": True})
                elif method == "Record":
                    self.reply({"parameters": {"line": '{"link":"main"}'}, "continues": True})
                elif method in replies:
                    self.reply({"parameters": replies[method](call.get("parameters"))})
                else:
                    self.reply({"error": "org.varlink.service.MethodNotFound", "parameters": {"method": method}})

            def stream(self, parameters):
                self.sequence += 1
                # As if the values had been measured now, unless a test sends another time.
                moments = [one["time"] + one["age"] * 1e6 for one in parameters.get("changes", []) if "time" in one]
                moment = int(max(moments, default=time.time() * 1e6))
                self.reply({"parameters": {"sequence": self.sequence, "time": moment, **parameters}, "continues": True})

            def reply(self, message):
                self.request.sendall(json.dumps(message).encode() + b"\0")

            def finish(self):
                with fake.lock:
                    if self in fake.watchers:
                        fake.watchers.remove(self)

        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True

            def handle_error(self, request, address):
                pass  # A client that has disconnected is none.

        self.server = Server(str(path), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def send(self, **parameters):
        with self.lock:
            for watcher in list(self.watchers):
                try:
                    watcher.stream(parameters)
                except OSError:
                    self.watchers.remove(watcher)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def reading(device, name, value, unit=None, moment=None, age=0.0):
    """A reading as the daemon sends it; a value of None is absent, with its unit as the reason."""
    if value is None:
        return {"device": device, "property": name, "reason": unit or "stale"}
    kind = {bool: "bool", int: "int", float: "float", str: "string", list: "list"}[type(value)]
    moment = time.time() if moment is None else moment
    return {"device": device, "property": name, "value": {kind: value}, "unit": unit, "time": int(moment * 1e6), "age": age}
