"""mqtt: the bridge to an MQTT broker: messages through broker kills, the drain of a day without a broker, bytes on the wire, CPU, memory.

The broker is mosquitto, which is killed by SIGKILL. What it has acknowledged and not yet delivered dies with it, and that is not the
bridge's fault; a subscriber would therefore count losses of the broker. Instead, the bridge connects through a relay, which records each
PUBLISH before mosquitto receives it, and each PUBACK of mosquitto before the bridge receives it, and ends with the broker: its connections
are closed when mosquitto's are, and connections are refused until mosquitto runs again. A message counts as delivered once mosquitto has
acknowledged it, and as lost if that never happens. A message may be repeated after a reconnection if its acknowledgement had not reached
the bridge, that is, if there was none, or if it was among the last ones of the connection. All other repeats are faults.

The messages are events of a fake daemon, which serves io.vehicled. It limits the number of unacknowledged events, because a bridge without
a broker must drop events at some point. The figures on the wire, of memory and of discovery are those of vehicled with a simulated car."""
import json, math, multiprocessing, os, random, re, selectors, shutil, signal, socket, sqlite3, statistics, struct, subprocess, threading, time
from array import array
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path

import rig
from beside import simulator
from mqtt_packets import packet, packets, published
from rig import HERE, TOOLS, Daemon, Trouble, cpu, end, last_words, memory, running, start
from verdict import judge, show

DAY = 86_400


def folder(name):
    path = f"{rig.folder}/{name}"
    os.makedirs(path, exist_ok=True)
    return path


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_for(condition, seconds, trouble):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Trouble(trouble() if callable(trouble) else trouble)
        time.sleep(0.02)


# MARK: the programs

class Broker:
    """mosquitto with a plain listener, and one with TLS if there is a certificate."""

    def __init__(self, certificate=None, cpus=None):
        program = shutil.which("mosquitto", path=os.environ["PATH"] + ":/usr/sbin")
        if not program:
            raise Trouble("mosquitto is not installed; apt install mosquitto")
        self.port, self.secure_port = free_port(), free_port() if certificate else None
        self.path, self.cpus = f"{folder('broker')}/mosquitto.conf", cpus
        # As root, mosquitto would change to a user who cannot read the directory of this run.
        lines = ["user root"] if os.geteuid() == 0 else []
        lines += ["per_listener_settings false", "allow_anonymous true", "persistence false", f"listener {self.port} 127.0.0.1"]
        if certificate:
            lines += [f"listener {self.secure_port} 127.0.0.1", f"certfile {certificate[0]}", f"keyfile {certificate[1]}"]
        Path(self.path).write_text("\n".join(lines) + "\n")
        self.command = [program, "-c", self.path]
        self.start()

    def start(self):
        self.process = start(self.command, "mosquitto", self.cpus)
        wait_for(self.replies, 20, lambda: f"cannot start mosquitto: {last_words(self.process)}")

    def replies(self):
        if self.process.poll() is not None:
            raise Trouble(f"cannot start mosquitto: {last_words(self.process)}")
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True

    def kill(self):
        self.process.kill()
        self.process.wait()
        rig.live.remove(self.process)


class Bridge:
    """vehicled-mqtt. Its queue stays in a directory of this name."""

    def __init__(self, broker, daemon, name="vehicled-mqtt", keys="", more="", cpus=None):
        if not os.access(rig.binaries / "vehicled-mqtt", os.X_OK):
            raise Trouble(f"there is no {rig.binaries}/vehicled-mqtt")
        self.name, self.state = name, f"{folder(name)}/queue"
        path = Path(f"{folder(name)}/mqtt.toml")
        path.write_text(f'[mqtt]\nbroker = "{broker}"\nhost = "bench"\nclient-id = "{name}"\ninterval = 1\n{keys}\n{more}\n')
        self.command = [rig.binaries / "vehicled-mqtt", "--config", path, "--daemon", daemon, "--state", self.state]
        self.cpus = cpus
        check = subprocess.run([*self.command[:3], "--check-config"], capture_output=True, text=True)
        if check.returncode:
            raise Trouble(check.stderr.strip())
        self.start()

    def start(self):
        self.logged = len(self.log()) if os.path.exists(f"{rig.folder}/{self.name}.log") else 0
        self.process = start(self.command, self.name, self.cpus)
        self.pid = self.process.pid

    def log(self):
        return Path(f"{rig.folder}/{self.name}.log").read_text()

    def wait_for_broker(self, seconds=90):
        def connected():
            if self.process.poll() is not None:
                raise Trouble(f"vehicled-mqtt has ended: {last_words(self.process)}")
            return "by MQTT" in self.log()[self.logged:]
        wait_for(connected, seconds, lambda: f"vehicled-mqtt does not connect: {last_words(self.process)}")

    def rows(self):
        """The number of events and batches, and of states, in the queue on the disk."""
        with sqlite3.connect(f"{self.state}/queue.db") as connection:
            count = {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("event", "batch", "state")}
        return count["event"] + count["batch"], count["state"]


