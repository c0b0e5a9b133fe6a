"""A real Home Assistant and mosquitto without a network, for tests of the MQTT bridge. Needs root.

Home Assistant is installed in a tree with Debian 13, because it needs Python 3.13. Everything runs in namespaces of its own: the network has
only lo, and the kernel ends all processes and removes all mounts when the script ends."""
import json, os, shutil, signal, subprocess, sys, time, urllib.parse, urllib.request
from contextlib import suppress
from pathlib import Path

TREE = Path(__file__).resolve().parents[2] / ".build" / "home-assistant"
DEBIAN_PACKAGES = "ca-certificates,python3,python3-venv,python3-dev,gcc,g++,make,libffi-dev,libssl-dev,libjpeg-dev,zlib1g-dev,pkg-config,git"
# Those after the first are requirements of integrations that are always set up. Home Assistant would install them when it starts.
PYTHON_PACKAGES = ("homeassistant==2026.2.3 paho-mqtt==2.1.0 home-assistant-frontend==20260128.6 cronsim==2.7 securetar==2025.2.1 "
                   "psutil-home-assistant==0.0.1 ifaddr==0.2.0 Pillow==12.0.0 pyotp==2.9.0 PyQRCode==1.2.1")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
URL = "http://127.0.0.1:8123"
CONFIGURATION = """homeassistant: {name: Test, latitude: 0, longitude: 0, elevation: 0, unit_system: metric, time_zone: UTC}
api:
http: {server_host: 127.0.0.1, server_port: 8123}
logger: {default: warning}
"""
MQTT_ENTRY = {
    "created_at": "2026-01-01T00:00:00+00:00", "modified_at": "2026-01-01T00:00:00+00:00", "domain": "mqtt", "title": "mqtt", "source": "user",
    "entry_id": "01TESTMQTTENTRY0000000000AB", "version": 1, "minor_version": 2, "data": {"broker": "127.0.0.1", "port": 1883, "protocol": "5"},
    "options": {"discovery": True, "discovery_prefix": "homeassistant"}, "discovery_keys": {}, "subentries": [], "disabled_by": None,
    "unique_id": None, "pref_disable_new_entities": False, "pref_disable_polling": False}
# Makes /proc, /dev and /tmp available in the tree, in a mount namespace that ends with the program.
ENTER = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --bind /tmp "$0/tmp" && exec chroot "$0" "$@"'
ISOLATED = "VEHICLED_TEST_IS_ISOLATED"


def in_tree(tree, *command):
    """The command that runs a command in the tree. Files in /tmp have the same path there."""
    return ["unshare", "--mount", "sh", "-c", ENTER, str(tree), *[str(part) for part in command]]


