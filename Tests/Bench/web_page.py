"""The page of vehicled-web in Chromium: web_page.py [--seconds N] [PART...]

  first   from navigation to the first values of a simulated car
  pixel   from the adapter's reply, which the daemon timestamps, to the frame after the value is on the page, at 20 Hz
  absent  from the moment when the car is switched off to the frame that shows the reason, and no number
  plot    six series at 20 Hz from a fake daemon, for --seconds (default 600): dropped updates, growth of the heap, CPU of the browser's
          processes that draw

Needs Debian's chromium, and the package playwright, so run it with .venv/bin/python. VEHICLED_PROGRAMS is the directory of the programs
(default: .build/debug). Chromium has no GPU here and draws in software, which takes more CPU than drawing with one.
"""

import argparse, math, os, pathlib, sys, threading, time

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "Web"), str(HERE)]
from playwright.sync_api import sync_playwright  # noqa: E402
from rig import FakeDaemon, Rig, reading, wait  # noqa: E402
from verdict import judge, verdicts  # noqa: E402

HZ = 20
NAVIGATIONS = 20
# Notes when the first number is on the page, in ms since navigation.
FIRST = """addEventListener("DOMContentLoaded", () => new MutationObserver((_, observer) => {
  if (![...document.querySelectorAll(".number")].some((node) => /\\d/.test(node.textContent))) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => (window.firstValue = performance.now())));
}).observe(document.documentElement, { childList: true, subtree: true, characterData: true }))"""
# Notes the times of the readings of one property as they arrive, and the delay of each until the frame that shows it has been drawn.
DELAYS = """window.delays = [];
let time = 0;
const Original = WebSocket;
window.WebSocket = class extends Original {
  constructor(...parameters) {
    super(...parameters);
    this.addEventListener("message", (event) => {
      const reading = (JSON.parse(event.data).parameters?.changes ?? []).find((one) => one.device === "ev" && one.property === "battery-power");
      if (reading?.time) time = reading.time / 1000;
    });
  }
};
addEventListener("DOMContentLoaded", () => new MutationObserver(() => {
  const measured = time;
  time = 0;
  if (measured) requestAnimationFrame(() => setTimeout(() => delays.push(performance.timeOrigin + performance.now() - measured)));
}).observe(document.documentElement, { childList: true, subtree: true, characterData: true }))"""

# The times in s after the start of the simulator at which the car is switched off, and for how long. Meanwhile the car is probed after
# pauses of 1, 2 and 5 s, so that it is found soon after it is switched on again.
KEY_OFF, OFF = (15, 40, 65, 90), 7
# Notes when the frame is drawn in which no value of the car is left, and the reason is shown, each time.
ABSENCES = """window.absences = [];
let isAbsent = true;
addEventListener("DOMContentLoaded", () => new MutationObserver(() => {
  const card = document.querySelector("[data-device=ev]");
  const numbers = ["speed", "battery-power"].map((name) => card?.querySelector(`[data-reference="ev.${name}"] .number`)?.textContent);
  const wasAbsent = isAbsent;
  isAbsent = numbers.every((text) => text === "–") && card.querySelector(".problem").textContent.includes("no response from the vehicle");
  if (isAbsent && !wasAbsent) requestAnimationFrame(() => setTimeout(() => absences.push(performance.timeOrigin + performance.now())));
}).observe(document.documentElement, { childList: true, subtree: true, characterData: true }))"""


def quantile(numbers, share):
    return sorted(numbers)[min(len(numbers) - 1, math.ceil(share * len(numbers)) - 1)]


def car(rig):
    link = rig.simulate("ev", "obd")
    rig.start_daemon(f'[device.ev]\nkind = "obd"\nlink = "{link}"\nrate = {HZ}\n')
    wait(lambda: rig.vehiclectl("get", "ev.battery-power", "ev.vin", check=False).returncode == 0, 40)
    return rig.start_web()


def signed_in(browser, link, script):
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(link)
    page.wait_for_selector("nav a")
    page.add_init_script(script)
    return page, link.partition("#")[0]


def run_first(browser, _):
    rig = Rig()
    try:
        page, address = signed_in(browser, car(rig), FIRST)
        times = []
        for _ in range(NAVIGATIONS):
            page.goto("about:blank")
            page.goto(address)
            wait(lambda: page.evaluate("window.firstValue ?? null"))
            times.append(page.evaluate("firstValue"))
        judge("page.first", quantile(times, 0.5))
    finally:
        rig.close()


def run_pixel(browser, _):
    rig = Rig()
    try:
        page, address = signed_in(browser, car(rig), DELAYS)
        page.goto("about:blank")
        page.goto(f"{address}#/kiosk/ev.battery-power")
        page.wait_for_timeout(30_000)
        judge("page.pixel", quantile(page.evaluate("delays"), 0.99))
    finally:
        rig.close()


