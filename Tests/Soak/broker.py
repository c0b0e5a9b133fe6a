"""mosquitto, which is killed, stopped and frozen at random; a relay between it and the bridge; and a subscriber.

What mosquitto has acknowledged in the second before a kill dies with it, which is not the fault of the bridge. The relay therefore notes
each PUBLISH of the bridge and each PUBACK of mosquitto. It refuses connections while mosquitto does not run, as mosquitto's port would."""
import asyncio, collections, os, shutil, signal, struct, sys
from contextlib import suppress
from pathlib import Path
from random import Random

from house import free_ports, now
from service import FAULTS

sys.path.append(str(Path(__file__).resolve().parents[1] / "Bench"))
from mqtt_packets import packet, packets, published  # noqa: E402


class Broker:
    """mosquitto, which stores its queues and what it retains once a second."""

    def __init__(self, soak):
        self.soak, self.house, self.port, self.program = soak, soak.house, free_ports(1), None
        self.executable = shutil.which("mosquitto", path=os.environ["PATH"] + ":/usr/sbin")
        if not self.executable:
            raise RuntimeError("mosquitto is not installed; apt install mosquitto")
        os.mkdir(self.house.path("broker"))
        # As root, mosquitto would change to a user who cannot write to the directory of this run.
        lines = ["user root"] if os.geteuid() == 0 else []
        lines += ["allow_anonymous true", "persistence true", f"persistence_location {self.house.path('broker')}/", "autosave_interval 1",
                  "max_queued_messages 0", f"listener {self.port} 127.0.0.1"]
        Path(self.house.path("mosquitto.conf")).write_text("\n".join(lines) + "\n")
        self.relay = Relay(self.port)
        self.lock = asyncio.Lock()
        self.faults = collections.Counter()
        self.troubles = []  # what, from when and to when

    async def start(self):
        self.program = await self.house.start(self.executable, "-c", self.house.path("mosquitto.conf"), name="mosquitto")
        for _ in range(200):
            with suppress(OSError):
                (await asyncio.open_connection("127.0.0.1", self.port))[1].close()
                break
            await asyncio.sleep(0.1)
        else:
            raise RuntimeError("mosquitto does not start")
        await self.relay.open()

    async def plague(self):
        chance = Random(f"{self.soak.seed} broker")
        while True:
            await asyncio.sleep(chance.uniform(10, min(60, max(30, self.soak.options.seconds / 20))))
            while self.soak.is_resting:
                await asyncio.sleep(0.2)
            async with self.lock:
                if not self.soak.is_resting:
                    await self.suffer(chance.choice(FAULTS), chance)

    async def suffer(self, what, chance):
        pause = chance.choice((chance.uniform(0, 3), chance.uniform(2, 20), chance.uniform(5, self.soak.longest)))
        self.soak.note(f"mosquitto: {what} for {pause:.1f} s")
        self.faults[what] += 1
        self.troubles.append([what, now(), None])
        if what == "freeze":
            self.program.kill(signal.SIGSTOP)
            await asyncio.sleep(pause)
            self.program.kill(signal.SIGCONT)
        else:
            self.relay.close()
            await self.program.end(signal.SIGKILL if what == "kill" else signal.SIGTERM, 20)
            await asyncio.sleep(pause)
            await self.start()
        self.troubles[-1][2] = now()
        self.soak.note("mosquitto runs again")

    def row(self):
        return ["mosquitto", f"{self.faults['kill']}/{self.faults['end']}/{self.faults['freeze']}"]

    def was_troubled(self, begin, end):
        return any(since < end and (until or end) > begin for _, since, until in self.troubles)


class Pair:
    """A connection of the bridge, and the one to mosquitto."""

    def __init__(self, bridge, broker):
        self.bridge, self.broker = bridge, broker
        self.buffers = {True: bytearray(), False: bytearray()}
        self.is_current, self.aliases, self.in_flight = True, {}, {}
        self.accepted = self.ended = None


class Relay:
    """Passes on what the bridge and mosquitto send, and tells `listener` about the messages and their acknowledgements."""

    def __init__(self, upstream):
        self.upstream, self.port, self.server, self.listener = upstream, free_ports(1), None, None
        self.pairs = set()

    async def open(self):
        self.server = self.server or await asyncio.start_server(self.came, "127.0.0.1", self.port, reuse_address=True)

    def close(self):
        """Ends with mosquitto."""
        if self.server:
            self.server.close()
            self.server = None
        for pair in self.pairs:
            for writer in (pair.bridge, pair.broker):
                writer.transport.abort()

    @property
    def is_connected(self):
        return any(pair.accepted for pair in self.pairs)

    async def came(self, reader, writer):
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.upstream)
        except OSError:
            return writer.transport.abort()
        pair = Pair(writer, back)
        self.pairs.add(pair)
        try:
            pumps = [asyncio.ensure_future(self.pump(pair, reader, back, True)), asyncio.ensure_future(self.pump(pair, there, writer, False))]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pumps:
                if pump.done() and pump.exception():
                    self.listener.relay_failed(pump.exception())
                pump.cancel()
        finally:
            pair.ended = now()
            self.pairs.discard(pair)
            for one in (writer, back):
                one.transport.abort()

    async def pump(self, pair, reader, writer, is_bridges):
        with suppress(OSError):
            while data := await reader.read(65536):
                pair.buffers[is_bridges] += data
                for first, body in packets(pair.buffers[is_bridges]):
                    (self.from_bridge if is_bridges else self.from_broker)(pair, first, body)
                if not writer.is_closing():
                    writer.write(data)
                await writer.drain()

    def from_bridge(self, pair, first, body):
        if first >> 4 == 1:
            pair.is_current = body[6] == 5
        if first >> 4 == 3:
            topic, identifier, payload = published(first, body, pair.is_current, pair.aliases)
            pair.in_flight[identifier] = self.listener.sent(pair, topic.decode(), payload)

    def from_broker(self, pair, first, body):
        if first >> 4 == 2 and body[1] == 0:
            pair.accepted = now()
        if first >> 4 == 4:
            message = pair.in_flight.pop(body[0] << 8 | body[1], None)
            if message:
                self.listener.acknowledged(pair, message, body[2] if len(body) > 2 else 0)


class Subscriber:
    """A subscriber with a stored session: mosquitto keeps what arrives while there is no connection."""

    def __init__(self, port, filters, receive):
        self.port, self.filters, self.receive = port, filters, receive
        self.writer = None

    async def run(self):
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self.follow()
            await asyncio.sleep(0.3)

    async def follow(self):
        reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        text = lambda value: struct.pack(">H", len(value)) + value.encode()
        self.writer.write(packet(0x10, text("MQTT") + b"\x04\x00\x00\x3c" + text("soak")))
        self.writer.write(packet(0x82, b"\x00\x01" + b"".join(text(filter) + b"\x01" for filter in self.filters)))
        pings = asyncio.ensure_future(self.ping(self.writer))
        buffer = bytearray()
        try:
            while data := await reader.read(65536):
                buffer += data
                for first, body in packets(buffer):
                    if first >> 4 == 3:
                        topic, identifier, payload = published(first, body, False, {})
                        self.receive(topic.decode(), payload, bool(first & 1))
                        if first & 0x06 and not self.writer.is_closing():
                            self.writer.write(packet(0x40, struct.pack(">H", identifier)))
        finally:
            pings.cancel()
            self.writer.transport.abort()

    @staticmethod
    async def ping(writer):
        while True:
            await asyncio.sleep(15)
            writer.write(packet(0xC0, b""))