def environment():
    # Wheels of the host are for its own version of Python.
    kept = {name: text for name, text in os.environ.items() if name not in ("PIP_FIND_LINKS", "PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "PIP_CERT": CERTIFICATES}


def install(tree):
    """Creates the tree, unless it exists and contains these packages."""
    if os.geteuid() != 0:
        sys.exit("home_assistant.py: Home Assistant runs in a Debian tree, which needs root; run sudo make test-home-assistant")
    stamp, wanted = tree / "stamp", f"{DEBIAN_PACKAGES}\n{PYTHON_PACKAGES}\n"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    print(f"home_assistant.py: installing Home Assistant in {tree}", file=sys.stderr, flush=True)
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    run = lambda *command: subprocess.run(command, check=True, env=environment(), stdout=sys.stderr)
    run("debootstrap", "--variant=minbase", f"--include={DEBIAN_PACKAGES}", "trixie", tree)
    for file in ("/etc/resolv.conf", "/etc/hosts", CERTIFICATES):
        shutil.copy(file, f"{tree}{file}")
    run(*in_tree(tree, "python3", "-m", "venv", "/srv/ha"))
    run(*in_tree(tree, "/srv/ha/bin/pip", "install", "-q", "--no-cache-dir", "--disable-pip-version-check", *PYTHON_PACKAGES.split()))
    run("chroot", tree, "apt-get", "clean")
    stamp.write_text(wanted)


def isolate():
    """Runs this script again in namespaces of its own, where the network has only lo."""
    if os.environ.get(ISOLATED) != "1":
        options = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        os.execvpe("unshare", ["unshare", *options, sys.executable, *sys.argv], {**os.environ, ISOLATED: "1"})
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # Home Assistant announces itself by multicast, and logs errors if it cannot.
    subprocess.run(["ip", "route", "add", "224.0.0.0/4", "dev", "lo"], check=True)


def wait(condition, seconds=30, interval=0.2):
    """Waits for a condition, and returns its last value."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(interval)
    return value


class Program:
    """A running program, whose output is appended to a log."""

    def __init__(self, log, *command, **options):
        self.log = Path(log)
        self.begin = self.log.stat().st_size if self.log.exists() else 0
        with open(log, "ab") as file:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, **options)

    @property
    def output(self):
        """Its own output, without that of earlier ones with the same log."""
        return self.log.read_bytes()[self.begin:].decode(errors="replace")

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise RuntimeError(f"{self.log.stem} did not end within 20 s after signal {number}") from None


def start_broker(folder):
    """Starts mosquitto. It forgets retained messages when it ends."""
    (folder / "mosquitto.conf").write_text("listener 1883 127.0.0.1\nallow_anonymous true\npersistence false\n")
    return Program(folder / "mosquitto.log", "mosquitto", "-c", folder / "mosquitto.conf", env=environment())


class HomeAssistant:
    """Home Assistant with the MQTT integration. Its configuration is in a folder in /tmp."""

    def __init__(self, tree, folder):
        self.tree, self.log, self.folder, self.token = tree, folder / "home-assistant.log", folder / "home-assistant", None
        (self.folder / ".storage").mkdir(parents=True)
        (self.folder / "configuration.yaml").write_text(CONFIGURATION)
        entries = {"version": 1, "minor_version": 5, "key": "core.config_entries", "data": {"entries": [MQTT_ENTRY]}}
        (self.folder / ".storage/core.config_entries").write_text(json.dumps(entries))

    def start(self, during=lambda: None):
        """Starts it, and returns once it is running. Calls `during` repeatedly from the time when it reports states."""
        self.program = Program(
            self.log, *in_tree(self.tree, "/srv/ha/bin/hass", "-c", self.folder, "--skip-pip", "--log-no-color"), env=environment())
        if not self.token:
            user = {"name": "Test", "username": "test", "password": "test-password", "client_id": f"{URL}/", "language": "en"}
            code = (wait(lambda: self.attempt("/api/onboarding/users", user), 90) or {}).get("auth_code")
            self.token = self.call("/auth/token", form={"grant_type": "authorization_code", "code": code, "client_id": f"{URL}/"})["access_token"]

        def is_running():
            if self.attempt("/api/states"):
                during()
            loaded = [entry["domain"] for entry in self.attempt("/api/config/config_entries/entry") or [] if entry["state"] == "loaded"]
            return (self.attempt("/api/config") or {}).get("state") == "RUNNING" and "mqtt" in loaded

        if not wait(is_running, 90):
            raise RuntimeError(f"Home Assistant does not start:\n{self.program.output[-3000:]}")

    def call(self, path, data=None, form=None):
        """Calls its REST API."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        body = urllib.parse.urlencode(form).encode() if form else None
        if data is not None:
            body, headers["Content-Type"] = json.dumps(data).encode(), "application/json"
        with urllib.request.urlopen(urllib.request.Request(URL + path, body, headers), timeout=20) as reply:
            return json.load(reply)

    def attempt(self, path, data=None):
        """The result of a call, or None while Home Assistant does not reply."""
        with suppress(OSError):
            return self.call(path, data)

    def states(self):
        """The states by entity ID."""
        return {state["entity_id"]: state for state in self.call("/api/states")}

    def registry(self):
        """The entities of MQTT, also disabled ones, by domain and unique ID. Home Assistant stores a change after 10 s."""
        file = self.folder / ".storage/core.entity_registry"
        entries = json.loads(file.read_text())["data"]["entities"] if file.exists() else []
        return {(entry["entity_id"].partition(".")[0], entry["unique_id"]): entry for entry in entries if entry["platform"] == "mqtt"}
