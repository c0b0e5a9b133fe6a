#!/usr/bin/env python3
"""A soak test: one daemon with simulated devices of every kind, with random faults: simulators are killed, stopped, restarted and
misbehave, links are cut, the radio is switched off, BlueZ and the bus end, keys are turned, devices are disconnected and reconfigured.
Meanwhile clients read, watch, set, drive, record, and misbehave. vehicled-history records the devices, vehicled-mqtt publishes them to a
mosquitto that is killed, frozen and restarted, and vehicled-web shows them in Chromium.

    make soak SOAK_SECONDS=3600
    .venv/bin/python Tests/Soak/soak.py --seconds 600 --seed 7 --json figures.json

The exit status is 1 unless all of these hold:

- Every device recovers in time after each fault: its link is up and its values are fresh. As the back-off can last a minute, the limit is
  100 s, and 200 s for the weather, which polls its service once a minute. A device without faults stays healthy.
- All values are correct. The simulators repeat known cycles, so that the value of each time is known. No value is shown after its
  lifetime, with a time at which its simulator was not running, or while its link is down. Settings are stored. Counters never
  decrease. Get and Watch agree.
- The socket replies within 2 s plus twice the scheduling latency of this script. Watchers get heartbeats.
- Wheels stop within 4 s after their driver is gone, unless the car had a fault meanwhile.
- Nothing leaks. Twice, after the warm-up (a tenth of the time, at least 120 s) and at the end, all activity pauses until all devices are
  healthy: there may be at most 2 more descriptors and 2 more threads than the first time. The median of anonymous memory in the last
  fifth of the time is at most that of the first fifth after the warm-up plus 10 % plus 1 MB.
- The daemon keeps running, and ends within 3 s with status 0 on SIGTERM, and its guardian with it.

The services are killed, ended, frozen and restarted in the first 40 % of the time; then they run without an interruption, and the rules for
leaks apply to this part, after a warm-up of a tenth of the time. Besides:

- History: each recorded value was true at its time, and is valid only while the device had it. Nothing is missing while the device and the
  service were well, except what a kill may lose. No block is damaged.
- MQTT: a relay before mosquitto notes what the bridge sends and mosquitto acknowledges. All batches and events are acknowledged in the end,
  in order. One is repeated only if its acknowledgement may have been lost. What was acknowledged reaches a subscriber, unless mosquitto was
  killed within the second until it is on the disk. Values are current when they are published. The samples of the batches are checked
  like those of the history.
- Web: the values of a device and of a live plot in Chromium agree with the daemon, with the reason of an absence. Without a server, no value
  is shown, and the page connects again within 30 s. There are no errors in the page. The heap of each page follows the rule for memory.

Each task has its own random sequence, derived from the seed: the same seed repeats the same actions at almost the same times.
Not covered: real radios and serial chips, suspend, systemd, polkit, TLS."""
import argparse, asyncio, collections, json, os, random, signal, statistics, sys, time, traceback
from contextlib import suppress
from pathlib import Path

from air import Air
from devices import Look, furnish
from guests import Guests
from house import Client, Gone, House, Refused, anonymous, children, descriptors, lives, now, threads
from leaks import Usage
from services import Services

HERE = Path(__file__).resolve().parent
WARM_UP, MOST_WRONG, LAST_LINES = 120, 60, 40
START = 90  # seconds until all devices are healthy for the first time
LOST = 20  # seconds that a device may be unhealthy without a fault
PASSWORD = "correct horse"


