"""The clients of the soak test: some read, some watch, some set and drive, and some misbehave. Each expects replies in time, whatever
the state of the devices."""
import asyncio, collections, fcntl, json, os, re, signal, socket, struct, termios, time
from contextlib import asynccontextmanager, suppress
from random import Random

from house import Client, Gone, Refused, now

ANSWER = 2.0  # seconds for a reply without the device
COMMAND = 60.0  # seconds for a reply that needs the device
HEARTBEAT = 10.0
CROWD = 200
FRAME = re.compile(r"\(\d+\.\d{6}\) \S+ [0-9A-F]+#[0-9A-F]*( [RT])?")  # a line of candump -L
SLEEPER = 80  # seconds: a client that does not read is disconnected after a minute, once its buffers are full


class Guests:
    """All clients and their results."""

    def __init__(self, soak, seed):
        self.soak, self.seed = soak, seed
        self.house = soak.house
        self.answers = collections.Counter()
        self.refusals = collections.Counter()
        self.drivers = collections.Counter()  # how many have driven each device
        self.slowest, self.slowest_what, self.slowest_now = 0.0, "", 0.0
        self.drives = self.moved = self.heartbeats = self.changes = self.sleepers = 0
        self.is_paused, self.busy = False, 0
        self.model = {}  # the values received by the watcher of everything
        self.doubts = {}
        self.told_at = 0  # when the daemon sent what the watcher of everything received last, wall time

    def tasks(self):
        return [self.again(self.ask, 0.02, 0.4), self.again(self.ask, 0.05, 1), self.again(self.command, 0.5, 3), self.again(self.misbehave, 3, 12),
                self.again(self.drive, 5, 20), self.again(self.operate, 3, 10), self.again(self.sleep, 60, 240), self.heart(), self.watch(500),
                self.watch(0, lively=True)]

    async def again(self, what, least, most):
        random = Random(f"{self.seed} {what.__name__} {least}")
        while True:
            await asyncio.sleep(random.uniform(least, most))
            async with self.turn():
                try:
                    await what(random)
                except (Gone, ConnectionError, OSError) as end:
                    if self.soak.is_running:
                        self.soak.wrong(what.__name__, f"the daemon closed the connection: {end!r}")

    @asynccontextmanager
    async def turn(self):
        while self.is_paused:
            await asyncio.sleep(0.1)
        self.busy += 1
        try:
            yield
        finally:
            self.busy -= 1

    async def rest(self):
        """Lets running tasks finish, and starts no others."""
        self.is_paused = True
        while self.busy:
            await asyncio.sleep(0.1)

    async def timed(self, what, answer, limit=ANSWER):
        """Waits for a reply and records the time; None if the call failed with an error."""
        begun = now()
        try:
            return await asyncio.wait_for(answer, limit + 30)
        except asyncio.TimeoutError:
            return None
        except Refused as refusal:
            self.refusals[f"{what.split()[0]}: {refusal.error}"] += 1
            if refusal.error != "NoSuchProperty":
                self.soak.note(f"refused: {what}: {refusal}")
            return None
        finally:
            took = now() - begun
            self.answers[what.split()[0]] += 1
            if limit == ANSWER:
                self.slowest_now = max(self.slowest_now, took)
                if took > self.slowest:
                    self.slowest, self.slowest_what = took, what
            lag = self.house.lag(took + 1)
            if took > limit + 2 * lag:
                self.soak.wrong("socket", f"{what} was answered after {took:.2f} s (this script was up to {lag:.2f} s late itself)")

    # Those who ask.

    async def ask(self, random):
        names = list(self.soak.devices)
        name = random.choice(names)
        what, parameters = random.choice((
            ("Status", {}), ("Status", {"device": name}), ("Get", {"references": ["ev.rpm", "torq.speed", "phone.steps"]}),
            ("Get", {"references": random.sample(["ev.rpm", "ev.vin", "petrol.rpm", "car.connected", "mirror.led", "strap.heart-rate"], 3)}),
            ("Get", {"references": [f"{name}.nothing"]}), ("Describe", {"device": name}), ("Statistics", {}),
            ("org.varlink.service.GetInfo", {}), ("LogLevel", {})))
        if what in ("Statistics", "LogLevel") and what not in self.soak.methods:
            return
        async with await asyncio.wait_for(Client.connect(self.soak.socket), 30) as client:
            for _ in range(random.choice((1, 1, 1, 5))):
                await self.timed(f"{what} {parameters}", client.call(what, parameters))

    # Those who set and call.

    async def command(self, random):
        device, what, value = random.choice((
            ("mirror", "led", ("int", random.randint(0, 100))), ("phone", "steps", ("int", random.randint(0, 30000))),
            ("phone", "heart-rate", ("float", random.randint(50, 180))), ("phone", "distance", ("float", random.randint(0, 9000) / 1000)),
            ("torq", "name", ("string", random.choice(("Torq", "one", "Ångström", "")))), ("torq", "buzzer", ("bool", random.random() < 0.5)),
            ("torq", "buzz()", {"duration": ("string", "300ms")}), ("board", "mode", ("string", random.choice(("eco", "full")))),
            ("car", "mode", ("string", random.choice(("Tilt Steering", "Tilt, Lights", "0")))),
            ("car", "sensitivity", ("float", random.uniform(0.7, 1.3))), ("car", "video", ("bool", random.random() < 0.5)),
            ("car", "refresh()", {}), ("car", "stop()", {}), ("car", "mode-info()", {}), ("ev", "query()", {"request": ("string", "ATI")}),
            ("ev", "query()", {"request": ("string", "0105")}), ("ev", "rates()", {}), ("petrol", "dtc()", {}), ("petrol", "dtc-clear()", {}),
            ("air", "query()", {"request": ("string", "ATRV")}), ("board", "ping-can()", {}), ("mirror", "send-now()", {}),
            ("mirror", "send-steps", ("bool", True)), ("toy", "votes()", {})))
        async with await asyncio.wait_for(Client.connect(self.soak.socket), 30) as client:
            if what.endswith("()"):
                parameters = {"device": device, "action": what[:-2], "arguments": {key: dict([one]) for key, one in value.items()}}
                client.say("Call", parameters, more=random.random() < 0.5)
                if random.random() < 0.1:
                    # Somebody who has lost patience.
                    return await asyncio.sleep(random.uniform(0, 0.5))
                await self.timed(f"do {device}.{what}", self.last(client), COMMAND)
            else:
                await self.set(client, device, what, value)

    @staticmethod
    async def last(client):
        """The last of several replies."""
        while True:
            message = json.loads((await client.reader.readuntil(b"\0"))[:-1])
            if "error" in message:
                raise Refused(message["error"], message.get("parameters", {}))
            if not message.get("continues"):
                return message

    async def set(self, client, device, what, value):
        target = self.soak.devices[device]
        generation, day = target.generation, time.localtime().tm_yday
        answer = await self.timed(f"set {device}.{what} {value[1]}",
                                  client.call("Set", {"device": device, "property": what, "value": dict([value])}), COMMAND)
        if (device, what) in (("mirror", "led"), ("phone", "steps")):
            # What was acknowledged is kept, whatever comes.
            if answer is None:
                target.memory.pop(what, None)
                if generation == target.generation and target.trouble != "reconfigure":
                    self.soak.wrong(device, f"{what} could not be set to {value[1]}")
            else:
                target.memory[what], target.memory["day"] = value[1], day

    # Those who drive.

    async def drive(self, random):
        name = random.choice(("car", "board"))
        device = self.soak.devices[name]
        was_calm, begun = self.soak.is_calm(device), now()
        self.drivers[name] += 1
        number = self.drivers[name]
        if random.random() < 0.5:
            moved = await self.drive_by_socket(name, random)
        else:
            moved = await self.drive_by_program(name, random)
        self.drives += 1
        self.moved += moved
        await asyncio.sleep(4 + 2 * self.house.lag())
        # Another one may have begun meanwhile.
        if number == self.drivers[name] and was_calm and self.soak.is_calm(device) and device.ended < begun and not self.soak.stands(name):
            self.soak.wrong(name, f"moves on {4 + 2 * self.house.lag():.1f} s after its driver was gone: {self.soak.motion(name)}")

    def set_point(self, name, random, lease=None):
        if name == "board":
            if not lease:
                return {"target-current": random.choice((2.5, 3, 4))}
            return "Set", {"device": name, "property": "target-current", "value": {"float": random.choice((2.5, 3, 4))}, "lease": lease}
        roll, pitch = random.choice((0.3, 0.4)), random.choice((-0.1, 0, 0.1))
        if not lease:
            return {"roll": roll, "pitch": pitch}
        return "Call", {"device": name, "action": "tilt", "arguments": {"roll": {"float": roll}, "pitch": {"float": pitch}}, "lease": lease}

    async def drive_by_socket(self, name, random):
        handle, hand = await Client.connect(self.soak.socket), await Client.connect(self.soak.socket)
        moved = False
        try:
            handle.say("Drive", {"device": name, "deadlineMilliseconds": random.choice((300, 1000, 3000))}, more=True)
            lease = await self.timed(f"Drive {name}", handle.next())
            if not lease:
                return False
            until = now() + random.uniform(1, 8)
            while now() < until:
                answer = await self.timed(f"setpoint {name}", hand.call(*self.set_point(name, random, lease["lease"])), COMMAND)
                moved = moved or not self.soak.stands(name)
                if answer is None:
                    break
                await asyncio.sleep(random.uniform(0.02, 0.12))
            how = random.choice(("hangs up", "lets go", "falls silent", "ends its input"))
            if how == "falls silent":
                with suppress(Refused):
                    await asyncio.wait_for(handle.next(), 10 + 2 * self.house.lag())
                    self.soak.wrong(name, "the lease of a silent driver goes on")
            elif how == "ends its input":
                handle.writer.write_eof()
                with suppress(Refused, Gone):
                    await asyncio.wait_for(handle.next(), 10 + 2 * self.house.lag())
            elif how == "hangs up":
                handle.writer.transport.abort()
        except asyncio.TimeoutError:
            self.soak.wrong(name, "a lease that should be lost goes on for 10 s")
        finally:
            handle.close()
            hand.close()
        return moved

    async def drive_by_program(self, name, random):
        driver = await self.house.start("vehiclectl", "--socket", self.soak.socket, "drive", name, "--deadline", "1000", stdin=True,
                                        name="drive")
        moved, until = False, now() + random.uniform(1, 8)
        try:
            while now() < until and driver.is_running:
                driver.process.stdin.write(json.dumps(self.set_point(name, random)).encode() + b"\n")
                await driver.process.stdin.drain()
                await asyncio.sleep(0.08)
                moved = moved or not self.soak.stands(name)
            how = random.choice((signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, None))
            if how:
                driver.kill(how)
            else:
                driver.process.stdin.close()
            await asyncio.sleep(1.5)
        except ConnectionError:
            pass  # It has ended by itself: the lease was lost.
        finally:
            driver.kill(signal.SIGCONT)
            await driver.end()
        return moved

    # Those who use vehiclectl.

    async def operate(self, random):
        name = random.choice(list(self.soak.devices))
        what = random.choice(("status", "get", "watch", "describe", "scan", "doctor", "record", "reload", "hangup", "nonsense", "toy", "snapshot"))
        if what == "record":
            return await self.record(random.choice([one for one in self.soak.devices if one not in ("weather", "toy", "phone")]), random)
        if what in ("reload", "hangup", "nonsense"):
            return await self.reload(what)
        arguments = {
            "status": ["status", name], "get": ["get", "ev.rpm", "torq.speed"], "watch": ["watch", "--json", "--count", "30", "ev.rpm", "board.erpm", "torq.speed"],
            "describe": ["describe", name], "scan": ["scan", "ble", "--seconds", "2"], "doctor": ["doctor"],
            "toy": ["toy", random.choice(("history", "whoami", "votes"))], "snapshot": ["camera", "snapshot", "--force", self.house.path("picture.jpg")]}[what]
        # All three devices can be down, for as long as their patience, and begin to recover.
        await self.vehiclectl(*arguments, seconds=180 if what == "watch" else 60)

    async def vehiclectl(self, *arguments, seconds=60, **options):
        begun = now()
        limit = seconds + 10 * self.house.lag()
        status, out, err = await self.house.run("vehiclectl", "--socket", self.soak.socket, *arguments, seconds=limit, **options)
        self.answers["vehiclectl"] += 1
        words = " ".join(map(str, arguments))
        if status is None:
            self.soak.wrong("vehiclectl", f"{words} did not end within {now() - begun:.0f} s")
        elif status in (2, 3, 7) or status < 0:
            self.soak.wrong("vehiclectl", f"{words} ended with {status}: {err.strip()[:200]}")
        elif status:
            self.refusals[f"vehiclectl {arguments[0]}: {status}"] += 1
            self.soak.note(f"vehiclectl {words}: {status} {err.strip()[:150]}")
        return status, out

    async def record(self, name, random):
        device, file = self.soak.devices[name], self.house.path("recording.ndjson")
        generation = device.generation
        status, _ = await self.vehiclectl("record", "--seconds", str(random.choice((1, 3))), "--force", name, file)
        if status == 0:
            try:
                lines = open(file).read().splitlines()
                if 'kind = "can"' in device.section:
                    are_valid = all(FRAME.fullmatch(line) for line in lines)
                else:
                    lines = [json.loads(line) for line in lines]
                    are_valid = lines[0].get("device") == name and all("t" in line for line in lines[1:])
                if not are_valid:
                    raise ValueError("a line is no recording's")
            except (OSError, ValueError, IndexError) as trouble:
                self.soak.wrong(name, f"what was recorded cannot be read: {trouble}")
        elif generation == device.generation and device.trouble != "reconfigure":
            self.soak.wrong(name, f"it could not be recorded: {status}")
        with suppress(FileNotFoundError):
            os.unlink(file)

    async def reload(self, what):
        """An unchanged or invalid configuration changes nothing."""
        async with self.soak.configuration_lock:
            before = {one.name: one.since for one in self.soak.devices.values() if self.soak.is_calm(one) and not one.is_rough}
            links = {name: self.soak.looks[name].since for name in before}
            if what == "hangup":
                self.soak.daemon.kill(signal.SIGHUP)
                await asyncio.sleep(0.5)
            elif what == "reload":
                status, out = await self.vehiclectl("reload", "--json")
                if status == 0 and json.loads(out).get("changed"):
                    self.soak.wrong("reload", f"says that {out.strip()} changed, though nothing has")
            else:
                self.soak.write_configuration("[device.\n")
                status, _ = await self.vehiclectl("reload")
                if status == 0:
                    self.soak.wrong("reload", "takes a configuration that makes no sense")
                self.soak.write_configuration()
            await self.soak.look()
        for name, since in links.items():
            device = self.soak.devices[name]
            if self.soak.is_calm(device) and device.since == before[name] and self.soak.looks[name].since != since:
                self.soak.wrong(name, f"its link was touched by {what} without a change")

    # Those who watch.

    async def watch(self, interval, lively=False):
        random = Random(f"{self.seed} watch {interval}")
        references = None
        if lively:
            references = [f"{device.name}.{name}" for device in self.soak.devices.values() for name in list(device.lively)[:3]]
        while True:
            until = now() + random.uniform(60, 300)
            client = await Client.connect(self.soak.socket)
            try:
                parameters = {"minimumIntervalMilliseconds": interval} | ({"references": references} if references else {})
                client.say("Watch", parameters, more=True)
                expected = 0
                if not lively:
                    self.model, self.doubts = {}, {}  # until the snapshot, nothing is known
                while now() < until:
                    try:
                        told = await asyncio.wait_for(client.next(), HEARTBEAT + ANSWER + 2 * self.house.lag())
                    except asyncio.TimeoutError:
                        self.soak.wrong("watch", f"nothing was told for {HEARTBEAT + ANSWER} s, not even a heartbeat")
                        break
                    if told["sequence"] != expected:
                        self.soak.wrong("watch", f"message {told['sequence']} came where {expected} was due")
                    expected = told["sequence"] + 1
                    self.told(told, lively)
            except Refused as refusal:
                # A device of the list is just being configured anew.
                self.soak.note(f"refused: Watch: {refusal}")
                if refusal.error not in ("NoSuchDevice", "NoSuchProperty"):
                    self.soak.wrong("watch", f"is refused: {refusal}")
                await asyncio.sleep(1)
            except Gone:
                if self.soak.is_running:
                    self.soak.wrong("watch", "the daemon disconnected a watcher that reads")
                await asyncio.sleep(1)
            finally:
                client.close()

    def told(self, told, lively):
        slack = self.house.lag()
        self.changes += len(told.get("changes") or ())
        if not lively:
            self.told_at = told["time"] / 1e6
        for device in told.get("snapshot") or ():
            if not lively:
                self.model[device["name"]] = {one["property"]: one for one in device["readings"]}
        for event in told.get("events") or ():
            if not lively:
                self.soak.services.bridge.told(event)
            if event["name"] == "removed" and not lively:
                self.model.pop(event["device"], None)
        for one in told.get("changes") or ():
            if not lively:
                self.model.setdefault(one["device"], {})[one["property"]] = one
            device = self.soak.devices.get(one["device"])
            if one.get("value") and device and (words := device.judge(one, slack)):
                self.soak.wrong(device.name, f"{one['property']} {one['value']} {words}, a watcher was told")

    def compare(self, name, look):
        """Compares the values of a watcher with those of Get, except those that are just changing."""
        model = self.model.get(name)
        if model is None:
            return
        for one, reading in look.readings.items():
            value, age = reading.get("value"), reading.get("age")
            known = model.get(one, {}).get("value")
            key = (name, one)
            # A value that is no longer good must end for those who watch, too.
            if known != value and (not value or age is not None and age > 3 + 2 * self.house.lag()):
                doubt = self.doubts.get(key)
                if not doubt or doubt[0] != (value, known):
                    self.doubts[key] = ((value, known), time.time())
                # Compared with what the daemon sent later, not with the time: the watcher here may read late.
                elif self.told_at - doubt[1] > 4:
                    self.soak.wrong(name, f"{one} is {value} to who asks, and {known} to who watches, for {self.told_at - doubt[1]:.1f} s")
            else:
                self.doubts.pop(key, None)

    async def heart(self):
        """Watches a value that rarely changes, and expects heartbeats."""
        while True:
            client = await Client.connect(self.soak.socket)
            try:
                client.say("Watch", {"references": ["phone.distance-source"]}, more=True)
                last = now()
                while True:
                    told = await asyncio.wait_for(client.next(), HEARTBEAT + ANSWER + 2 * self.house.lag(30))
                    if set(told) <= {"sequence", "time"}:
                        self.heartbeats += 1
                    last = now()
            except asyncio.TimeoutError:
                self.soak.wrong("watch", f"no heartbeat came for {now() - last:.1f} s")
            except (Refused, Gone):
                await asyncio.sleep(1)
            finally:
                client.close()

    # Those who behave badly.

    async def misbehave(self, random):
        how = random.choice((self.garbage, self.half_said, self.huge, self.crowd, self.pipeline, self.half_closed, self.odd_calls, self.impatient))
        await how(random)

    async def garbage(self, random):
        client = await Client.connect(self.soak.socket)
        client.writer.write(random.randbytes(random.randint(1, 5000)) + b"\0{]\0")
        with suppress(ConnectionError):
            if await asyncio.wait_for(client.reader.read(), ANSWER + 10):
                self.soak.note("garbage was answered")
        client.close()

    async def half_said(self, random):
        client = await Client.connect(self.soak.socket)
        client.writer.write(b'{"method":"io.vehicled.Status","para')
        await asyncio.sleep(random.uniform(0, 5))
        client.writer.transport.abort()

    async def huge(self, random):
        client = await Client.connect(self.soak.socket)
        with suppress(ConnectionError):
            client.writer.write(b'{"method":"' + b"A" * (2 << 20))
            await asyncio.wait_for(client.writer.drain(), 10)
            await asyncio.wait_for(client.reader.read(), ANSWER + 10)
        client.close()

    async def crowd_of_watchers(self, random):
        await self.crowd(random, 1)

    async def crowd(self, random, watching=0.3):
        """Two hundred connections at once: each gets a reply."""
        clients = []
        try:
            for _ in range(CROWD // 20):
                # The kernel lets so many wait for the daemon's accept, and no more.
                clients += await asyncio.gather(*(Client.connect(self.soak.socket) for _ in range(20)))
                await asyncio.sleep(0.01)
            await asyncio.gather(*(self.timed("Get of a crowd", client.call("Get", {"references": ["ev.rpm", "toy.facts"]})) for client in clients))
            if random.random() < watching:
                for client in clients[:100]:
                    client.say("Watch", {}, more=True)
                await asyncio.sleep(1)
        finally:
            for client in clients:
                if random.random() < 0.5:
                    client.writer.transport.abort()
                else:
                    client.close()

    async def pipeline(self, random):
        """Hundreds of pipelined calls are answered in order."""
        async with await Client.connect(self.soak.socket) as client:
            for index in range(300):
                client.say("Get", {"references": ["phone.steps" if index % 2 else "ev.vin"]})

            async def answers():
                for index in range(300):
                    told = await client.next()
                    if told["readings"][0]["device"] != ("phone" if index % 2 else "ev"):
                        self.soak.wrong("socket", "answers come out of order")
                return True
            await self.timed("pipeline", answers(), 10)

    async def half_closed(self, random):
        async with await Client.connect(self.soak.socket) as client:
            client.say("Status")
            client.writer.write_eof()
            if await self.timed("Status of one who has said all", client.next()) is not None:
                with suppress(ConnectionError):
                    await asyncio.wait_for(client.reader.read(), ANSWER + 10)

    async def odd_calls(self, random):
        async with await Client.connect(self.soak.socket) as client:
            for method, parameters in (("Set", {"device": "ev", "property": "rpm", "value": {"int": 1}}), ("Nothing", {}),
                                       ("Set", {"device": "mirror", "property": "led", "value": {"int": 101}}),
                                       ("Set", {"device": "board", "property": "target-current", "value": {"float": 1.0}}),
                                       ("Call", {"device": "ev", "action": "query", "arguments": {"request": {"string": "04"}}}),
                                       ("Call", {"device": "car", "action": "tilt", "arguments": {}, "lease": "mine"}),
                                       ("Status", {"devise": 1}), ("Watch", {})):
                client.say(method, parameters)
                try:
                    await asyncio.wait_for(client.next(), ANSWER + 30)
                    self.soak.wrong("socket", f"{method} {parameters} was not refused")
                except Refused:
                    self.answers["refusal"] += 1

    async def impatient(self, random):
        """Streams that the client abandons."""
        for method, parameters in (("Scan", {"transport": "ble", "seconds": 30}), ("Record", {"device": "ev"}), ("Watch", {})):
            client = await Client.connect(self.soak.socket)
            client.say(method, parameters, more=True)
            await asyncio.sleep(random.uniform(0, 0.7))
            client.writer.transport.abort()

    async def sleep(self, random):
        """Watches everything and never reads: disconnected a minute after its buffers are full, without effect on other clients."""
        connection = socket.socket(socket.AF_UNIX)
        connection.setblocking(False)
        try:
            connection.connect(self.soak.socket)
            connection.send(b'{"method":"io.vehicled.Watch","parameters":{},"more":true}\0')
            most, grown = 0, now()
            while now() < grown + SLEEPER + 2 * self.house.lag() and not self.is_paused:
                await asyncio.sleep(0.5)
                (unread,) = struct.unpack("i", fcntl.ioctl(connection, termios.FIONREAD, bytes(4)))
                if unread > most:
                    most, grown = unread, now()
            if not self.is_paused:
                await asyncio.wait_for(self.drain(connection), 20)
                self.sleepers += 1
        except asyncio.TimeoutError:
            self.soak.wrong("watch", f"who does not read is still told things {SLEEPER} s after nothing more fitted in")
        except BlockingIOError:
            pass
        finally:
            connection.close()

    @staticmethod
    async def drain(connection):
        with suppress(ConnectionError):
            while await asyncio.get_running_loop().sock_recv(connection, 1 << 20):
                pass
