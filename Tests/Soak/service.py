"""A service of the daemon, which is killed, stopped, frozen and started again at random in the first part of the run. In the rest it runs
without an interruption, because only a long life shows leaks."""
import asyncio, collections, signal
from random import Random

from house import now
from leaks import Usage

FAULTS = "kill", "kill", "end", "freeze"
PLAGUED = 0.4  # the share of the run in which the service is interrupted
READY = 30  # seconds until it is ready after its start
MORE = 2  # descriptors and threads that a service may have more at the end


class Service:
    """One service. Subclasses have a `name`, `command`, `is_ready` and `finish`."""

    name = ""
    END = 3.0  # seconds that it may take to end
    SETTLED = 0  # kB that it uses once its caches are full

    def __init__(self, soak):
        self.soak, self.house = soak, soak.house
        self.program = None
        self.usage = Usage()
        self.connected = []  # the samples while it had all its connections
        self.lock = asyncio.Lock()
        self.is_resting = False
        self.lives = []  # for each run: when it was ready, the end of what it must have recorded, and how it ended
        self.pauses = []  # when it was frozen: [from, to]
        self.faults = collections.Counter()
        self.checked = collections.Counter()  # what was checked, by kind
        self.count_wrong = 0
        self.steady_since = None
        self.figures = {}
        self.is_expected = False  # to run

    def wrong(self, words):
        self.count_wrong += 1
        self.soak.wrong(self.name, words)

    # Its program.

    async def start(self):
        self.is_expected = True
        self.program = await self.house.start(*self.command(), name=self.name, **self.options())
        program, begun = self.program, now()
        limit = READY + 10 * self.house.lag()
        while not await self.is_ready():
            await asyncio.sleep(0.1)
            if not program.is_running:
                raise RuntimeError(f"{self.name} ended with {program.process.returncode}: {self.last_words()}")
            if now() - begun > limit:
                self.wrong(f"is not ready {now() - begun:.0f} s after its start: {self.last_words()}")
                break
        self.lives.append([now(), None, None])

    def options(self):
        return {}

    def last_words(self):
        with open(self.house.path(f"{self.name}.log"), errors="replace") as log:
            return " | ".join(log.read().splitlines()[-3:])

    async def end(self, number=signal.SIGTERM):
        begun, self.is_expected = now(), False
        self.lives[-1][1:] = [begun, "killed" if number == signal.SIGKILL else "ended"]
        status = await self.program.end(number, 30)
        took = now() - begun
        if number == signal.SIGTERM:
            if status != 0:
                self.wrong(f"ended with status {status} on SIGTERM: {self.last_words()}")
            if took > self.END + 2 * self.house.lag(took + 1):
                self.wrong(f"took {took:.1f} s to end")
        return took

    # What happens to it.

    async def plague(self):
        chance = Random(f"{self.soak.seed} {self.name}")
        seconds = self.soak.options.seconds
        until = self.soak.began + PLAGUED * seconds
        while True:
            await asyncio.sleep(chance.uniform(5, min(60, max(15, seconds / 20))))
            while self.soak.is_resting:
                await asyncio.sleep(0.2)
            if now() > until:
                break
            async with self.lock:
                if not self.soak.is_resting:
                    await self.suffer(chance.choice(FAULTS), chance)
        self.steady_since = self.soak.elapsed
        self.soak.note(f"{self.name} is left alone")
        await asyncio.Event().wait()

    async def suffer(self, what, chance):
        pause = chance.choice((chance.uniform(0, 2), chance.uniform(2, min(30, self.soak.longest))))
        self.soak.note(f"{self.name}: {what} for {pause:.1f} s")
        self.faults[what] += 1
        if what == "freeze":
            self.program.kill(signal.SIGSTOP)
            self.pauses.append([now(), None])
            await asyncio.sleep(pause)
            self.program.kill(signal.SIGCONT)
            self.pauses[-1][1] = now()
        else:
            await self.end(signal.SIGKILL if what == "kill" else signal.SIGTERM)
            await asyncio.sleep(pause)
            await self.start()
        await self.recovered()

    async def recovered(self):
        """Waits until the service does again what it is for."""

    async def guard(self):
        """Notices an end without a reason."""
        while True:
            await asyncio.sleep(0.5)
            if self.is_expected and not self.program.is_running:
                async with self.lock:
                    if self.is_expected and not self.program.is_running:
                        self.wrong(f"it died: status {self.program.process.returncode}: {self.last_words()}")
                        self.lives[-1][1:] = [now(), "killed"]
                        await self.start()

    def tasks(self):
        return [self.plague(), self.guard()]

    async def rest(self):
        """Waits for the end of a fault, and prevents others until `go_on`."""
        await self.lock.acquire()
        self.is_resting = True

    def go_on(self):
        self.is_resting = False
        self.lock.release()

    @property
    def is_troubled(self):
        """Whether it has a fault; a rest begins after its end."""
        return self.lock.locked() and not self.is_resting

    # What it must have recorded.

    def spans(self, loss):
        """The times of which it must have recorded everything; a kill loses `loss` seconds."""
        found = []
        for ready, until, how in self.lives:
            until = until or now()
            begin, end = ready + 2, until - (loss if how == "killed" else 1.5)
            for frozen, thawed in self.pauses:
                if begin < frozen < end:
                    found.append((begin, frozen - 1.5))
                    begin = thawed + 5
            found.append((begin, end))
        return [(begin, end) for begin, end in found if end > begin]

    # Figures.

    def sample(self):
        if self.program and self.program.is_running:
            self.usage.sample(self.soak.elapsed, self.program.pid)
            self.connected += self.usage.samples[-1:] if self.is_connected else []

    @property
    def is_connected(self):
        return not self.lock.locked()

    def judge(self, until):
        """The growth since the last interruption, after a warm-up."""
        since = (self.steady_since or 0) + max(20, self.soak.options.seconds / 10)
        if until - since < 30:
            return self.soak.note(f"{self.name} ran for too short a time to judge its memory")
        self.figures, growth = self.usage.judge(since, until, self.SETTLED)
        if growth:
            self.wrong(growth)
        fifth = (until - since) / 5
        for index, what in ((2, "descriptors"), (3, "threads")):
            first, last = (min((one[index] for one in self.connected if begin <= one[0] <= begin + fifth), default=0) for begin in (since, until - fifth))
            self.figures[what] = [first, last]
            if first and last > first + MORE:
                self.wrong(f"{what} were {first} and are {last}")
        return None

    def row(self):
        """The cells of the final table."""
        figures, faults = self.figures, self.faults
        cells = [self.name, f"{faults['kill']}/{faults['end']}/{faults['freeze']}"]
        if figures:
            cells += [f"{figures['kB after the warm-up'] / 1024:.2f}", f"{figures['kB at the end'] / 1024:.2f}", f"{figures['most kB'] / 1024:.2f}",
                      "{}, {}".format(*figures["descriptors"]), "{}, {}".format(*figures["threads"])]
        else:
            cells += ["-"] * 5
        return cells + [str(self.count_wrong), ", ".join(f"{count} {what}" for what, count in self.checked.items())]
