"""vehicled-history, which records the devices. At the end, all that it has recorded is compared with what the simulators did."""
import asyncio, json, time
from pathlib import Path
from random import Random

from house import Client, Gone, Refused, now
from proof import Proof
from service import Service

LOSS = 12  # seconds of values that a kill may lose: those that are not yet written, and the time until the next write has ended
ANSWER = 10.0


class History(Service):
    name = "history"
    SETTLED = 11 * 1024  # 4 MB, and the caches of SQLite: 4 MB of the writer, and 1 MB of each of three readers

    def __init__(self, soak):
        super().__init__(soak)
        self.socket = self.house.path("history.socket")
        # Health values and positions are recorded only if they are listed.
        self.others = [name for name, device in soak.devices.items() if device.lively and not any(
            f'kind = "{kind}"' in device.section for kind in ("obd", "can", "longboard", "rc-car"))]
        self.recorded = [device for device in soak.devices.values() if device.lively]
        Path(self.house.path("history.toml")).write_text(f"[history]\nrecord = {json.dumps(self.others)}\n")
        self.proof = Proof(self, 0.2, "samples")
        self.slowest = 0.0

    def command(self):
        return ("vehicled-history", "--config", self.house.path("history.toml"), "--socket", self.socket, "--daemon", self.soak.socket, "--state",
                self.house.path("history"))

    async def is_ready(self):
        try:
            async with await Client.connect(self.socket) as client:
                return (await asyncio.wait_for(self.call(client, "Status"), 5))["recording"]
        except (OSError, Gone, Refused, asyncio.TimeoutError):
            return False

    @staticmethod
    async def call(client, method, **parameters):
        return await client.call(f"io.vehicled.history.{method}", parameters)

    def tasks(self):
        return [*super().tasks(), self.ask()]

    async def ask(self):
        """Reads at random what was recorded, which must not disturb the recording."""
        random = Random(f"{self.soak.seed} ask history")
        while True:
            await asyncio.sleep(random.uniform(3, 10))
            if self.soak.is_resting or self.lock.locked():
                continue
            end = int(time.time() * 1e6)
            start = end - random.choice((10, 60, 3600)) * 1_000_000
            method, parameters = random.choice((
                ("Status", {}), ("Series", {"device": "ev"}), ("Periods", {"limit": 20}), ("Alerts", {}),
                ("Plot", {"device": "ev", "property": "rpm", "start": start, "end": end, "points": 500})))
            life, begun = self.lives[-1], now()
            try:
                async with await Client.connect(self.socket) as client:
                    await asyncio.wait_for(self.call(client, method, **parameters), ANSWER + 20)
            except Refused as refusal:
                if refusal.error != "NotRecorded":
                    self.wrong(f"{method} is refused: {refusal}")
            except (OSError, Gone, asyncio.TimeoutError) as trouble:
                if life is self.lives[-1] and not self.lock.locked() and self.soak.is_running:
                    self.wrong(f"{method} failed: {trouble!r}")
                continue
            took = now() - begun
            if not self.lock.locked() and not (self.pauses and self.pauses[-1][1] and self.pauses[-1][1] > begun):
                self.slowest = max(self.slowest, took)
                if took > ANSWER + 2 * self.house.lag(took + 1):
                    self.wrong(f"{method} was answered after {took:.1f} s")
            self.checked["answers"] += 1

    async def finish(self, until):
        """Reads everything after the daemon has ended, then ends the service."""
        spans = [(begin, min(end, until)) for begin, end in self.spans(LOSS) if begin < until]
        # What it had collected when the daemon ended is being written.
        await asyncio.sleep(3 + self.house.lag())
        async with await Client.connect(self.socket) as client:
            for device in self.recorded:
                await self.read(client, device)
                self.proof.prove(device, spans)
            client.say("io.vehicled.history.Check", {}, more=True)
            told = {}
            while "blocks" not in told:
                told = await client.next()
            self.checked["blocks"] = told["blocks"]
            if told.get("damage"):
                self.wrong(f"what it stored is damaged: {told['damage'][:3]}")
        self.checked["seconds"] = round(self.proof.seconds)
        self.figures["end"] = await self.end()

    async def read(self, client, device):
        try:
            told = await self.call(client, "Series", device=device.name)
        except Refused as refusal:
            return self.wrong(f"nothing of {device.name} is recorded: {refusal}")
        names = sorted({one["property"] for one in told["series"]} & self.proof.names(device))
        client.say("io.vehicled.history.Samples", {"device": device.name, "properties": names}, more=True)
        series, shift = {}, now() - time.time()
        while True:
            message = json.loads((await client.reader.readuntil(b"\0"))[:-1])
            told = message["parameters"]
            if "error" in message or told.get("damage"):
                self.wrong(f"the samples of {device.name} cannot be read: {message}"[:300])
            series |= {one["id"]: one["property"] for one in told.get("series") or ()}
            for one in told.get("samples") or ():
                value = one.get("value")
                self.proof.add(device.name, series[one["series"]], one["time"] / 1e6 + shift, next(iter(value.values())) if value else None)
            if not message.get("continues"):
                return None
            await asyncio.sleep(0)
