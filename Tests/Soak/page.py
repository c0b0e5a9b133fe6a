"""vehicled-web, with two pages in headless Chromium for the whole run: the values of a device, and a live plot. What they show is compared
with what the daemon reports; without a server they must show nothing."""
import asyncio, math, os, statistics, time
from contextlib import suppress
from pathlib import Path
from random import Random

from browser import Browser
from house import free_ports, now
from service import Service

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "0123456789abcdef0123456789abcdef"
DEVICE_TIME = 40  # seconds for which the values of one device are shown
PLOTTED = ["ev.rpm", "board.erpm", "torq.speed", "bus.engine-speed"]
# Seconds until nothing is shown any more after the server has ended, or was frozen: the page expects a heartbeat within 25 s.
STALE = {False: 5.0, True: 30.0}
FOUND = 30.0  # seconds until the page is connected again
PATIENCE = 4.0  # seconds for which the page may show something else than the daemon
HEAP_GROWTH = 1.1, 1 << 20
# The values in the tables of a device: the number, and the unit or the reason. The browser has the clock of this script.
SHOWN = """() => ({
  at: Date.now() / 1000,
  banner: document.querySelector(".banner")?.hidden === false ? document.querySelector(".banner").textContent : "",
  rows: Object.fromEntries([...document.querySelectorAll("tr[data-reference]")].map((row) => {
    const number = row.querySelector(".number");
    return [row.dataset.reference, row.className === "absent" ? [null, number.title] : [number.textContent, row.querySelector(".unit").textContent]];
  })),
})"""
# Measures how late timers and frames are, and how late readings arrive, in ms: the maximum of the last 10 s.
LATENESS = """(() => {
  const late = window.soakLate = { timer: [], frame: [], reading: [] };
  const note = (list, value) => {
    const now = performance.now();
    list.push([now, value]);
    while (list[0][0] < now - 10000) list.shift();
  };
  let expected = performance.now() + 100;
  setInterval(() => {
    const now = performance.now();
    note(late.timer, now - expected);
    expected = now + 100;
    requestAnimationFrame(() => note(late.frame, performance.now() - now));
  }, 100);
  const Original = WebSocket;
  window.WebSocket = class extends Original {
    constructor(...parameters) {
      super(...parameters);
      this.addEventListener("message", (event) => {
        const reading = (JSON.parse(event.data).parameters?.changes ?? []).find((one) => one.time && one.age < 1);
        if (reading) note(late.reading, Date.now() - reading.time / 1000 - reading.age * 1000);
      });
    }
  };
})()"""
LATE = "() => Object.fromEntries(Object.entries(soakLate).map(([name, list]) => [name, Math.max(0, ...list.map((one) => one[1])) / 1000]))"
LEGEND = """() => ({
  at: Date.now() / 1000,
  values: Object.fromEntries([...document.querySelectorAll(".legend [data-reference]")].map((item) =>
    [item.dataset.reference, item.querySelector(".number").textContent])),
})"""


