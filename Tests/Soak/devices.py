"""The devices of the soak test: configuration, simulator, faults, health and expected values of each. A device must recover from a fault
in time, and its values must be correct meanwhile."""
import asyncio, signal, time
from contextlib import asynccontextmanager

import truth
from buses import add_buses
from house import Line, free_ports, now
from simulator import Simulator

# Faults of an adapter that still works between them.
ADAPTER = ["latency:80", "split:3", "late-prompt:60", "lost-prompt:40", "garbage:30", "no-data:25", "stopped:30", "can-error:30",
           "lv-reset:150", "buffer-full:40", "silent-overrun:40", "vendor-text:30", "nrc:12:40", "nrc-78:20:300", "interleave:20",
           "stale:40", "disconnect:200", "hang:150:4000", "babble:300", "echo", "no-lf-cr", "no-count", "wrong-count", "clone",
           "no-adaptive", "no-masks", "no-flow-control", "no-long", "no-memory", "no-repeat", "fixed-monitor", "ignore-headers",
           "ignore-spaces", "ignore-filter", "ignore-timing", "false-version", "noisy-banner", "odd-lf"]
TORQ = ["split", "cut:20", "coalesce:10", "noise:15", "silence:60:4000", "reset:100", "disconnect:80", "flood:60", "extension"]
VESC = ["noise:15", "wrong-crc:15", "cut:20", "silence:80:3000", "coalesce:15", "prints:15", "reset:400", "gibberish:20"]
CAR = ["lag:50:800", "ansi", "long-modes", "split", "coalesce", "warn", "odd-gyro", "message-delimiters", "flat", "endless"]
SENSOR = ["no-contact:7", "wide", "intervals", "energy:5", "truncated:5", "overlong:6", "silence:15:8000", "drop:40"]
GPSD = ["no-fix:25:5000", "silence:25:4000", "unplug:25:5000", "hang:25:4000", "restart:40", "split:3", "cut:6", "garbage:5", "long:15",
        "nan:4", "sparse:4", "early:2", "error:20", "2d", "old", "second"]
AIR = ["drop:60", "slow:3000", "abort:2", "empty:5", "odd-replies", "no-descriptors", "service-change:40", "churn"]
MIRROR = ["reboot:15"]
MIRROR_AIR = ["refuse:7", "no-answer:9", "drop-writes:6", "slow:3000", "abort:2"]
WEATHER = ["error:2", "down:2", "html:2", "null:2", "redirect:2", "slow:1:3000", "truncated:2", "huge:2", "garbage:2"]
TRIVIA = ["error:3", "down:3", "html:3", "redirect:3", "garbage:3", "lost:3", "slow:1:3000", "truncated:3", "huge:4", "strings",
          "duplicate"]


class Look:
    """The status and readings of a device, as reported by the daemon."""

    def __init__(self, device, received):
        self.state, self.fault = device["state"], device.get("fault")
        self.link = (device["links"] or [{}])[0].get("state")
        self.since = (device["links"] or [{"since": 0}])[0]["since"]
        self.readings = {one["property"]: one for one in device["readings"]}
        self.received = received

    def value(self, name):
        found = (self.readings.get(name) or {}).get("value")
        return next(iter(found.values())) if found else None

    def moment(self, name):
        """The time of the measurement, on this script's clock."""
        return measured(self.readings[name]) if self.value(name) is not None else -1e9


def measured(reading):
    return now() - (time.time() - reading["time"] / 1e6)


