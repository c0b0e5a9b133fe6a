"""The simulators of the soak test: programs that can be restarted and stopped, and the times that they can have sent a value."""
import asyncio, signal

import truth
from house import now


class Simulator:
    """One vehiclesim at a constant address, which can be restarted."""

    def __init__(self, house, name, kind, *arguments, line=None, port=0, path=None, air=None, heard=None, scheme=""):
        self.house, self.name, self.kind, self.arguments, self.heard = house, name, kind, arguments, heard
        self.line, self.port, self.path, self.air, self.scheme = line, port, path, air, scheme
        self.program = None
        self.lives = []  # for each run: times of start, readiness and end, key positions, and faults
        self.pauses = []  # times when it was stopped: [from, to]

    async def start(self, *extra, keys=()):
        place = f"ble:{self.air.address}" if self.air else "pty" if self.path else f"{self.scheme}tcp:127.0.0.1:{self.port}"
        symlink = ["--symlink", self.path] if self.path else []
        turned = [word for position, at in keys for word in ("--key", f"{position}@{at}")]
        said = asyncio.get_running_loop().create_future()
        begin = now()
        self.program = await self.house.start(
            "vehiclesim", self.kind, "--on", place, *symlink, *self.arguments, *turned, *extra, name=f"sim-{self.name}", heard=self.heard,
            said=lambda line: said.done() or said.set_result(line))
        first = await asyncio.wait_for(said, 30)
        if self.line:
            self.line.target = int(first.rpartition(":")[2])
            await self.line.open()
        self.lives.append([begin, now(), None, list(keys), " ".join(extra)])

    async def end(self, number=signal.SIGKILL):
        """Ends it; further connections are refused."""
        if self.line:
            self.line.close()
        self.program.kill(signal.SIGCONT)
        await self.program.end(number)
        if self.lives and self.lives[-1][2] is None:
            self.lives[-1][2] = now()

    def freeze(self):
        self.program.kill(signal.SIGSTOP)
        self.pauses.append([now(), None])

    def thaw(self):
        self.pauses[-1][1] = now()
        self.program.kill(signal.SIGCONT)

    @property
    def is_there(self):
        return self.program and self.program.is_running and not (self.pauses and self.pauses[-1][1] is None)

    def earliest(self, at, slack):
        """The earliest time at which a value that was received at this moment can have been measured; None if it was stopped."""
        # Times can be rounded down.
        if any(begin + 0.5 + slack < at < (end or at + 1) - 0.05 for begin, end in self.pauses):
            return None
        first = at - 1.5 - slack
        for begin, end in self.pauses:
            # What it was just saying when it was stopped it says when it goes on.
            if end and begin < at and end > first:
                first = min(first, begin - 0.5)
        return first

    def moments(self, at, slack):
        """The possible times, in seconds since its start, of a value that was received at this moment; empty if there are none."""
        first = self.earliest(at, slack)
        found = []
        for begin, ready, end, keys, _ in self.lives if first is not None else ():
            if begin <= at and (end is None or at <= end + 0.5 + slack):
                found.append((truth.driven(max(0, first - ready), keys), truth.driven(max(0, at + 0.2 - begin), keys)))
        return found