class FakeDaemon:
    """A server of io.vehicled with these devices for one watcher at a time."""

    def __init__(self, schemas, devices, name="fake"):
        self.path = f"{folder(name)}/io.vehicled"
        self.schemas, self.devices = schemas, {device["name"]: device for device in devices}
        self.readings = {(r["device"], r["property"]): r for device in devices for r in device["readings"]}
        self.lock, self.watcher, self.sequence = threading.Lock(), None, 0
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.path)
        self.server.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=(self.server.accept()[0],), daemon=True).start()

    def serve(self, connection):
        rest = b""
        with suppress(OSError):
            while chunk := connection.recv(65536):
                *calls, rest = (rest + chunk).split(b"\0")
                for call in map(json.loads, calls):
                    self.reply(connection, call)
        with self.lock:
            if self.watcher is connection:
                self.watcher = None

    def reply(self, connection, call):
        if call["method"] == "io.vehicled.Watch":
            with self.lock:
                for device in self.devices.values():
                    device["readings"] = [r for (name, _), r in self.readings.items() if name == device["name"]]
                self.watcher, self.sequence = connection, 0
                self.send({"snapshot": list(self.devices.values())})
        elif call["method"] == "io.vehicled.Describe":
            self.write(connection, {"parameters": {"schemas": self.schemas}})
        else:
            self.write(connection, {"error": "org.varlink.service.MethodNotFound", "parameters": {"method": call["method"]}})

    @staticmethod
    def write(connection, message):
        connection.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\0")

    def send(self, parameters):
        try:
            self.write(self.watcher, {"parameters": {"sequence": self.sequence, **parameters}, "continues": True})
            self.sequence += 1
        except OSError:
            self.watcher = None

    def emit(self, events=(), values=()):
        """Sends events and changed values to the watcher, if there is one. Returns whether there is. `values`: (device, property, value)."""
        now, changes = int(time.time() * 1e6), []
        with self.lock:
            for device, name, value in values:
                reading = self.readings[device, name] = {**self.readings[device, name], "value": value, "time": now, "age": 0}
                changes.append(reading)
            if self.watcher:
                self.send({**({"events": events} if events else {}), **({"changes": changes} if changes else {})})
            return self.watcher is not None

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        os.unlink(self.path)


def device(name, properties, kind="obd", unit=None, type="float", value=None):
    """The schema and the snapshot of a device whose properties do not keep their meaning."""
    declared = [{"name": p, "type": type, **({"unit": unit} if unit else {}), "writable": False, "motion": False, "help": p, "rank": 2,
                 "lifetime": 60} for p in properties]
    readings = [{"device": name, "property": p, **({"unit": unit} if unit else {}), **({"value": value, "time": int(time.time() * 1e6), "age": 0} if value else
                 {"reason": "not polled yet"})} for p in properties]
    return ({"device": name, "kind": kind, "properties": declared, "actions": []},
            {"name": name, "kind": kind, "state": "polling", "links": [], "readings": readings})


# MARK: MQTT on the wire

class Subscriber:
    """A subscriber by MQTT 3.1.1. Passes the time, topic and payload of each message to a function, on a thread of its own."""

    def __init__(self, port, filter, receive):
        self.socket = socket.create_connection(("127.0.0.1", port))
        text = lambda value: struct.pack(">H", len(value)) + value
        name = f"subscriber{id(self)}".encode()
        self.socket.sendall(packet(0x10, text(b"MQTT") + b"\x04\x02\x00\x00" + text(name)) + packet(0x82, b"\x00\x01" + text(filter.encode()) + b"\x00"))
        threading.Thread(target=self.read, args=(receive,), daemon=True).start()

    def read(self, receive):
        buffer = bytearray()
        with suppress(OSError):
            while chunk := self.socket.recv(1 << 16):
                buffer += chunk
                now = time.monotonic()
                for first, body in packets(buffer):
                    if first >> 4 == 3:
                        topic, _, payload = published(first, body, False, {})
                        receive(now, topic.decode(), payload)

    def close(self):
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


# MARK: the relay

