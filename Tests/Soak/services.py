"""All services of the daemon together, as the run uses them."""
import asyncio

from bridge import Bridge
from history import History
from page import Web


class Services:
    def __init__(self, soak):
        self.soak = soak
        self.bridge = Bridge(soak)
        self.all = [History(soak), self.bridge, Web(soak)]
        self.until = None  # when the daemon was ended

    async def begin(self):
        for service in self.all:
            await service.start()

    def tasks(self):
        return [task for service in self.all for task in service.tasks()]

    def sample(self):
        for service in self.all:
            service.sample()

    async def rest(self):
        for service in self.all:
            await service.rest()

    def go_on(self):
        for service in self.all:
            service.go_on()

    def judge(self, until):
        for service in self.all:
            service.judge(until)

    async def finish(self, until):
        """Checks what the services have done until the daemon was ended, and ends them."""
        for service in self.all:
            try:
                await asyncio.wait_for(service.finish(until), 600)
            except asyncio.TimeoutError:
                service.wrong("cannot be checked: it does not respond")

    async def close(self):
        await self.all[-1].close()

    def report(self):
        head = ["service", "kill/end/freeze", "MB warm", "MB end", "MB most", "descriptors", "threads", "wrong", "checked"]
        rows = [head, *(service.row() for service in self.all), self.bridge.broker.row()]
        widths = [max(len(row[index]) for row in rows if index < len(row)) for index in range(len(head))]
        print("\n" + "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows))

    def figures(self):
        return {service.name: {"faults": dict(service.faults), "checked": dict(service.checked), "wrong": service.count_wrong,
                               "lives": service.lives, "pauses": service.pauses, "samples": service.usage.samples, **service.figures}
                for service in self.all}