class Soak:
    """One run."""

    def __init__(self, options):
        self.options, self.seed = options, options.seed
        random.seed(self.seed)
        self.house = House(options.bin)
        self.socket, self.journal = self.house.path("socket"), self.house.path("vehicled.log")
        self.longest = min(90, max(10, options.seconds / 12))  # maximum seconds of a fault
        self.air = Air(self.house.path("bus"))
        self.devices = furnish(self.house, self.air, self)
        self.guests = Guests(self, self.seed)
        self.services = Services(self)
        self.looks, self.methods = {}, set()
        self.motors, self.shown = "0.00 0.00", []
        self.violations, self.notes, self.usage = [], collections.deque(maxlen=2000), Usage()
        self.faults = self.advised = 0
        self.is_running, self.is_resting = False, False
        self.configuration_lock = asyncio.Lock()
        self.air_lock = asyncio.Lock()
        self.began = now()
        self.votes, self.facts = {}, []
        self.daemon = None
        self.verdict = {}

    # Results.

    @property
    def elapsed(self):
        return now() - self.began

    def wrong(self, who, words):
        key = (str(who), words[:40])
        self.note(f"WRONG {who}: {words}")
        for one in self.violations:
            if one["key"] == key:
                one["count"] += 1
                return
        if len(self.violations) < MOST_WRONG:
            self.violations.append({"key": key, "at": self.elapsed, "clock": time.strftime("%H:%M:%S"), "who": str(who), "words": words,
                                    "count": 1, "journal": self.last_lines(6, str(who)) if self.is_running else []})
            print(f"  wrong at {self.elapsed:.0f} s: {who}: {words}", flush=True)

    @staticmethod
    def clock(at):
        return time.strftime("%H:%M:%S", time.localtime(time.time() - now() + at))

    def note(self, words):
        line = f"{self.elapsed:8.1f} {time.strftime('%H:%M:%S')} {words}"
        self.notes.append(line)
        if self.options.verbose:
            print(line, file=sys.stderr, flush=True)

    def last_lines(self, count, about=None):
        with suppress(OSError):
            with open(self.journal, "rb") as file:
                file.seek(max(0, os.path.getsize(self.journal) - 65536))
                lines = file.read().decode(errors="replace").splitlines()
            if about in self.devices:
                lines = [line for line in lines if f" {about}" in line]
            return lines[-count:]
        return []

    def words(self, device):
        look = self.looks.get(device.name)
        if not look:
            return "unknown to the daemon"
        absent = [f"{name}: {look.readings.get(name, {}).get('reason')}" for name in device.lively if look.value(name) is None]
        return f"{look.state}, link {look.link}, {look.fault or 'no fault'}" + (f", {absent[0]}" if absent else "")

    # The daemon.

    def write_configuration(self, text=None):
        path = self.house.path("vehicled.toml")
        text = text or 'log-level = "info"\n' + "\n".join(device.configuration() for device in self.devices.values())
        Path(path + ".new").write_text(text)
        os.rename(path + ".new", path)

    async def call(self, method, parameters=None):
        async with await Client.connect(self.socket) as client:
            return await asyncio.wait_for(client.call(method, parameters), 60)

    async def begin(self):
        """Starts everything, and waits until all devices are healthy."""
        self.feeling = asyncio.ensure_future(self.house.feel())
        await self.air.open()
        for name, text in (("key", "ascii:0123456789ABCDEF"), ("iv", "hex:46454443424139383736353433323130")):
            Path(self.house.path(name)).write_text(text)
            os.chmod(self.house.path(name), 0o600)
        for device in self.devices.values():
            if device.simulator:
                await device.simulator.start()
        self.write_configuration()
        self.daemon = await self.house.start(
            "vehicled", "--config", self.house.path("vehicled.toml"), "--socket", self.socket, "--state", self.house.path("state"),
            environment={"DBUS_SYSTEM_BUS_ADDRESS": self.air.address, "NOTIFY_SOCKET": ""})
        for _ in range(300):
            with suppress(OSError, Gone, Refused):
                await self.call("org.varlink.service.GetInfo")
                break
            await asyncio.sleep(0.1)
            if not self.daemon.is_running:
                raise RuntimeError("the daemon does not start")
        text = (await self.call("org.varlink.service.GetInterfaceDescription", {"interface": "io.vehicled"}))["description"]
        self.methods = {line.split("(")[0].split()[1] for line in text.splitlines() if line.startswith("method ")}
        self.is_running = True
        await self.call("Call", {"device": "toy", "action": "register", "arguments": {
            "name": {"string": "Ada"}, "email": {"string": "ada@example.org"}, "password": {"string": PASSWORD}}})
        self.throwing = asyncio.ensure_future(self.throw())
        for name in ("weather", "health", "send-heart-rate", "send-steps", "send"):
            await self.call("Set", {"device": "mirror", "property": name, "value": {"bool": True}})

    async def throw(self):
        """The toy itself, which is thrown and loses power at random."""
        while True:
            line = self.devices["toy"].simulator.line
            toy = await self.house.start("vehiclesim", "toy", "--joined", "--user", "1", "--throw", "7", "--instant", "--phone", "tcp:127.0.0.1:1",
                                         "--server", f"tcp:127.0.0.1:{line.port}", name="thrown")
            await asyncio.sleep(random.Random(self.seed).uniform(60, 120))
            await toy.end()

    # Looking.

    async def watch_over(self):
        """Compares the status of all devices with the expected one twice a second."""
        client = None
        while True:
            try:
                client = client or await Client.connect(self.socket)
                begun = now()
                told = await self.guests.timed("Status of all", client.call("Status"))
                if told:
                    self.take(told["devices"], begun)
            except (Gone, OSError) as end:
                client = None
                if self.is_running:
                    self.wrong("socket", f"the daemon closed the connection of a client that only reads: {end!r}")
                    await asyncio.sleep(1)
            await asyncio.sleep(0.5)

    async def look(self):
        self.take((await self.call("Status"))["devices"], now())

    def take(self, devices, asked):
        slack = self.house.lag()
        self.looks = {one["name"]: Look(one, asked) for one in devices}
        for device in self.devices.values():
            look = self.looks.get(device.name)
            if not look:
                self.wrong(device.name, "the daemon does not know it any more")
                continue
            for words in device.examine(look, slack):
                self.wrong(device.name, f"{words}; {device.trouble or ('recovering' if device.is_recovering else 'calm')}")
            self.guests.compare(device.name, look)
            device.since = look.since
            well = device.looks_well(look)
            if well and not device.is_well_now:
                self.note(f"{device.name} is well")
            elif not well and device.is_well_now:
                self.note(f"{device.name} is not well: {self.words(device)}")
            device.is_well_now = well
            if well:
                device.was_well = now()
                if device.is_recovering:
                    device.recovered()
            elif device.is_recovering and not device.trouble:
                if look.fault and device.advice in look.fault and now() - device.ended > 5:
                    # Somebody does what the daemon says is to be done.
                    device.is_lost, self.advised = True, self.advised + (not device.is_lost)
                elif now() - device.ended > device.patience + slack and not device.is_lost:
                    device.is_lost = True
                    if device.happened:
                        device.happened[-1][2] = -1
                    what = device.happened[-1][0] if device.happened else "the start"
                    self.wrong(device.name, f"is not well {now() - device.ended:.0f} s after {what}: {self.words(device)}")
            elif not device.trouble and now() - max(device.was_well, device.ended) > LOST + 2 * slack:
                self.wrong(device.name, f"is not well though nothing happened to it: {self.words(device)}")
            device.note_calm(self.is_calm(device))

    def is_calm(self, device):
        return not device.trouble and not device.is_recovering and device.is_well_now

    # Wheels.

    def car_says(self, line):
        if "car: motors " in line:
            self.motors = line.rpartition("car: motors ")[2]
            self.note(f"car: motors {self.motors}")
        elif "a new program is listening" in line or "the program ends" in line:
            self.motors = "0.00 0.00"

    def mirror_says(self, line):
        if "the display shows" in line:
            self.shown.append(line.rpartition("the display shows ")[2])
            del self.shown[:-50]
        elif "crash" in line or "corrupted data" in line:
            self.wrong("mirror", f"its program would have failed: {line}")

    def motion(self, name):
        look = self.looks.get(name)
        return f"motors {self.motors}" if name == "car" else f"motor-current {look and look.value('motor-current')} A"

    def stands(self, name):
        if name == "car":
            return self.motors == "0.00 0.00"
        look = self.looks.get(name)
        # A VESC that nobody told anything goes its round by itself.
        return not look or look.value("motor-current") in (None, 0) or look.value("target-current") is None and not self.has_driven(name)

    def has_driven(self, name):
        return self.devices[name].memory.get("driven", -1) > self.devices[name].ended

    # What happens.

    async def plague(self, device):
        """Injects one fault after another into a device, which must recover before the next."""
        chance = random.Random(f"{self.seed} {device.name}")
        while True:
            await asyncio.sleep(chance.uniform(*self.options.pause))
            while self.is_resting:
                await asyncio.sleep(0.2)
            async with device.lock:
                if self.is_resting:
                    continue
                what = chance.choice(device.faults)
                self.note(f"{device.name}: {what}")
                if what == "reconfigure":
                    async with self.configuration_lock:
                        await device.suffer(what, self, chance)
                else:
                    await device.suffer(what, self, chance)
                await self.recovery([device])

    async def recovery(self, devices):
        """Waits until all devices are healthy; a device that cannot recover by itself gets a new simulator."""
        while any(device.is_recovering for device in devices):
            await asyncio.sleep(0.2)
            for device in devices:
                if device.is_recovering and device.is_lost:
                    device.is_lost = False
                    self.note(f"{device.name} gets a new simulator")
                    async with device.suffering("lost"):
                        if device.simulator:
                            await device.simulator.end()
                            await asyncio.sleep(1)
                            await device.simulator.start()

    async def plague_air(self):
        """Injects faults of Bluetooth as a whole."""
        chance = random.Random(f"{self.seed} air")
        flying = [device for device in self.devices.values() if device.simulator and device.simulator.air]
        while True:
            await asyncio.sleep(chance.uniform(60, 150))
            while self.is_resting:
                await asyncio.sleep(0.2)
            for device in flying:
                await device.lock.acquire()
            try:
                if self.is_resting:
                    continue
                what = chance.choice(("radio off", "BlueZ restarts", "the bus dies", "searches are refused"))
                self.note(f"air: {what}")
                pause = min(chance.choice((chance.uniform(0.1, 3), chance.uniform(3, self.longest))), self.longest)
                for device in flying:
                    device.trouble, device.began, device.is_cut = what, now(), True
                if what == "radio off":
                    self.air.power(False)
                    await asyncio.sleep(pause)
                    self.air.power(True)
                elif what == "BlueZ restarts":
                    self.air.end_bluez()
                    await asyncio.sleep(pause)
                    self.air.begin_bluez()
                elif what == "the bus dies":
                    self.air.end_bus()
                    await asyncio.sleep(pause)
                    await self.air.open()
                    self.air.begin_bluez()
                else:
                    self.air.refusals = chance.randint(1, 4)
                    self.air.power(False)
                    await asyncio.sleep(0.5)
                    self.air.power(True)
                for device in flying:
                    device.happened.append([what, now() - device.began, None])
                    device.ended, device.is_recovering, device.trouble = now(), True, None
                self.faults += 1
                await self.recovery(flying)
            finally:
                for device in flying:
                    device.lock.release()

    async def nudge(self):
        """Reads the devices that publish nothing by themselves."""
        while True:
            for device in self.devices.values():
                if device.nudge and not (self.is_resting and self.is_calm(device)):
                    with suppress(Refused, Gone, OSError, asyncio.TimeoutError):
                        await device.nudge(device)
                        device.nudged = now()
            await asyncio.sleep(3)

    async def ask_weather(self, device):
        await self.call("Call", {"device": "weather", "action": "refresh"})

    async def use_toy(self, device):
        """Reads the facts and votes. Stored votes must reach the server in the end."""
        async def call(action, **arguments):
            return await self.call("Call", {"device": "toy", "action": action, "arguments": arguments})
        if self.facts and random.random() < 0.7:
            fact, vote = random.choice(self.facts), random.choice(("up", "down", "clear"))
            await call("vote", id={"int": fact}, vote={"string": vote})
            self.votes[fact] = "none" if vote == "clear" else vote
        told = await call("history")
        self.facts = [int(row["cells"][0]) for row in told.get("rows") or ()]

    # Rest.

    async def rest(self):
        """Pauses faults and clients until all devices are healthy, so that the daemon holds only what it needs."""
        self.is_resting = True
        await self.guests.rest()
        await self.services.rest()
        locks = [device.lock for device in self.devices.values()]
        for lock in locks:
            await lock.acquire()
        begun = now()
        while not all(self.is_calm(device) for device in self.devices.values()):
            await asyncio.sleep(0.2)
            if now() - begun > max(device.patience for device in self.devices.values()):
                names = [device.name for device in self.devices.values() if not self.is_calm(device)]
                self.wrong("rest", f"not all is well: {', '.join(f'{name} ({self.words(self.devices[name])})' for name in names)}")
                break
        await asyncio.sleep(5)
        seen = []
        for _ in range(10):
            await asyncio.sleep(0.5)
            seen.append((sum(descriptors(self.daemon.pid).values()), threads(self.daemon.pid)))
        found = {"descriptors": min(one for one, _ in seen), "threads": min(one for _, one in seen), "kB": anonymous(self.daemon.pid),
                 "sorts": dict(descriptors(self.daemon.pid)), "at": self.elapsed}
        await self.prove()
        for lock in locks:
            lock.release()
        self.services.go_on()
        self.guests.is_paused = self.is_resting = False
        return found

    async def prove(self):
        """Checks that the settings have arrived."""
        mirror = self.devices["mirror"]
        wanted = mirror.memory.get("led")
        if wanted is not None:
            for _ in range(100):
                bright = [line for line in self.shown if "Bright " in line]
                if bright and f"Bright {wanted}.0" in bright[-1]:
                    break
                await asyncio.sleep(0.2)
            else:
                self.wrong("mirror", f"its light was set to {wanted}, and the display shows {bright[-1:] or 'nothing'}")
        with suppress(Refused):
            told = await self.call("Call", {"device": "toy", "action": "history"})
            fact, vote = (told["columns"].index(name) for name in ("id", "vote"))
            found = {int(row["cells"][fact]): row["cells"][vote] for row in told["rows"]}
            lost = {fact: (vote, found[fact]) for fact, vote in self.votes.items() if fact in found and found[fact] != vote}
            if lost:
                self.wrong("toy", f"the server has other votes than were given: {lost}")

    # Figures.

    async def sample(self):
        while True:
            self.usage.sample(self.elapsed, self.daemon.pid)
            self.services.sample()
            await asyncio.sleep(2)

    async def minutes(self):
        minute = 0
        while True:
            minute += 1
            await asyncio.sleep(max(0, self.began + 60 * minute - now()))
            _, kB, files, count = self.usage.samples[-1]
            back = sum(1 for device in self.devices.values() for one in device.happened if one[2] is not None and one[2] >= 0)
            print(f"{minute:4d} min  faults {self.faults:4d}  well again {back:4d}  slowest answer {self.guests.slowest_now * 1e3:6.0f} ms"
                  f"  RssAnon {kB / 1024:5.1f} MB  fds {files:3d}  threads {count:2d}  answers {sum(self.guests.answers.values()):7d}"
                  f"  late {self.house.lag(60):.2f} s", flush=True)
            self.guests.slowest_now = 0

    def judge_leaks(self, first, last, begin, end):
        figures, growth = self.usage.judge(begin, end)
        self.verdict = {"first rest": first, "last rest": last, **figures}
        if growth:
            self.wrong("memory", growth)
        if last["descriptors"] > first["descriptors"] + 2:
            self.wrong("descriptors", f"were {first['descriptors']} and are {last['descriptors']} when all rests: {first['sorts']}, {last['sorts']}")
        if last["threads"] > first["threads"] + 2:
            self.wrong("threads", f"were {first['threads']} and are {last['threads']} when all rests")

    # The whole.

    def go(self, tasks, *some):
        """Starts the endless tasks; one that fails ends the run."""
        for one in some:
            task = asyncio.ensure_future(one)
            task.add_done_callback(self.ended)
            tasks.append(task)

    def ended(self, task):
        if not task.cancelled() and task.exception() and not self.failure.done():
            self.failure.set_exception(task.exception())

    @staticmethod
    async def stop(tasks):
        """Cancels tasks until they have ended, because wait_for can swallow a cancellation."""
        while pending := [task for task in tasks if not task.done()]:
            for task in pending:
                task.cancel()
            await asyncio.wait(pending, timeout=1)

    async def run(self):
        print(f"soak: seed {self.seed}, {self.options.seconds} s, {self.house.folder}", flush=True)
        tasks, work = [], None
        try:
            await self.begin()
            self.failure = asyncio.get_running_loop().create_future()
            self.go(tasks, self.watch_over(), self.sample(), self.minutes(), self.nudge())
            ended = asyncio.ensure_future(self.daemon.process.wait())
            work = asyncio.ensure_future(self.work(tasks))
            await asyncio.wait([work, ended, self.failure], return_when=asyncio.FIRST_COMPLETED)
            if self.failure.done():
                self.failure.result()
            if ended.done() and self.is_running:
                self.is_running = False
                self.wrong("vehicled", f"it died: status {self.daemon.process.returncode}")
                self.violations[-1]["journal"] = self.last_lines(LAST_LINES)
            else:
                await work
        except Exception as trouble:
            self.wrong("soak", f"the test itself has failed: {trouble!r}")
            traceback.print_exc()
        finally:
            self.is_running = False
            self.lines = self.last_lines(LAST_LINES)
            await self.stop([*tasks, work] if work else tasks)
            if self.options.keep:
                os.system(f"cp {self.journal} {self.options.keep}")
                Path(self.options.keep + ".notes").write_text("\n".join(self.notes))
            self.air.close()
            await self.services.close()
            await self.house.close()

    async def work(self, tasks):
        begun = now()
        while not all(device.is_well_now for device in self.devices.values()):
            await asyncio.sleep(0.2)
            if now() - begun > START + 5 * self.house.lag():
                names = [device.name for device in self.devices.values() if not device.is_well_now]
                self.wrong("start", f"not all is well: {', '.join(f'{name} ({self.words(self.devices[name])})' for name in names)}")
                break
        for device in self.devices.values():
            device.trouble, device.ended = None, now()
        print(f"  all {len(self.devices)} devices are well after {now() - begun:.1f} s", flush=True)
        self.began = now()
        await self.services.begin()
        self.go(tasks, *self.guests.tasks(), *self.services.tasks())
        # What is made with the first use is no leak.
        chance = random.Random(self.seed)
        for what in (self.guests.crowd_of_watchers, self.guests.drive, self.guests.impatient, self.guests.pipeline, self.guests.huge):
            await what(chance)
        for arguments in (["doctor"], ["scan", "ble", "--seconds", "2"], ["camera", "snapshot", "--force", self.house.path("picture.jpg")]):
            await self.guests.vehiclectl(*arguments)
        self.go(tasks, *(self.plague(device) for device in self.devices.values()), self.plague_air())
        warm = max(WARM_UP, self.options.seconds / 10)
        await asyncio.sleep(max(0, self.began + warm - now()))
        first = await self.rest()
        warm_until = self.elapsed
        await asyncio.sleep(max(20, self.began + self.options.seconds - now()))
        until = self.elapsed
        last = await self.rest()
        self.judge_leaks(first, last, warm_until, until)
        self.services.judge(until)
        await self.finish(tasks)

    async def finish(self, tasks):
        """Ends the daemon while it has all its devices and some clients."""
        self.is_running, until = False, now()
        await self.stop(tasks)
        clients = [await Client.connect(self.socket) for _ in range(12)]
        for index, client in enumerate(clients):
            client.say("Watch" if index % 2 else "Record", {} if index % 2 else {"device": "ev"}, more=True)
        guardians = children(self.daemon.pid)
        begun = now()
        status = await self.daemon.end(signal.SIGTERM, 20)
        took = now() - begun
        self.verdict |= {"end": took, "status": status}
        if status != 0:
            self.wrong("vehicled", f"it ended with status {status} when it was told to end")
        if took > 3 + self.house.lag():
            self.wrong("vehicled", f"it took {took:.1f} s to end")
        for client in clients:
            client.close()
        begun = now()
        while left := [pid for pid in guardians if lives(pid)]:
            await asyncio.sleep(0.05)
            if now() - begun > 3 + self.house.lag():
                self.wrong("vehicled", f"its guardian has not ended: {left}")
                break
        self.verdict["guardian's end"] = now() - begun
        await self.services.finish(until)

    # The end.

    def report(self):
        print(f"\n{'device':8s} {'faults':>6s} {'well again':>10s} {'median':>8s} {'longest':>8s}   longest after")
        for device in self.devices.values():
            again = [(took, what) for what, _, took in device.happened if took is not None and took >= 0]
            longest = max(again, default=(0, ""))
            print(f"{device.name:8s} {len(device.happened):6d} {len(again):10d} {statistics.median([one for one, _ in again] or [0]):6.1f} s"
                  f" {longest[0]:6.1f} s   {longest[1]}")
        guests = self.guests
        print(f"\nanswers {sum(guests.answers.values())}, slowest {guests.slowest * 1e3:.0f} ms ({guests.slowest_what[:60]});"
              f" changes to watchers {guests.changes}; heartbeats {guests.heartbeats}; drives {guests.drives}, of which {guests.moved} moved;"
              f" sleepers let go {guests.sleepers}; refused {sum(guests.refusals.values())}; restarted because the daemon said so {self.advised}")
        if "kB at the end" in self.verdict:
            verdict = self.verdict
            first, last = verdict["first rest"], verdict["last rest"]
            print(f"anonymous memory {verdict['kB after the warm-up'] / 1024:.2f} MB after the warm-up, {verdict['kB at the end'] / 1024:.2f} MB at the end,"
                  f" {verdict['most kB'] / 1024:.2f} MB at most; resting {first['kB'] / 1024:.2f} MB, then {last['kB'] / 1024:.2f} MB")
            print(f"descriptors when all rests {first['descriptors']}, then {last['descriptors']} (at most {verdict['most descriptors']});"
                  f" threads {first['threads']}, then {last['threads']} (at most {verdict['most threads']});"
                  f" end after {verdict.get('end', 0):.2f} s with status {verdict.get('status')}")
        self.services.report()
        if self.violations:
            print(f"\n{len(self.violations)} things are wrong (seed {self.seed}):")
            for one in self.violations:
                times = f" ({one['count']} times)" if one["count"] > 1 else ""
                print(f"- at {one['at']:.0f} s ({one['clock']}): {one['who']}: {one['words']}{times}")
                for line in one["journal"]:
                    print(f"      {line[:200]}")
            print("\nthe last lines of the journal:\n" + "\n".join(f"  {line[:200]}" for line in self.lines))
        else:
            print("\nall is well")

    def figures(self):
        return {
            "seed": self.seed, "seconds": self.elapsed, "faults": self.faults, "verdict": self.verdict,
            "devices": {device.name: device.happened for device in self.devices.values()}, "services": self.services.figures(),
            "answers": dict(self.guests.answers), "refusals": dict(self.guests.refusals), "slowest": self.guests.slowest,
            "slowest what": self.guests.slowest_what, "restarted as advised": self.advised, "samples": self.usage.samples, "notes": list(self.notes),
            "violations": [{key: one[key] for key in ("at", "clock", "who", "words", "count", "journal")} for one in self.violations]}


async def main(options):
    soak = Soak(options)
    loop, here = asyncio.get_running_loop(), asyncio.current_task()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, here.cancel)
    try:
        await soak.run()
    except asyncio.CancelledError:
        print("interrupted", flush=True)
    soak.report()
    if options.json:
        Path(options.json).write_text(json.dumps(soak.figures(), indent=1))
    return 1 if soak.violations else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600, help="how long, 3600 if left out")
    parser.add_argument("--bin", default=HERE.parents[1] / ".build" / "linked" / "bin", help="where vehicled, vehiclectl and vehiclesim are")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="repeats a run")
    parser.add_argument("--json", help="write all figures into this file")
    parser.add_argument("--keep", help="copy the journal there, and what happened when to .notes beside it")
    parser.add_argument("--pause", type=float, nargs=2, default=(5, 45), help="seconds between two faults of one device, from and to")
    parser.add_argument("--verbose", "-v", action="store_true", help="tell what happens, on standard error")
    sys.exit(asyncio.run(main(parser.parse_args())))