class Record:
    """What the relay has seen of the numbered events, and of the live values, whose text is the time of their emission in ms."""

    # The acknowledgements at the end of a connection that may not have reached the bridge: the maximum number of messages in flight.
    UNREAD = 100

    def __init__(self, count):
        self.last_sent = array("i", [-1]) * count  # the number of the last connection on which an event was sent
        self.was_acknowledged = bytearray(count)
        self.unread = []  # for each connection, the events whose acknowledgement may not have reached the bridge
        self.newest = {}  # for each topic
        self.disorder = self.repeats = self.faults = self.marked = 0
        self.examples = []
        self.live = []
        self.connections = Counter()
        self.accepted = self.finished = None
        self.states = {}

    def sent(self, topic, payload, number, is_marked):
        """An event was sent on this connection. Returns its number."""
        begin = payload.index(b'"text":"') + 8
        event = int(payload[begin:payload.index(b" ", begin)])
        before = self.last_sent[event]
        self.last_sent[event] = number
        if before < 0:
            if event < self.newest.get(topic, -1):
                self.disorder += 1
                self.note(f"event {event} after {self.newest[topic]}")
            self.newest[topic] = max(event, self.newest.get(topic, -1))
        else:
            self.repeats += 1
            self.marked += is_marked
            if before == number or self.was_acknowledged[event] and event not in self.unread[before]:
                self.faults += 1
                self.note(f"event {event}, sent on connection {before} and acknowledged: {bool(self.was_acknowledged[event])}; again on {number}")
        return event

    def note(self, text):
        if len(self.examples) < 10:
            self.examples.append(text)

    def report(self):
        return {"connections": dict(self.connections), "acknowledged": self.was_acknowledged.count(1), "disorder": self.disorder,
                "repeats": self.repeats, "faults": self.faults, "marked": self.marked, "examples": self.examples, "live": self.live,
                "accepted": self.accepted, "finished": self.finished, "states": self.states}


class RelayedConnection:
    """A connection of the bridge, and one to the broker."""

    def __init__(self, bridge, broker, number):
        self.bridge, self.broker, self.number = bridge, broker, number
        self.buffers = {bridge: bytearray(), broker: bytearray()}
        self.is_current, self.aliases, self.in_flight = True, {}, {}
        self.recent = deque(maxlen=Record.UNREAD)
        for end in (bridge, broker):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def other(self, end):
        return self.broker if end is self.bridge else self.bridge


class RelayLoop:
    """The process of the relay."""

    def __init__(self, control, port, upstream, count, acknowledged, delay):
        self.control, self.port, self.upstream, self.acknowledged, self.delay = control, port, upstream, acknowledged, delay
        self.selector = selectors.DefaultSelector()
        self.selector.register(control, selectors.EVENT_READ)
        self.record = Record(count)
        self.listener, self.connections, self.delayed = None, {}, deque()

    def run(self):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        while True:
            timeout = max(0, self.delayed[0][0] - time.monotonic()) if self.delayed else None
            for key, _ in self.selector.select(timeout):
                if key.fileobj is self.control:
                    command = self.control.recv()
                    if command == "quit":
                        return
                    self.control.send(getattr(self, command)())
                elif key.fileobj is self.listener:
                    self.accept()
                elif key.fileobj in self.connections:
                    self.receive(key.fileobj, self.connections[key.fileobj])
            while self.delayed and self.delayed[0][0] <= time.monotonic():
                _, connection, end, data = self.delayed.popleft()
                if end in self.connections:
                    self.forward(connection, end, data)

    def open(self):
        """Listens, as the broker does."""
        if not self.listener:
            self.listener = socket.socket()
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.listener.bind(("127.0.0.1", self.port))
            self.listener.listen()
            self.selector.register(self.listener, selectors.EVENT_READ)

    def close(self):
        """Ends with the broker."""
        if self.listener:
            self.selector.unregister(self.listener)
            self.listener.close()
            self.listener = None
        for connection in set(self.connections.values()):
            self.ended(connection)

    def report(self):
        return self.record.report()

    def accept(self):
        bridge = self.listener.accept()[0]
        try:
            broker = socket.create_connection(("127.0.0.1", self.upstream))
        except OSError:
            bridge.close()
            return self.close()
        connection = RelayedConnection(bridge, broker, len(self.record.unread))
        self.record.unread.append(set())
        for end in (bridge, broker):
            self.connections[end] = connection
            self.selector.register(end, selectors.EVENT_READ)

    def receive(self, end, connection):
        try:
            data = end.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            # What waits on the way of a link with a delay still arrives.
            for entry in [entry for entry in self.delayed if entry[1] is connection]:
                self.delayed.remove(entry)
                self.forward(connection, entry[2], entry[3])
            return self.close() if end is connection.broker else self.ended(connection)
        if self.delay:
            self.delayed.append((time.monotonic() + self.delay, connection, connection.other(end), data))
        else:
            self.forward(connection, connection.other(end), data)

    def forward(self, connection, end, data):
        """Records what was received, and sends it."""
        source = connection.other(end)
        buffer = connection.buffers[source]
        buffer += data
        inspect = self.from_bridge if source is connection.bridge else self.from_broker
        for first, body in packets(buffer):
            inspect(connection, first, body)
        with suppress(OSError):
            end.sendall(data)

    def from_bridge(self, connection, first, body):
        record = self.record
        if first >> 4 == 1:
            connection.is_current = body[6] == 5
            record.connections["MQTT 5" if connection.is_current else "MQTT 3.1.1"] += 1
        if first >> 4 != 3:
            return
        topic, identifier, payload = published(first, body, connection.is_current, connection.aliases)
        if b"/event/" in topic:
            connection.in_flight[identifier] = record.sent(topic, payload, connection.number, bool(first & 0x08))
        elif topic.startswith(b"vehicled/live/"):
            record.states[topic.decode()] = payload.decode()
            with suppress(ValueError):
                emitted = float(payload)
                record.live.append((emitted / 1e3, time.monotonic() * 1e3 - emitted))

    def from_broker(self, connection, first, body):
        if first >> 4 == 2:
            self.record.accepted = time.monotonic()
        if first >> 4 != 4:
            return
        event = connection.in_flight.pop(body[0] << 8 | body[1], None)
        if event is None or len(body) > 2 and body[2] >= 0x80:
            return
        connection.recent.append(event)
        if not self.record.was_acknowledged[event]:
            self.record.was_acknowledged[event] = 1
            self.record.finished = time.monotonic()
            self.acknowledged.value += 1

    def ended(self, connection):
        self.record.unread[connection.number].update(connection.recent)
        for end in (connection.bridge, connection.broker):
            self.selector.unregister(end)
            self.connections.pop(end)
            end.close()