def run_absent(browser, _):
    rig = Rig()
    try:
        keys = [f"off@{moment}" for moment in KEY_OFF] + [f"run@{moment + OFF}" for moment in KEY_OFF]
        # The simulator counts from its start, which is a little later: the measured times are too long rather than too short.
        started = time.time()
        link = rig.simulate("ev", "obd", *(argument for key in sorted(keys, key=lambda key: int(key[4:])) for argument in ("--key", key)))
        rig.start_daemon(f'[device.ev]\nkind = "obd"\nlink = "{link}"\nrate = {HZ}\n')
        wait(lambda: rig.vehiclectl("get", "ev.battery-power", "ev.vin", check=False).returncode == 0, KEY_OFF[0])
        page, address = signed_in(browser, rig.start_web(), ABSENCES)
        page.goto("about:blank")
        page.goto(address)
        page.wait_for_timeout((started + KEY_OFF[-1] + OFF - time.time()) * 1000)
        shown = [moment / 1000 - started for moment in page.evaluate("absences")]
        delays = [min((moment - key for moment in shown if 0 <= moment - key < OFF), default=math.inf) for key in KEY_OFF]
        print("  " + ", ".join(f"{delay:.2f} s" for delay in delays))
        judge("page.absent", max(delays))
    finally:
        rig.close()


class Feed:
    """A fake daemon with six values at 20 Hz."""

    def __init__(self, rig):
        self.names = [f"value-{letter}" for letter in "abcdef"]
        properties = [{"name": name, "type": "float", "writable": False, "motion": False, "help": "", "group": "drive", "rank": 1, "unit": "A"} for name in self.names]
        device = {"name": "ev", "kind": "obd", "state": "polling", "links": [], "readings": [reading("ev", name, 0.0, "A") for name in self.names]}
        self.daemon = FakeDaemon(rig.daemon_socket, [{"device": "ev", "kind": "obd", "properties": properties, "actions": []}], [device])
        self.count = 0
        self.ends = False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        start = time.monotonic()
        while not self.ends:
            self.count += 1
            values = [round(50 * math.sin(self.count / 70 + index), 3) + self.count * 1e-6 for index in range(6)]
            self.daemon.send(changes=[reading("ev", name, value, "A") for name, value in zip(self.names, values)])
            time.sleep(max(0, start + self.count / HZ - time.monotonic()))


def cpu(kinds):
    """The CPU time in s that Chromium's processes of these kinds have used, of all browsers that this process started."""
    total = 0.0
    for place in pathlib.Path("/proc").iterdir():
        try:
            if place.name.isdigit() and any(f"--type={kind}".encode() in (place / "cmdline").read_bytes() for kind in kinds) and is_own(place):
                fields = (place / "stat").read_text().rsplit(")", 1)[1].split()
                total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            continue
    return total


def is_own(place):
    pid = place.name
    while pid not in ("0", "1"):
        if pid == str(os.getpid()):
            return True
        pid = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]
    return False


def heap(session):
    session.send("HeapProfiler.collectGarbage")
    usage = session.send("Runtime.getHeapUsage")
    return usage["usedSize"] + usage.get("backingStorageSize", 0) + usage.get("embedderHeapUsedSize", 0)


def run_plot(browser, seconds):
    rig = Rig()
    feed = Feed(rig)
    try:
        page, address = signed_in(browser, rig.start_web(), "")
        page.goto("about:blank")
        page.goto(f"{address}#/plot/{','.join(f'ev.{name}' for name in feed.names)}")
        page.wait_for_selector(".legend .number")
        page.get_by_label("Range").select_option("1 min")
        feed.thread.start()
        # The rings of samples reach their full size within their span.
        page.wait_for_timeout(min(70, seconds / 4) * 1000)
        session = page.context.new_cdp_session(page)
        before, used, start = heap(session), cpu(("renderer", "gpu-process")), time.monotonic()
        page.wait_for_timeout(seconds * 1000)
        used, elapsed = cpu(("renderer", "gpu-process")) - used, time.monotonic() - start
        grown = heap(session) - before
        feed.ends = True
        feed.thread.join()
        page.wait_for_timeout(500)
        page.get_by_label("Range").select_option("10 min")
        page.wait_for_timeout(500)
        with page.expect_download() as download:
            page.get_by_role("button", name="CSV").click()
        rows = [line.split(",")[1:] for line in pathlib.Path(download.value.path()).read_text().splitlines()[1:]]
        # The last six digits of each value are its number, so that every update differs from the one before.
        received = len(rows[0]) and min(len({row[index] for row in rows if row[index]}) for index in range(6))
        expected = min(feed.count, int(600 * HZ) - HZ)
        print(f"  {feed.count} updates in {elapsed:.0f} s, {received} of the last {expected} on the page")
        judge("page.dropped", max(0, expected - received))
        judge("page.heap", grown / 1e6)
        judge("page.cpu", 100 * used / elapsed)
    finally:
        feed.ends = True
        rig.close()
        feed.daemon.close()


PARTS = {"first": run_first, "pixel": run_pixel, "absent": run_absent, "plot": run_plot}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seconds", type=float, default=600)
    options = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
        for part in options.parts or PARTS:
            print(f"page: {part}")
            PARTS[part](browser, options.seconds)
    sys.exit(any(not verdict["met"] for verdict in verdicts.values()))