class Device:
    """One device of the daemon."""

    def __init__(self, name, section, simulator=None, *, states=("polling",), lively={}, declared=0.0, while_up=(), known=truth.nothing, faults=(),
                 variants=("",), patience=100, growing=(), rough=(), rough_air=(), broken=(), wants=None, nudge=None, advice="\n"):
        self.name, self.section, self.simulator = name, section, simulator
        self.states, self.lively, self.while_up, self.known = states, lively, while_up, known
        self.declared = declared  # by how much the declared lifetimes of its values may exceed those in lively
        self.faults, self.variants, self.variant = faults, variants, 0
        self.growing = growing  # what never falls while the daemon has this device
        self.rough, self.rough_air = rough, rough_air
        self.broken = broken  # faults of the simulator with which the device cannot be well
        self.patience = patience  # how long it may take to be well again
        self.wants, self.nudge = wants, nudge
        self.advice = advice  # what the daemon says where only a restart helps
        self.lock = asyncio.Lock()
        self.trouble, self.began, self.ended, self.is_cut, self.is_recovering = "start", now(), now(), False, False
        self.was_well = now()
        self.is_well_now = False
        self.is_rough = self.is_lost = False
        self.generation = 0
        self.nudged = -1e9
        self.memory = {}
        self.highest = {}
        self.calm = []  # from and to when nothing happened to it, and it was well
        self.happened = []  # what, how long it lasted, how long it took to be well again

    def __repr__(self):
        return self.name

    def configuration(self):
        variant = self.variants[self.variant % len(self.variants)]
        return f"[device.{self.name}]\n{self.section.strip()}\n{variant}\n"

    # Whether it is well.

    def looks_well(self, look):
        since = self.ended if self.is_recovering else -1e9
        if look.state not in self.states or look.link not in (None, "up"):
            return False
        if self.is_recovering and self.is_cut and look.link and self.moment_of_link(look) < self.began - 0.5:
            return False
        if any(look.moment(name) <= since for name in self.lively):
            return False
        if self.is_recovering and self.nudge and self.nudged <= since:
            return False
        return not self.wants or self.wants(self, look)

    @staticmethod
    def moment_of_link(look):
        return now() - (time.time() - look.since / 1e6)

    def judge(self, reading, slack):
        """The problem of a value, or None."""
        name, value = reading["property"], next(iter(reading["value"].values()))
        at = measured(reading)
        if at > now() + 0.2:
            return "comes from the future"
        return None if name not in self.lively and now() - at > 20 else self.judge_at(name, value, at, slack)

    def judge_at(self, name, value, at, slack):
        """The problem of a value of this time, or None."""
        if not self.simulator or self.known is truth.nothing and name not in self.lively:
            return None
        moments = self.simulator.moments(at, slack)
        if not moments:
            return None if name not in self.lively else "is said to be of a time at which nobody can have told it"
        if name == "uptime" and any("reset" in faults for *_, faults in [life for life in self.simulator.lives if life[0] <= at][-2:]):
            return None
        words = [self.known(name, value, begin, end) for begin, end in moments]
        return None if None in words else f"should be {words[-1]}"

    def examine(self, look, slack):
        """The problems of the device's status and readings."""
        for name, reading in look.readings.items():
            if not reading.get("value"):
                continue
            if words := self.judge(reading, slack):
                yield f"{name} {look.value(name)} {words} (age {reading['age']:.2f} s)"
            if name in self.lively:
                if reading["age"] > self.lively[name] + 0.1 + slack:
                    yield f"{name} {look.value(name)} is shown at an age of {reading['age']:.2f} s, and is good for {self.lively[name]} s"
            if look.link not in (None, "up") and (name in self.lively or name in self.while_up):
                yield f"{name} {look.value(name)} is shown while the link is {look.link}"
            if name in self.growing:
                before = self.highest.get(name, (-1, 0))
                if before[0] == self.generation and look.value(name) < before[1]:
                    yield f"{name} has fallen from {before[1]} to {look.value(name)}"
                self.highest[name] = (self.generation, look.value(name))
        for words in truth.values_agree({name: one for name, one in look.readings.items() if one.get("value")}):
            yield words

    # What happens to it.

    @asynccontextmanager
    async def suffering(self, trouble, is_cut=True):
        self.trouble, self.began, self.is_cut = trouble, now(), is_cut
        try:
            yield
        finally:
            self.ended, self.is_recovering, self.trouble = now(), True, None

    def note_calm(self, is_calm):
        is_open = bool(self.calm) and self.calm[-1][1] is None
        if is_calm and not is_open:
            self.calm.append([now(), None])
        elif not is_calm and is_open:
            # A value that is missing has been missing for its lifetime.
            self.calm[-1][1] = self.began if self.began > self.calm[-1][0] else now() - 4

    def recovered(self):
        self.is_recovering = self.is_lost = False
        if self.happened and self.happened[-1][2] is None:
            self.happened[-1][2] = now() - self.ended

    async def suffer(self, what, soak, random):
        """Injects a fault. The fault is over when this returns, and the device should recover."""
        record = [what, 0.0, None]
        simulator = self.simulator
        # Down for long, now and then: the daemon tries less and less often.
        pause = random.choice((random.uniform(0.2, 3), random.uniform(2, 15), random.uniform(10, soak.longest)))
        is_cut = what not in ("stop", "web stop")
        async with self.suffering(what, is_cut):
            begun = now()
            if what in ("kill", "end"):
                await simulator.end(signal.SIGKILL if what == "kill" else signal.SIGTERM)
                await asyncio.sleep(pause)
                await simulator.start()
            elif what == "stop":
                simulator.freeze()
                await asyncio.sleep(pause)
                simulator.thaw()
            elif what == "cut":
                simulator.line.cut(random.random() < 0.5)
            elif what == "shut":
                simulator.line.close()
                simulator.line.cut(random.random() < 0.5)
                await asyncio.sleep(pause)
                await simulator.line.open()
            elif what == "key":
                await simulator.end()
                back = random.randint(20, 40)
                await simulator.start(keys=(("off", 8), ("run", back)))
                record[0] = f"key off@8 run@{back}"
                await asyncio.sleep(back + 1)
            elif what == "rough":
                await self.be_rough(soak, random, record)
            elif what == "broken":
                await simulator.end()
                await simulator.start("--fault", random.choice(self.broken))
                await asyncio.sleep(pause)
                await simulator.end()
                await simulator.start()
            elif what == "disconnect":
                await soak.call("Disconnect", {"device": self.name})
                await asyncio.sleep(min(pause, 10))
                await soak.call("Connect", {"device": self.name})
            elif what == "reconfigure":
                self.variant += 1
                soak.write_configuration()
                self.generation += 1
                changed = (await soak.call("Reload")).get("changed")
                # What was asked before may have been answered meanwhile.
                self.generation += 1
                if changed != [self.name]:
                    soak.wrong(self.name, f"reconfigured, but the daemon reports changes of {changed}")
            record[1] = now() - begun
            self.happened.append(record)
            soak.faults += 1

    async def be_rough(self, soak, random, record):
        """Restarts the simulator with faults for a while; the device must be healthy at least once meanwhile."""
        chosen = random.sample(self.rough, min(len(self.rough), random.choice((1, 1, 2, 3))))
        flown = random.sample(self.rough_air, 1) if self.rough_air and random.random() < 0.5 else []
        options = [word for fault in chosen for word in ("--fault", fault)] + [word for fault in flown for word in ("--radio-fault", fault)]
        options += ["--seed", str(random.randint(1, 10**6))] if self.simulator.kind not in ("weather", "trivia", "gpsd") else []
        record[0] = "rough " + " ".join([*chosen, *flown])
        soak.note(f"{self.name}: {record[0]}")
        await self.simulator.end()
        await self.simulator.start(*options)
        begun, self.is_rough = now(), True
        until = begun + random.uniform(15, 40)
        while now() < until or not self.was_well > begun:
            await asyncio.sleep(0.5)
            if not self.was_well > begun and now() - begun > self.patience + 20 + soak.house.lag():
                soak.wrong(self.name, f"is not well for {now() - begun:.0f} s with {record[0]}: {soak.words(self)}")
                break
        await self.simulator.end()
        self.is_rough = False
        await self.simulator.start()