class Relay:
    """The relay between the bridge and the broker, as a process of its own. `delay` is that of each direction in seconds."""

    def __init__(self, upstream, count, delay=0):
        context = multiprocessing.get_context("fork")
        self.port, self.counter = free_port(), context.Value("q", 0, lock=False)
        self.control, theirs = context.Pipe()
        loop = RelayLoop(theirs, self.port, upstream, count, self.counter, delay)
        self.process = context.Process(target=loop.run, daemon=True)
        self.process.start()

    @property
    def acknowledged(self):
        """The number of acknowledged events."""
        return self.counter.value

    def __call__(self, command):
        self.control.send(command)
        if not self.control.poll(60):
            raise Trouble("the relay does not reply")
        return self.control.recv()

    def stop(self):
        with suppress(OSError):
            self.control.send("quit")
        self.process.join(5)
        self.process.kill()


# MARK: broker kills

# The number of events without an acknowledgement: more than the bridge keeps in memory, so that a part of them goes over the disk.
WINDOW = 5_000
EVENT_DEVICES, EVENT_NAMES = 4, 3


def event(number, time_us=None):
    text = f"{number} the door of the driver was opened while the vehicle was parked"
    return {"device": f"car{number % EVENT_DEVICES}", "name": f"message-{number % EVENT_NAMES}", "text": text, "time": time_us or int(time.time() * 1e6)}


def live_devices():
    """The devices that have the events, and one with live values."""
    return [device(f"car{i}", []) for i in range(EVENT_DEVICES)] + [device("live", [f"value-{i:02d}" for i in range(20)], type="string")]


def live_values():
    return [("live", f"value-{i:02d}", {"string": f"{time.monotonic() * 1e3:.2f}"}) for i in range(20)]


def fake_daemon(devices, name="fake"):
    return FakeDaemon([schema for schema, _ in devices], [snapshot for _, snapshot in devices], name)


def left(bridge):
    """Ends the bridge. Returns the numbers of events and states that its queue still has."""
    end(bridge.process)
    return bridge.rows()


def old_states(final, before, after):
    """The live values that are neither the final ones nor absent before a restart of the bridge, and those published after it that never
    were. At its end, the bridge publishes them as absent."""
    current = {f"vehicled/{device}/{name}": value["string"] for device, name, value in final}
    earliest = min(map(float, current.values())) / 1e3
    restarted = after["live"][len(before["live"]):]
    return sum(before["states"].get(topic) not in (text, "None") for topic, text in current.items()) + sum(emission < earliest - 1e-4 for emission, _ in restarted)


