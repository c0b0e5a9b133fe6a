"""vehicled-mqtt, whose events and batches must all arrive, in order, and whose values must be those of their time."""
import asyncio, collections, datetime, json, signal, sqlite3, sys, time, traceback
from pathlib import Path

from broker import Broker, Subscriber
from house import now
from proof import Proof
from service import Service

sys.path.append(str(Path(__file__).resolve().parents[2] / "etc/fleet"))
import decode  # noqa: E402

BATCH = 10  # seconds that a batch covers
STORED = 14  # seconds until the queue on the disk has what was not acknowledged: what a kill may lose
REMOVED = 5  # seconds until the queue on the disk no longer has what was acknowledged: what may be repeated after a kill
CONNECTED = 75  # seconds until the bridge is connected again: the back-off can last a minute
DELAY = 3.0  # seconds from a measurement to the publication beside the limits of the daemon: two intervals of 1 s, and a reply


class Message:
    """An event or a batch that the bridge has sent."""

    def __init__(self, key, topic):
        self.key, self.topic = key, topic
        self.first, self.pair, self.sends = now(), None, 0
        self.acknowledged = self.life = None
        self.doubts = 0  # repeats that only another event with the same text explains


class Bridge(Service):
    name = "mqtt"
    END = 5.0

    def __init__(self, soak):
        super().__init__(soak)
        self.broker = Broker(soak)
        self.broker.relay.listener = self
        self.subscriber = Subscriber(self.broker.port, ["fleet/#", "vehicled/#"], self.received)
        others = json.dumps([name for name, device in soak.devices.items() if device.lively and not any(
            f'kind = "{kind}"' in device.section for kind in ("obd", "can", "longboard", "rc-car"))])
        self.recorded = [device for device in soak.devices.values() if device.lively]
        Path(self.house.path("mqtt.toml")).write_text(
            f'[mqtt]\nbroker = "mqtt://127.0.0.1:{self.broker.relay.port}"\nhost = "soak"\nclient-id = "soak-bridge"\ninterval = 1\nrefresh = 10\n'
            f'publish = {others}\n[fleet]\ntenant = "soak"\nvehicle = "van"\nbatch = {BATCH}\npublish = {others}\n')
        self.proof = Proof(self, 1.2, "samples")
        self.lines = collections.deque(maxlen=50)
        self.is_reading = False
        self.messages = {}  # by their keys
        self.newest = {}  # the number of the latest message of each topic or session, as sent
        self.events = []  # what a client of the daemon was told: the time, and the key
        self.arrived = collections.Counter()  # by key
        self.arrivals = {}  # the number of the latest batch of each session
        self.covered = collections.defaultdict(list)  # session, start and end of the batches of each device
        self.latest = {}  # by topic
        self.repeats = 0

    # Its program.

    def command(self):
        return "vehicled-mqtt", "--config", self.house.path("mqtt.toml"), "--daemon", self.soak.socket, "--state", self.house.path("queue")

    def options(self):
        self.is_reading = False
        return {"heard": self.heard}

    def heard(self, line):
        self.lines.append(line)
        self.soak.note(f"mqtt says: {line}")
        self.is_reading = self.is_reading or f"connected to {self.soak.socket}" in line

    @property
    def is_connected(self):
        return super().is_connected and self.broker.relay.is_connected

    def last_words(self):
        return " | ".join(list(self.lines)[-3:])

    async def start(self):
        if not self.broker.program:
            await self.broker.start()
        await super().start()

    async def is_ready(self):
        return self.is_reading

    def tasks(self):
        return [*super().tasks(), self.broker.plague(), self.subscriber.run(), self.see_connection()]

    async def see_connection(self):
        """Expects that the bridge connects again."""
        since = now()
        while True:
            await asyncio.sleep(1)
            if self.broker.relay.is_connected or self.is_troubled or self.broker.lock.locked() and not self.is_resting:
                since = now()
            elif now() - since > CONNECTED + 2 * self.house.lag(CONNECTED):
                self.wrong(f"is not connected to the broker for {now() - since:.0f} s: {self.last_words()}")
                since = now()

    async def rest(self):
        await self.broker.lock.acquire()
        await super().rest()
        begun = now()
        while wrong := self.unsettled():
            await asyncio.sleep(0.5)
            if now() - begun > CONNECTED + 20 + 2 * self.house.lag(60):
                self.wrong(f"the broker does not have current values though all is well: {', '.join(wrong[:5])}; {self.last_words()}")
                break

    def go_on(self):
        self.broker.lock.release()
        super().go_on()

    def unsettled(self):
        """What the broker does not have as it should when all devices are well."""
        found = [] if self.latest.get("vehicled/soak/status") == "online" else ["status"]
        for device in self.recorded:
            if not self.soak.is_calm(device):
                continue
            found += [f"{device.name}.link"] if self.latest.get(f"vehicled/{device.name}/link") != "up" else []
            found += [f"{device.name}.{name}" for name in device.lively if self.latest.get(f"vehicled/{device.name}/{name}", "None") == "None"]
        return found

    # What it sends.

    def sent(self, pair, topic, payload):
        levels = topic.split("/")
        if topic.startswith("fleet/"):
            batch = self.decoded(payload)
            return batch and self.note(pair, topic, ("batch", batch["session"], batch["sequence"]), batch["session"], batch["sequence"])
        if len(levels) == 4 and levels[2] == "event":
            told = json.loads(payload)
            return self.note(pair, topic, ("event", topic, told["text"], told["time"]), topic, told["time"])
        if topic.startswith("vehicled/") and len(levels) == 3:
            self.judge_value(*levels[1:], payload.decode())
        return None

    def relay_failed(self, trouble):
        self.soak.wrong("soak", f"the relay has failed: {''.join(traceback.format_exception(trouble))}")

    def decoded(self, payload):
        try:
            return decode.decode(payload)
        except ValueError as trouble:
            self.wrong(f"a batch cannot be decoded: {trouble}")
            return None

    def note(self, pair, topic, key, queue, number):
        message = self.messages.get(key)
        if not message:
            message = self.messages[key] = Message(key, topic)
            if number < self.newest.get(queue, number):
                self.wrong(f"sends {key} after {self.newest[queue]}")
            self.newest[queue] = number
        else:
            self.repeats += 1
            if not self.may_repeat(message, pair):
                if key[0] == "event":
                    message.doubts += 1
                else:
                    self.wrong(f"repeats {key}, which was {'acknowledged' if message.acknowledged else 'sent on the same connection'}")
        message.pair, message.sends = pair, message.sends + 1
        return message

    def may_repeat(self, message, pair):
        if not message.acknowledged:
            return message.pair is not pair
        at, lag = message.acknowledged, self.house.lag_between(message.acknowledged, message.acknowledged + 10)
        # The acknowledgement may not have reached the bridge, or not its disk.
        was_lost = message.pair.ended and message.pair.ended < at + 3 + lag
        was_frozen = any(since - 1 < at < (until or now()) + 1 for since, until in self.pauses)
        was_killed = any(how == "killed" and at < until < at + REMOVED + lag for _, until, how in self.lives)
        return was_lost or was_frozen or was_killed

    def acknowledged(self, pair, message, code):
        # Without a subscriber, a batch stays in the queue.
        if code >= 0x80 or code and message.key[0] == "batch":
            message.pair = None
        elif not message.acknowledged:
            message.acknowledged = now()

    def judge_value(self, name, what, text):
        device = self.soak.devices.get(name)
        # An empty message clears the topic of a property that no longer exists.
        if not device or what not in device.lively or text in ("", "None"):
            return
        self.checked["values"] += 1
        if text in ("true", "false"):
            candidates = [text == "true"]
        else:
            try:
                number, half = float(text), 0.5 * 10.0 ** -len(text.partition(".")[2])
                candidates = [number + half * part / 8 for part in range(-8, 9)]
            except ValueError:
                candidates = [text]
        slack = DELAY + device.lively[what] + 2 * self.house.lag()
        if self.pauses and now() < (self.pauses[-1][1] or now()) + 5:
            # What the daemon has sent to a frozen bridge is published one after the other.
            slack += now() - self.pauses[-1][0]
        if all(words := [device.judge_at(what, value, now(), slack) for value in candidates]):
            self.wrong(f"publishes {name}.{what} {text}, which {words[0]}")

    # What arrives.

    def received(self, topic, payload, is_retained):
        if topic.startswith("fleet/"):
            self.batch_arrived(self.decoded(payload))
        elif "/event/" in topic:
            told = json.loads(payload)
            self.arrived["event", topic, told["text"], told["time"]] += 1
        else:
            self.latest[topic] = payload.decode()

    def batch_arrived(self, batch):
        if not batch:
            return
        session, sequence = batch["session"], batch["sequence"]
        self.arrived["batch", session, sequence] += 1
        if self.arrived["batch", session, sequence] > 1:
            return
        if sequence < self.arrivals.get(session, 0) and not self.broker.was_troubled(now() - 90, now()):
            self.wrong(f"batch {sequence} of {session} arrives after {self.arrivals[session]}")
        self.arrivals[session] = max(sequence, self.arrivals.get(session, 0))
        device, shift = self.soak.devices.get(batch["device"]), now() - time.time()
        if not device:
            return self.wrong(f"a batch is of {batch['device']}, which does not exist")
        names = self.proof.names(device)
        for one in batch["samples"]:
            if one["property"] in names:
                self.proof.add(device.name, one["property"], one["time"] / 1e6 + shift, one["value"])
        self.covered[device.name].append((session, batch["start"], batch["end"], batch["end"] / 1e6 + shift))
        return None

    def told(self, event):
        """An event that the daemon has reported to another client."""
        if event["name"] != "removed":
            clock = datetime.datetime.fromtimestamp(event["time"] // 1_000_000, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            key = ("event", f"vehicled/{event['device']}/event/{event['name']}", event["text"], clock)
            self.events.append((now() - time.time() + event["time"] / 1e6, key))

    # The end.

    def queued(self):
        with sqlite3.connect(f"file:{self.house.path('queue')}/queue.db?mode=ro", uri=True) as connection:
            return sum(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("event", "batch"))

    async def finish(self, until):
        subscriber = asyncio.ensure_future(self.subscriber.run())
        try:
            await self.drain()
            self.figures["end"] = await self.end(signal.SIGTERM)
            if self.queued():
                # What was not sent at the end is sent in the next run; the daemon has ended, so that there is nothing new.
                self.program = await self.house.start(*self.command(), name=self.name, **self.options())
                await self.drain()
                await self.program.end(signal.SIGTERM)
            await asyncio.sleep(3)
        finally:
            subscriber.cancel()
        self.prove(until)
        await self.broker.program.end(signal.SIGTERM)

    async def drain(self):
        """Waits until the broker has everything."""
        begun = now()
        while self.queued() or any(not message.acknowledged for message in self.messages.values()):
            await asyncio.sleep(0.5)
            if now() - begun > CONNECTED + 70 + 2 * self.house.lag(60):
                missing = [message.key for message in self.messages.values() if not message.acknowledged]
                return self.wrong(f"{self.queued()} messages stay in the queue, {len(missing)} unacknowledged: {missing[:3]}; {self.last_words()}")
        return None

    def prove(self, until):
        self.checked["batches"] = sum(1 for key in self.messages if key[0] == "batch")
        self.checked["events"] = sum(1 for key in self.messages if key[0] == "event")
        self.checked["repeats"] = self.repeats
        self.prove_sequences()
        self.prove_events(until)
        self.prove_arrivals()
        spans = [(begin, min(end, until)) for begin, end in self.spans(STORED + BATCH) if begin < until]
        for device in self.recorded:
            covered = self.covered[device.name]
            starts = {(session, start) for session, start, _, _ in covered}
            names = [name for name in self.proof.names(device) if (device.name, name) in self.proof.series]
            for session, _, end, at in covered:
                # Values are valid until the end of their batch, or go on in the next one.
                if (session, end) not in starts:
                    for name in names:
                        self.proof.add(device.name, name, at + 0.001, None)
            self.proof.prove(device, spans)
        self.checked["seconds"] = round(self.proof.seconds)

    def prove_sequences(self):
        sessions = collections.defaultdict(set)
        for message in self.messages.values():
            if message.key[0] == "batch":
                sessions[message.key[1]].add(message.key[2])
        for session, numbers in sessions.items():
            if missing := set(range(1, max(numbers) + 1)) - numbers:
                self.wrong(f"batches {sorted(missing)} of session {session} were never sent, but {max(numbers)} was")

    def prove_events(self, until):
        spans = self.spans(STORED)
        wanted = collections.Counter(key for _, key in self.events)
        for at, key in self.events:
            if at < until - 1 and any(begin < at < end for begin, end in spans) and key not in self.messages:
                self.wrong(f"event {key[1:]} was never sent ({self.soak.clock(at)})")
        for message in self.messages.values():
            if message.doubts > max(0, wanted[message.key] - 1):
                self.wrong(f"repeats {message.key}, which was acknowledged")

    def prove_arrivals(self):
        for key, message in self.messages.items():
            if message.acknowledged and not self.arrived[key]:
                if not any(what == "kill" and message.acknowledged - 1 < since < message.acknowledged + 5 for what, since, _ in self.broker.troubles):
                    self.wrong(f"{key} was acknowledged, but has not arrived ({self.soak.clock(message.acknowledged)})")