EV = {name: 2.0 for name in ("rpm", "rpm-2", "battery-voltage", "battery-current", "battery-power", "operating-time", "cell-voltage-min",
                             "cell-voltage-max", "regenerating")}
COUNTERS = ("polls", "missed", "timeouts", "bad-replies", "bad-frames", "bad-messages", "messages")


def furnish(house, air, soak):
    """All devices with their simulators."""
    def tcp():
        return Line(free_ports(1))

    linked = ("kill", "kill", "end", "stop", "stop", "rough", "rough", "disconnect", "reconfigure")
    devices = {}

    def add(name, section, simulator=None, **options):
        devices[name] = Device(name, section, simulator, **options)

    line = tcp()
    add("ev", f'kind = "obd"\nlink = "tcp:127.0.0.1:{line.port}"', Simulator(house, "ev", "obd", line=line), lively=EV,
        known=truth.electric(78.9, "KNAC381AVN5000042"), faults=(*linked, "cut", "cut", "shut", "key"), rough=ADAPTER, growing=COUNTERS,
        variants=("rate = 20", "rate = 10"))
    add("petrol", f'kind = "obd"\nlink = "serial:{house.path("petrol")}"',
        Simulator(house, "petrol", "obd", "--car", "petrol", path=house.path("petrol")), lively={"rpm": 2.0}, known=truth.petrol,
        faults=(*linked, "key"), rough=ADAPTER, growing=COUNTERS, variants=("rate = 20", "rate = 15"))
    add("air", 'kind = "obd"\nlink = "ble:Veepeak"',
        Simulator(house, "air", "obd", "--car", "ioniq-28", "--address", "AA:BB:CC:00:00:01", "--name", "Veepeak", "--mtu", "185", air=air),
        lively=EV, known=truth.electric(62.4, "KMHC851JFHU000042"), faults=(*linked, "key"), rough=ADAPTER, rough_air=AIR, growing=COUNTERS,
        variants=("rate = 20", "rate = 10"))
    line = tcp()
    add("torq", f'kind = "longboard"\nlink = "tcp:127.0.0.1:{line.port}"\nbuzzer-limit = 4',
        Simulator(house, "torq", "longboard", line=line), states=("live",), lively={"speed": 2.0, "battery": 2.0, "connected": 2.0},
        known=truth.torq, faults=(*linked, "cut", "shut"), rough=TORQ, growing=(*COUNTERS, "total-distance"),
        variants=("rate = 5", "rate = 4"))
    line = tcp()
    add("board", f'kind = "longboard"\nprotocol = "vesc"\nallow-motion = true\nlink = "tcp:127.0.0.1:{line.port}"',
        Simulator(house, "board", "vesc", line=line), states=("polling", "driving"),
        lively={"speed": 2.0, "erpm": 2.0, "rpm": 2.0, "battery-voltage": 2.0, "motor-current": 2.0, "uptime": 4.0}, known=truth.vesc,
        faults=(*linked, "cut", "shut"), rough=VESC, growing=COUNTERS,
        variants=("rate = 20\n[device.board.mode.eco]\ncurrent = 50\nspeed = 15", "rate = 30\n[device.board.mode.eco]\ncurrent = 40"))
    first = free_ports(2)  # The camera's is the second.
    add("car", f'kind = "rc-car"\nlink = "tcp:127.0.0.1:{first}"',
        Simulator(house, "car", "rc-car", "--restart", "0.5", "-v", port=first, heard=soak.car_says),
        states=("ready", "driving", "starting-camera"), lively={"temperature": 18.0}, while_up=("connected", "running", "mode"),
        faults=linked, rough=CAR, growing=COUNTERS,
        variants=("status-interval = 5", "status-interval = 6"), wants=lambda device, look: look.value("connected") is True,
        advice="restart the car's program")
    add("mirror", f'kind = "mirror"\nlink = "ble:ESP32-BLE-Server"\nkey-file = "{house.path("key")}"\niv-file = "{house.path("iv")}"\n'
        'username = "Ada"\nweather = "weather"\nhealth = ["strap.heart-rate", "phone.steps"]',
        Simulator(house, "mirror", "mirror", "--address", "AA:BB:CC:00:00:02", "--key-file", house.path("key"), "--iv-file",
                  house.path("iv"), "-v", air=air, heard=soak.mirror_says),
        states=("connected", "sending"), faults=("kill", "end", "stop", "rough", "disconnect", "reconfigure"), rough=MIRROR,
        rough_air=MIRROR_AIR, variants=("interval = 10", "interval = 11"),
        wants=lambda device, look: look.value("sent-led") == look.value("led"))
    add("strap", 'kind = "heart-rate"\nlink = "ble:Polar*"',
        Simulator(house, "strap", "heart-rate", "--address", "AA:BB:CC:00:00:03", air=air), states=("live",), lively={"heart-rate": 5.0},
        known=truth.strap, faults=linked, rough=SENSOR, rough_air=AIR, variants=("", "record = true"), growing=("bad-messages",))
    add("foot", 'kind = "foot-pod"\nlink = "ble:Stryd*"', Simulator(house, "foot", "foot-pod", "--address", "AA:BB:CC:00:00:04", air=air),
        states=("live",), lively={"speed": 5.0, "cadence": 5.0, "stride-length": 5.0}, while_up=("distance",), known=truth.foot,
        faults=linked, rough=SENSOR[4:], rough_air=AIR, variants=("", "record = true"), growing=("bad-messages",))
    line = tcp()
    add("gps", f'kind = "position"\nlink = "tcp:127.0.0.1:{line.port}"', Simulator(house, "gps", "gpsd", line=line), states=("live",),
        lively={"fix": 5.0, "latitude": 5.0, "longitude": 5.0, "fix-time": 5.0}, while_up=("receiver", "gpsd-version"), known=truth.position,
        faults=(*linked, "cut", "shut"), rough=GPSD, variants=("", "record = true"), growing=("bad-messages",))
    line = tcp()
    add("weather", f'kind = "weather"\nurl = "http://127.0.0.1:{line.port}"\nlatitude = 52.52\nlongitude = 13.41\nproxy = ""',
        Simulator(house, "weather", "weather", line=line), states=("live",), known=truth.weather, faults=("kill", "stop", "rough", "shut"),
        rough=WEATHER, patience=200, nudge=soak.ask_weather, wants=lambda device, look: look.value("temperature") == 9)
    line = tcp()
    add("toy", f'kind = "toy"\nserver = "http://127.0.0.1:{line.port}"\ninsecure-http = true\nproxy = ""\n'
        f'listen = "127.0.0.1:{free_ports(1)}"\ntoy-network = "127.0.0.0/8"',
        Simulator(house, "toy", "trivia", "--database", house.path("trivia.db"), line=line), states=("ready",),
        faults=("kill", "end", "stop", "rough", "shut", "cut"), rough=TRIVIA, nudge=soak.use_toy,
        wants=lambda device, look: look.value("pending-votes") == 0)
    add("phone", 'kind = "health"', states=("ready", "live"), faults=("reconfigure",),
        variants=("heart-rate-max-age = 20", "heart-rate-max-age = 25"),
        # The steps of a day end with it.
        wants=lambda device, look: device.memory.get("steps") in (None, look.value("steps")) or device.memory["day"] != time.localtime().tm_yday)
    add_buses(house, add, linked, EV, COUNTERS)
    return devices