def rounded(what, value):
    """A value as the page shows it: the function of the same name in format.js, and `text`."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return "; ".join(value)
    if not isinstance(value, (int, float)) or isinstance(value, int) and abs(value) >= 1e6:
        return str(value)
    if not 1e-6 <= abs(value) < 1e9:
        return "0" if value == 0 else str(value)
    least = 5 if what in ("latitude", "longitude") else 1
    places = min(9, max(least, 4 - math.floor(math.log10(abs(value)))))
    text = f"{math.floor(abs(value) * 10**places + 0.5) / 10**places:.{places}f}".rstrip("0").rstrip(".")
    return f"-{text}" if value < 0 and text != "0" else text


class Web(Service):
    name = "web"

    def __init__(self, soak):
        super().__init__(soak)
        self.port = free_ports(1)
        self.address = f"http://127.0.0.1:{self.port}/"
        os.mkdir(self.house.path("web"))
        Path(self.house.path("web.token")).write_text(TOKEN + "\n")
        os.chmod(self.house.path("web.token"), 0o600)
        Path(self.house.path("web.toml")).write_text(
            f'[web]\nlisten = "127.0.0.1:{self.port}"\ndaemon = "{soak.socket}"\nhistory = "{self.house.path("history.socket")}"\n'
            f'files = "{ROOT / "Sources/vehicled-web/Page"}"\n[token.soak]\nfile = "{self.house.path("web.token")}"\n')
        self.browser = None
        self.lines = []
        self.since = now()  # when the server became as it is now: there, or not
        self.is_frozen = False
        self.doubts = {}
        self.shown = None  # the device
        self.heaps = {"device": [], "plot": []}  # for each page: the time and the size

    # The server.

    def command(self):
        return "vehicled-web", "--config", self.house.path("web.toml")

    def options(self):
        return {"environment": {"RUNTIME_DIRECTORY": self.house.path("web")}, "heard": self.heard}

    def heard(self, line):
        self.lines = [*self.lines[-50:], line]
        self.soak.note(f"web says: {line}")

    def last_words(self):
        return " | ".join(self.lines[-3:])

    async def is_ready(self):
        with suppress(OSError):
            (await asyncio.open_connection("127.0.0.1", self.port))[1].close()
            return True
        return False

    async def start(self):
        await super().start()
        if not self.browser:
            await self.open()

    # The browser.

    async def open(self):
        self.browser = Browser(self.said)
        await self.browser.open(self.heaps, f"{self.address}#token={TOKEN}", LATENESS)
        await self.browser.evaluate("plot", f"() => {{ location.hash = '#/plot/{','.join(PLOTTED)}' }}")

    def said(self, name, event, text):
        # Browsers log each connection that the server does not accept, or that ends with it.
        is_about_server = "net::ERR_" in text or "WebSocket" in text
        if event == "crash":
            self.wrong(f"the {name} page has crashed")
        elif event == "pageerror" or event == "error" and not (is_about_server and (self.lock.locked() or now() < self.since + FOUND)):
            self.wrong(f"error in the {name} page: {text}")

    async def close(self):
        if self.browser:
            await self.browser.close()

    # What happens.

    async def suffer(self, what, chance):
        self.since, self.is_frozen = now(), what == "freeze"
        await super().suffer(what, chance)

    async def recovered(self):
        self.since = now()

    def tasks(self):
        return [*super().tasks(), self.look(), self.weigh()]

    async def rest(self):
        await super().rest()
        begun = now()
        while (await self.browser.evaluate("device", SHOWN))["banner"]:
            await asyncio.sleep(0.5)
            if now() - begun > FOUND + 2 * self.house.lag():
                return self.wrong(f"the page does not connect again within {FOUND} s")
        return None

    async def look(self):
        """Compares what the pages show."""
        random = Random(f"{self.soak.seed} page")
        names = [device.name for device in self.soak.devices.values() if device.lively]
        changed = -1e9
        while True:
            await asyncio.sleep(1)
            if now() > changed + DEVICE_TIME:
                self.shown, changed, self.doubts = random.choice(names), now(), {}
                await self.browser.evaluate("device", f"() => {{ location.hash = '#/device/{self.shown}' }}")
                await asyncio.sleep(1 + self.house.lag())
            is_troubled, since = self.is_troubled, self.since
            state = await self.browser.evaluate("device", SHOWN)
            if is_troubled or self.since != since:
                self.expect_nothing(state, since)
            elif state["banner"]:
                if now() > since + FOUND + 2 * self.house.lag(FOUND):
                    self.wrong(f"the page is not connected {now() - since:.0f} s after the server was started: {state['banner']}")
                    self.since = now()
            else:
                await self.compare()
                await self.read_legend()

    def expect_nothing(self, state, since):
        """Without a server, no value is shown."""
        if not self.lock.locked() or self.since != since or now() < since + STALE[self.is_frozen] + 1 + 2 * self.house.lag():
            return
        self.checked["outages"] += 1
        if left := [name for name, (text, _) in state["rows"].items() if text is not None]:
            self.wrong(f"shows {left[0]} {state['rows'][left[0]][0]} {now() - since:.1f} s after the server has stopped")
        elif not state["banner"]:
            self.wrong("shows no reason though the server does not run")

    async def compare(self):
        """Each value on the page must be that of the daemon; for those that change meanwhile, that of the simulator."""
        name, since = self.shown, self.since
        device = self.soak.devices[name]
        before = await self.ask(name)
        state = await self.browser.evaluate("device", SHOWN)
        after = await self.ask(name)
        if before is None or after is None or self.is_troubled or self.since != since or state["banner"]:
            return
        for what, first in before.items():
            second, found = after.get(what), state["rows"].get(f"{name}.{what}")
            value = self.value(first)
            if found is None or second is None or isinstance(value, list):
                continue
            self.checked["values"] += 1
            if value != self.value(second) or value is None and first.get("reason") != second.get("reason"):
                self.doubts.pop(what, None)
                if found[0] is not None and what in device.lively:
                    await self.check("device", device, what, found[0], state["at"])
                continue
            wanted = [None, first.get("reason")] if value is None else [rounded(what, value), first.get("unit") or ""]
            if found == wanted:
                self.doubts.pop(what, None)
            else:
                self.doubt(what, found, wanted)

    def doubt(self, what, found, wanted):
        doubt = self.doubts.get(what)
        if not doubt or doubt[0] != (found, wanted):
            self.doubts[what] = (found, wanted), now()
        elif now() - doubt[1] > PATIENCE + 2 * self.house.lag():
            self.wrong(f"{self.shown}.{what} is {found} on the page, and {wanted} in the daemon")
            self.doubts.pop(what)

    async def check(self, page, device, what, text, at):
        try:
            number = {"on": True, "off": False}.get(text)
            number = float(text) if number is None else number
        except ValueError:
            number = text
        at, slack = now() - time.time() + at, 2 + device.lively[what] + 2 * self.house.lag()
        if words := device.judge_at(what, number, at, slack):
            # The browser may be as late as this script, or later.
            late = await self.browser.evaluate(page, LATE)
            if words := device.judge_at(what, number, at, slack + max(late["timer"], late["frame"]) + late["reading"]):
                self.wrong(f"the {page} page shows {device.name}.{what} {text}, which {words}; late: {late}, {(await self.describe(device, what))}")

    async def describe(self, device, what):
        """What may explain a wrong value."""
        row = f"document.querySelector(`tr[data-reference='{device.name}.{what}']`)"
        seen = await self.browser.evaluate("device", f"() => [document.hidden, location.hash, {row}?.textContent]")
        return seen, (await self.ask(device.name) or {}).get(what)

    async def ask(self, name):
        with suppress(Exception):
            told = await self.soak.call("Status", {"device": name})
            return {one["property"]: one for one in told["devices"][0]["readings"]}
        return None

    @staticmethod
    def value(reading):
        value = reading.get("value")
        return next(iter(value.values())) if value else None

    async def read_legend(self):
        legend = await self.browser.evaluate("plot", LEGEND)
        if self.is_troubled:
            return
        for reference, text in legend["values"].items():
            device, what = reference.split(".")
            device = self.soak.devices[device]
            if text and text != "–" and what in device.lively:
                self.checked["plotted"] += 1
                await self.check("plot", device, what, text, legend["at"])

    # The heap.

    async def weigh(self):
        while True:
            await asyncio.sleep(max(5, min(20, self.soak.options.seconds / 60)))
            for name in self.heaps:
                await self.browser.send(name, "HeapProfiler.collectGarbage")
                usage = await self.browser.send(name, "Runtime.getHeapUsage")
                size = usage["usedSize"] + usage.get("backingStorageSize", 0) + usage.get("embedderHeapUsedSize", 0)
                self.heaps[name].append((self.soak.elapsed, size))

    def judge_heap(self, until):
        since = self.soak.options.seconds * 0.2 + 70
        for name, sizes in self.heaps.items():
            fifth = (until - since) / 5
            early = [size for at, size in sizes if since <= at <= since + fifth]
            late = [size for at, size in sizes if until - fifth <= at <= until]
            if fifth < 20 or not early or not late:
                continue
            early, late = statistics.median(early), statistics.median(late)
            self.figures[f"{name} heap"] = [early, late]
            if late > early * HEAP_GROWTH[0] + HEAP_GROWTH[1]:
                self.wrong(f"the heap of the {name} page has grown from {early / 1e6:.1f} to {late / 1e6:.1f} MB")

    async def finish(self, until):
        self.judge_heap(self.soak.elapsed)
        state = await self.browser.evaluate("device", SHOWN)
        if left := [name for name, (text, _) in state["rows"].items() if text is not None]:
            self.wrong(f"shows {left[0]} {state['rows'][left[0]][0]} though the daemon has ended")
        await self.close()
        self.figures["end"] = await self.end()

    def row(self):
        heaps = [f"heap of the {name} page {self.figures[f'{name} heap'][0] / 1e6:.1f}, then {self.figures[f'{name} heap'][1] / 1e6:.1f} MB"
                 for name in self.heaps if f"{name} heap" in self.figures]
        cells = super().row()
        return [*cells[:-1], ", ".join([cells[-1], *heaps])]