def run_kills(options):
    count, kills = (20_000, options.kills or 5) if options.quick else (1_000_000, options.kills or 100)
    chance = random.Random(44)
    due = sorted(chance.sample(range(count // 100, count - count // 100), kills))
    broker = Broker()
    daemon, relay = fake_daemon(live_devices()), Relay(broker.port, count)
    bridge = Bridge(f"mqtt://127.0.0.1:{relay.port}", daemon.path)
    try:
        relay("open")
        wait_for(lambda: daemon.watcher, 30, lambda: f"vehicled-mqtt does not watch: {last_words(bridge.process)}")
        begun, emitted, down, resumed, peak, next_live, used = time.monotonic(), 0, None, 0, 0, 0, cpu(bridge.pid)
        progress = (0, begun)
        while (acknowledged := relay.acknowledged) < count:
            now = time.monotonic()
            if bridge.process.poll() is not None:
                raise Trouble(f"vehicled-mqtt has ended: {last_words(bridge.process)}")
            if acknowledged > progress[0]:
                progress = (acknowledged, now)
            elif now - progress[1] > 150:
                break  # the rest is lost
            if down is None and due and acknowledged >= max(due[0], resumed + 1):
                time.sleep(chance.uniform(0, 0.05))
                due.pop(0)
                broker.kill()
                relay("close")
                down = time.monotonic() + chance.uniform(0, 1)
            elif down is not None and now >= down:
                broker.start()
                relay("open")
                down, resumed = None, acknowledged
            if now >= next_live:
                daemon.emit(values=live_values())
                next_live = now + 1.2
                peak = max(peak, memory(bridge.pid)[0])
            if emitted < count and emitted - acknowledged + 100 <= WINDOW:
                daemon.emit([event(number) for number in range(emitted, min(count, emitted + 100))])
                emitted = min(count, emitted + 100)
            else:
                time.sleep(0.002)
        elapsed, used = time.monotonic() - begun, (cpu(bridge.pid) - used) / count
        if down is not None:
            broker.start()
            relay("open")
        final = live_values()
        daemon.emit(values=final)
        time.sleep(5)  # until the disk is up to date
        rows = left(bridge)
        before = relay("report")
        bridge.start()
        time.sleep(5)
        report = relay("report")
        again = report["repeats"] - before["repeats"]
        stale = old_states(final, before, report)
    finally:
        end(bridge.process)
        relay.stop()
        daemon.close()
        end(broker.process)
    del report["live"], report["states"]
    result = {**report, "messages": count, "stale": stale, "kills": kills - len(due), "seconds": elapsed, "lost": count - report["acknowledged"],
              "rows": rows, "again": again, "cpu": used, "peak": peak / 1024, "lost.log": lost_by_log(bridge)}
    print(f"\nBroker kills: {count} events, {result['kills']} kills, {elapsed:.0f} s, {count / elapsed:.0f} events/s")
    print(f"  connections: {', '.join(f'{n} by {name}' for name, n in sorted(report['connections'].items()))}; {report['repeats']} repeats"
          f" ({report['marked']} with the DUP flag); CPU {used:.1f} µs per event; peak of resident memory {result['peak']:.1f} MB")
    print(f"  after the end: {rows[0]} events and {rows[1]} states in the queue; {again} events and {stale} old values sent by a new start")
    for text in report["examples"]:
        print(f"  {text}")
    judge("mqtt.lost", result["lost"])
    judge("mqtt.order", report["disorder"])
    judge("mqtt.repeats", max(report["faults"], before["faults"] + again) + stale)
    judge("mqtt.left", sum(rows))
    return result


def lost_by_log(bridge):
    """The messages that the bridge itself reports as dropped."""
    return sum(int(number) for number in re.findall(r"dropped the (\d+) oldest", bridge.log()))


# MARK: a day without a broker

def percentile(values, share):
    return sorted(values)[int((len(values) - 1) * share)] if values else math.nan


def run_outage(options):
    """One event per second of a simulated day, emitted in two minutes while there is no broker, and with a restart of the bridge."""
    count = 3_600 if options.quick else DAY
    speed = count / (20 if options.quick else 120)
    broker = Broker()
    daemon, relay = fake_daemon(live_devices(), "outage"), Relay(broker.port, count, delay=0.025)
    bridge = Bridge(f"mqtt://127.0.0.1:{relay.port}", daemon.path, "outage-bridge")
    try:
        wait_for(lambda: daemon.watcher, 30, lambda: f"vehicled-mqtt does not watch: {last_words(bridge.process)}")
        started, begun, emitted, next_live, peak = time.time() - DAY, time.monotonic(), 0, 0, 0
        while emitted < count:
            if emitted == count // 2 // 100 * 100 and emitted:
                time.sleep(3)
                end(bridge.process)
                halfway = bridge.rows()
                bridge.start()
                wait_for(lambda: daemon.watcher, 30, "vehicled-mqtt does not watch")
                begun = time.monotonic() - emitted / speed
            until = min(count, emitted + 100)
            if not daemon.emit([event(number, int((started + number * DAY / count) * 1e6)) for number in range(emitted, until)]):
                raise Trouble(f"vehicled-mqtt does not watch: {last_words(bridge.process)}")
            emitted = until
            if time.monotonic() >= next_live:
                daemon.emit(values=live_values())
                next_live = time.monotonic() + 1.2
                peak = max(peak, memory(bridge.pid)[0])
            time.sleep(max(0, begun + emitted / speed - time.monotonic()))
        time.sleep(15)
        queued, resident, opened = bridge.rows(), memory(bridge.pid)[0], time.monotonic()
        relay("open")
        progress = (0, time.monotonic())
        idle_from = None
        while True:
            now, acknowledged = time.monotonic(), relay.acknowledged
            if acknowledged > progress[0]:
                progress = (acknowledged, now)
            daemon.emit(values=live_values())
            if idle_from is None and (acknowledged >= count or now - progress[1] > 150):
                idle_from = now + 1
            if idle_from and now > idle_from + (10 if options.quick else 30):
                break
            time.sleep(1.2)
        report = relay("report")
        rows = left(bridge)
    finally:
        end(bridge.process)
        relay.stop()
        daemon.close()
        end(broker.process)
    live = report.pop("live")
    drain = report["finished"] - report["accepted"] if report["acknowledged"] else math.nan
    # All values are published at the connection, so the next ones wait for the interval of 1 s.
    during = [ms for emission, ms in live if report["accepted"] + 3 < emission < report["finished"]]
    idle = [ms for emission, ms in live if emission > idle_from]
    lost = count - report["acknowledged"]
    result = {**report, "events": count, "queued": queued, "halfway": halfway, "drain": drain, "reconnected": report["accepted"] - opened, "rows": rows,
              "live.during": [percentile(during, share) for share in (0.5, 0.99, 1)], "live.idle": [percentile(idle, share) for share in (0.5, 0.99, 1)],
              "lost": lost, "peak": peak / 1024, "resident": resident / 1024, "lost.log": lost_by_log(bridge)}
    print(f"\nA day without a broker: {count} events, one per {DAY / count:.0f} s of it; then a link with a round trip of 50 ms")
    print(f"  {queued[0]} events and {queued[1]} states on the disk, resident memory {resident / 1024:.1f} MB (peak {peak / 1024:.1f} MB); reconnected after"
          f" {result['reconnected']:.1f} s, drained in {drain:.1f} s: {report['acknowledged'] / drain:.0f} events/s")
    show(["live values", "number", "latency p50 ms", "p99", "max"],
         [[name, f"{len(values)}"] + [f"{percentile(values, share):.1f}" for share in (0.5, 0.99, 1)] for name, values in (("during the drain", during), ("after it", idle))])
    print(f"  after the end: {rows[0]} events and {rows[1]} states in the queue")
    for text in report["examples"]:
        print(f"  {text}")
    judge("mqtt.outage.lost", lost + report["disorder"] + report["faults"])
    judge("mqtt.outage.left", sum(rows))
    judge("mqtt.outage.drain", drain / 60 * DAY / count)
    judge("mqtt.outage.live", percentile(during, 0.99))
    return result


# MARK: CPU per value

def build_floor():
    target, source = TOOLS / "publish", HERE / "publish.c"
    if target.exists() and target.stat().st_mtime > max(source.stat().st_mtime, (HERE / "bench.h").stat().st_mtime):
        return target
    compiler = next(c for c in (os.environ.get("CC"), "cc", "gcc", "clang") if c and shutil.which(c))
    command = [compiler, "-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-o", target, source, "-lmosquitto"]
    if subprocess.run(command).returncode:
        raise Trouble("cannot build publish.c; apt install libmosquitto-dev")
    return target


DEVICES, PROPERTIES, PERIOD = 20, 50, 1.05


def bridge_cpu(broker, seconds):
    """CPU of the bridge per value, while all values change once per period."""
    names = [f"property-{i:02d}" for i in range(PROPERTIES)]
    daemon = fake_daemon([device(f"car{i:02d}", names, unit="V", value={"float": 12.0}) for i in range(DEVICES)], "cpu")
    values, attributes = Counter(), 0

    def received(_, topic, payload):
        nonlocal attributes
        if topic.endswith("/attributes"):
            attributes += 1
        elif topic.count("/") == 2 and topic[-2:].isdigit():
            values[topic] += 1

    bridge = Bridge(f"mqtt://127.0.0.1:{broker.port}", daemon.path, "cpu-bridge", cpus=rig.same)
    subscriber = Subscriber(broker.port, "vehicled/#", received)
    try:
        bridge.wait_for_broker()
        wait_for(lambda: len(values) >= DEVICES * PROPERTIES, 30, "the values were not published")
        time.sleep(3)

        def settled():
            return values.total(), attributes, cpu(bridge.pid)

        (before, described, used), begun, number = settled(), time.monotonic(), 0
        while time.monotonic() - begun < seconds:
            changes = []
            for i in range(DEVICES):
                for name in names:
                    number += 1
                    changes.append((f"car{i:02d}", name, {"float": 100 + number * 7919 % 90_000 / 100}))
            daemon.emit(values=changes)
            time.sleep(max(0, begun + number / DEVICES / PROPERTIES * PERIOD - time.monotonic()))
        time.sleep(1)
        after, attributed, total = settled()
    finally:
        end(bridge.process)
        shutil.rmtree(bridge.state, ignore_errors=True)
        daemon.close()
        subscriber.close()
    if after - before < number * 0.99:
        raise Trouble(f"{after - before} of {number} values were published")
    return {"messages": after - before, "attributes": attributed - described, "cpu": (total - used) / (after - before)}


def run_cpu(options):
    seconds = options.seconds or (10 if options.quick else 60)
    program = build_floor()
    rounds = {"libmosquitto in C": [], "vehicled-mqtt": []}
    broker = Broker(cpus=rig.same)
    try:
        for _ in range(options.rounds):
            floor = start([program, broker.port, DEVICES, PROPERTIES, seconds, PERIOD], "publish", rig.same, stdout=subprocess.PIPE)
            report = floor.stdout.readline()
            end(floor)
            if not report:
                raise Trouble(last_words(floor))
            rounds["libmosquitto in C"].append({"attributes": 0, **json.loads(report)})
            rounds["vehicled-mqtt"].append(bridge_cpu(broker, seconds))
    finally:
        end(broker.process)
    print(f"\n{DEVICES * PROPERTIES} values, all of which change every {PERIOD} s: {options.rounds} x {seconds:g} s")
    show(["", "values", "attributes", "CPU µs/value"], [
        [name, f"{statistics.median(r['messages'] for r in runs):.0f}", f"{statistics.median(r['attributes'] for r in runs):.0f}",
         f"{statistics.median(r['cpu'] for r in runs):.1f}"] for name, runs in rounds.items()])
    judge("mqtt.cpu", statistics.median(b["cpu"] / f["cpu"] for f, b in zip(*rounds.values())))
    return rounds


# MARK: a simulated car: bytes on the wire, memory, discovery

def call(path, method, **parameters):
    """The parameters of the reply of the daemon."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(json.dumps({"method": f"io.vehicled.{method}", "parameters": parameters}).encode() + b"\0")
        parts = []
        while not parts or b"\0" not in parts[-1]:
            parts.append(connection.recv(1 << 20))
        return json.loads(b"".join(parts).partition(b"\0")[0])["parameters"]


def changing(path, schema, seconds):
    """The numeric properties of a0 with a value, those that change most often within this time first."""
    counts, values, rest, deadline = Counter(), {}, b"", time.monotonic() + seconds
    numeric = {p["name"] for p in schema["properties"] if p["type"] in ("int", "float") and p.get("group") not in ("adapter", "statistics")}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.settimeout(1)
        connection.sendall(b'{"method":"io.vehicled.Watch","parameters":{"minimumIntervalMilliseconds":1000},"more":true}\0')
        while time.monotonic() < deadline:
            with suppress(TimeoutError):
                *replies, rest = (rest + connection.recv(1 << 20)).split(b"\0")
                for reading in (r for reply in replies for r in json.loads(reply)["parameters"].get("changes", [])):
                    if reading["property"] in numeric and reading.get("value"):
                        counts[reading["property"]] += values.get(reading["property"]) != reading["value"]
                        values[reading["property"]] = reading["value"]
    return [name for name, _ in counts.most_common()]


def certificate():
    files = [f"{folder('broker')}/{name}.pem" for name in ("certificate", "key")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
               "subjectAltName=DNS:localhost", "-keyout", files[1], "-out", files[0]]
    if subprocess.run(command, capture_output=True).returncode:
        raise Trouble("openssl cannot make a certificate")
    return files


# The headers of a segment without options are 40 bytes; time stamps, which Linux uses by default, take 12 more.
HEADERS = 40 + 12 * int(Path("/proc/sys/net/ipv4/tcp_timestamps").read_text().strip() != "0")


def on_the_wire(port):
    """The bytes and segments of the client's connection to this port since it was opened, in both directions."""
    lines = subprocess.run(["ss", "-H", "-tinO", "state", "established", f"( dport = :{port} )"], capture_output=True, text=True).stdout.splitlines()
    if len(lines) != 1:
        raise Trouble(f"{len(lines)} connections to the broker instead of one")
    found = {key: int((re.search(rf"\b{key}:(\d+)", lines[0]) or [0, 0])[1]) for key in ("bytes_sent", "bytes_received", "segs_out", "segs_in")}
    found["port"] = int(lines[0].split()[2].rsplit(":", 1)[1])
    found["total"] = found["bytes_sent"] + found["bytes_received"] + HEADERS * (found["segs_out"] + found["segs_in"])
    return found


def discovery_of(schema, snapshot, broker, count):
    """The discovery message of a device with this many of the properties of a car, the most important ones first."""
    properties = sorted((p for p in schema["properties"] if p["name"] not in ("link", "state", "vin")), key=lambda p: p.get("rank") or 4)[:count]
    names = {p["name"] for p in properties}
    schema = {**schema, "device": "car", "properties": properties}
    readings = [{**r, "device": "car"} for r in snapshot["readings"] if r["property"] in names]
    daemon = FakeDaemon([schema], [{**snapshot, "name": "car", "readings": readings}], "discovery")
    found = []
    subscriber = Subscriber(broker.port, "homeassistant/device/vehicled_bench_car/config", lambda _, topic, payload: found.append(payload))
    bridge = Bridge(f"mqtt://127.0.0.1:{broker.port}", daemon.path, "discovery-bridge")
    try:
        wait_for(lambda: found, 30, "no discovery message")
        time.sleep(2)
    finally:
        end(bridge.process)
        subscriber.close()
        daemon.close()
    components = json.loads(found[-1])["cmps"]
    return {"bytes": len(found[-1]), "components": len(components), "properties": len(properties), "messages": len(found)}


def run_vehicle(options):
    """A car with two bridges: one for a home, with all values, and one for a fleet, with batches of 20 signals by TLS."""
    if not shutil.which("ss"):
        raise Trouble("ss is not installed; apt install iproute2")
    seconds = options.seconds or (90 if options.quick else 600)
    files = certificate()
    broker = Broker(files)
    batches, announced, result = [], [], {}

    def received(now, topic, payload):
        if topic.startswith("fleet/"):
            batches.append((now, len(payload)))
        elif topic.startswith("homeassistant/device/"):
            announced.append(payload)

    def next_batch(fleet):
        """Waits until another batch was sent and acknowledged."""
        count = len(batches)
        wait_for(lambda: len(batches) > count, 60, lambda: f"no batch within 60 s: {last_words(fleet.process)}")
        time.sleep(1)

    subscribers = [Subscriber(broker.port, filter, received) for filter in ("fleet/#", "homeassistant/#")]
    with simulator("tcp", "obd", ["--car", "e-gmp"]) as (link, _environment), running(
            Daemon(devices=1, rate=None, link=link)) as daemon:
        time.sleep(20)  # the car is detected, and all its properties were polled
        schema, snapshot = call(daemon.socket, "Describe", device="a0")["schemas"][0], call(daemon.socket, "Status", device="a0")["devices"][0]
        signals = changing(daemon.socket, schema, 15)[:20]
        if len(signals) < 20:
            raise Trouble(f"only {len(signals)} numeric properties of the car change")
        others = ",\n".join(f'"a0.{p["name"]}"' for p in schema["properties"] if p["name"] not in signals)
        with running(Bridge(f"mqtt://127.0.0.1:{broker.port}", daemon.socket, "home-bridge")) as home, running(
                Bridge(f"mqtts://localhost:{broker.secure_port}", daemon.socket, "fleet-bridge",
                       f'ca-file = "{files[0]}"\nexclude = ["*"]\nhome-assistant = false',
                       f'[fleet]\ntenant = "bench"\nvehicle = "car-1"\nexclude = [{others}]')) as fleet:
            home.wait_for_broker()
            fleet.wait_for_broker()
            time.sleep(3)
            opened = on_the_wire(broker.secure_port)
            next_batch(fleet)
            used, number, first = cpu(home.pid), len(batches), on_the_wire(broker.secure_port)
            time.sleep(seconds - 15)
            next_batch(fleet)
            last, elapsed = on_the_wire(broker.secure_port), batches[-1][0] - batches[number - 1][0]
            sizes = [size for _, size in batches[number:]]
            result["home.cpu"] = (cpu(home.pid) - used) / elapsed / 1e4
            result["memory"], result["anonymous"] = (kilobytes / 1024 for kilobytes in memory(home.pid))
            result["fleet.memory"] = memory(fleet.pid)[0] / 1024
    for subscriber in subscribers:
        subscriber.close()
    entities = len(json.loads(announced[-1])["cmps"]) if announced else 0
    if entities < 82:  # with link and state
        raise Trouble(f"only {entities} entities of the car were announced")
    if last["port"] != opened["port"]:
        raise Trouble(f"the bridge has connected again: {last_words(fleet.process)}")
    if elapsed / len(sizes) > 35:
        raise Trouble(f"only one batch per {elapsed / len(sizes):.0f} s: the link to the car was interrupted, or the machine is busy")
    result["car"] = {"properties": len(schema["properties"]), "entities": entities, "discovery": len(announced[-1])}
    result["discovery"] = discovery_of(schema, snapshot, broker, 80)
    end(broker.process)
    # A mobile network has segments of at most 1400 bytes, loopback has not.
    split = sum(-(-size // 1400) - 1 for size in sizes) * HEADERS
    hour = (last["total"] - first["total"] + split) / elapsed * 3600
    result["wire"] = {"opened": opened, "first": first, "last": last, "seconds": elapsed, "hour": hour, "batches": sizes, "signals": signals,
                      "month": 30 * (hour + opened["total"]) / 1e6}
    segments = sum(last[key] - first[key] for key in ("segs_out", "segs_in"))
    print(f"\nA simulated car: {elapsed:.0f} s")
    print(f"  {result['car']['properties']} properties; discovery of all published ones: {entities} entities in {result['car']['discovery'] / 1e3:.1f} kB; "
          f"CPU {result['home.cpu']:.2f} %; {result['anonymous']:.1f} MB of the memory anonymous")
    print(f"  the 20 signals that change most: {len(sizes)} batches of {statistics.mean(sizes):.0f} bytes, one per {elapsed / len(sizes):.1f} s, in {segments} segments; {hour / 1e3:.1f} kB an hour, "
          f"{opened['total'] / 1e3:.1f} kB for the connection of a day")
    judge("mqtt.bytes", result["wire"]["month"])
    judge("mqtt.memory", result["memory"])
    judge("mqtt.memory.fleet", result["fleet.memory"])
    judge("mqtt.discovery", result["discovery"]["bytes"] / 1e3)
    return result


PARTS = {"kills": run_kills, "outage": run_outage, "cpu": run_cpu, "vehicle": run_vehicle}


def run_mqtt(options):
    return {part: run(options) for part, run in PARTS.items()}
