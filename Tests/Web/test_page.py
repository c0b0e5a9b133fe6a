"""Tests the page of vehicled-web in Chromium: test_page.py [CLASS[.TEST]...]

Needs Debian's chromium and the package playwright. Screenshots are stored in .build/web. All connections are on loopback.
"""

import datetime, http.client, http.server, json, math, pathlib, re, signal, sys, threading, time, unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.dont_write_bytecode = True
from playwright.sync_api import expect, sync_playwright  # noqa: E402
from rig import PAGE, ROOT, FakeDaemon, Rig, free_port, reading, wait  # noqa: E402

SCREENSHOTS = ROOT / ".build/web"
CHROMIUM = "/usr/bin/chromium"
# Stands for any site on the Internet whose name resolves to this computer.
REBOUND = "rebound.example"


def setUpModule():
    global playwright, browser
    playwright = sync_playwright().start()
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1"])
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)


def tearDownModule():
    browser.close()
    playwright.stop()


class PageTest(unittest.TestCase):
    """A signed-in browser context for each class. Subclasses start the programs in `prepare`, which returns the link."""

    @classmethod
    def setUpClass(cls):
        cls.rig = Rig()
        cls.addClassCleanup(cls.rig.close)
        cls.link = cls.prepare()
        cls.address = cls.link.partition("#")[0]
        cls.context = browser.new_context(viewport={"width": 1280, "height": 900}, timezone_id="UTC")
        cls.addClassCleanup(cls.context.close)
        page = cls.context.new_page()
        page.goto(cls.link)
        page.wait_for_selector("nav a")
        page.close()

    def setUp(self):
        self.problems = []
        self.page = self.watch(self.context.new_page())
        self.addCleanup(self.page.close)

    def watch(self, page):
        """Notes the errors of a page."""
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda message: self.problems.append(message.text) if message.type == "error" else None)
        return page

    def open(self, view, selector):
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}#/{view}")
        self.page.wait_for_selector(selector)

    def wait_until_drawn(self):
        """Waits until each plot that is at least half in the window has a line."""
        self.page.wait_for_function("""() => {
          const plots = [...document.querySelectorAll(".plot")];
          return plots.length > 0 && plots.every((plot) => {
            if (plot.getBoundingClientRect().top + plot.clientHeight / 2 > innerHeight) return true;
            const canvas = plot.querySelector(".lines");
            return canvas.width > 0 && canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte !== 0);
          });
        }""")

    def assert_no_problems(self):
        self.assertEqual(self.problems, [])

    def shown(self):
        """The values in the tables of a device by reference: the number, the unit; or None and the reason."""
        return self.page.evaluate("""() => Object.fromEntries([...document.querySelectorAll("tr[data-reference]")].map((row) => {
          const number = row.querySelector(".number").textContent, unit = row.querySelector(".unit").textContent;
          return [row.dataset.reference, row.className === "absent" ? [null, number.replace(/^– ?/, "")] : [number, unit]];
        }))""")


def rounded(value):
    """A value as the page and vehiclectl show it (Format.rounded)."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return "; ".join(value)
    if not isinstance(value, (int, float)):
        return value
    if value == 0 or isinstance(value, int):
        return str(value)
    places = min(9, max(1, 4 - math.floor(math.log10(abs(value)))))
    text = f"{abs(math.floor(abs(value) * 10**places + 0.5) / 10**places * (1 if value > 0 else -1)):.{places}f}".rstrip("0").rstrip(".")
    return f"-{text}" if value < 0 and text != "0" else text


class Vehicles(PageTest):
    """The daemon with simulated vehicles."""

    @classmethod
    def prepare(cls):
        rig = cls.rig
        links = {
            "ev": rig.simulate("ev", "obd"), "petrol": rig.simulate("petrol", "obd", "--car", "petrol", "--key", "on@0"),
            "board": rig.simulate("board", "vesc"), "gps": rig.simulate("gps", "gpsd"),
        }
        car = free_port()
        rig.start("car", "vehiclesim", "rc-car", "--on", f"tcp:127.0.0.1:{car}", "--restart", "0.5")
        rig.first_line("car")
        rig.start_daemon(f"""
[device.ev]
kind = "obd"
link = "{links["ev"]}"
rate = 20
[device.petrol]
kind = "obd"
link = "{links["petrol"]}"
rate = 5
[device.board]
kind = "longboard"
protocol = "vesc"
link = "{links["board"]}"
allow-motion = true
rate = 5
[device.car]
kind = "rc-car"
link = "tcp:127.0.0.1:{car}"
[device.gps]
kind = "position"
link = "{links["gps"]}"
[device.phone]
kind = "health"
[device.van]
kind = "obd"
link = "tcp:127.0.0.1:9"
""")
        rig.start_history('[history]\nrecord = ["gps"]\n')
        wait(lambda: rig.vehiclectl("get", "ev.vin", "petrol.vin", check=False).returncode == 0, 40)
        rig.start("import", "vehiclesim", "history", "--days", "2", "--device", "ev", "--rate", "1", "--quiet", "--socket", rig.history_socket)
        wait(lambda: any(not trip["open"] for trip in rig.periods("ev")), 600)
        return rig.start_web("--control", "petrol", "--control", "car", "--control", "phone", "--control", "board")

    def test_values_are_those_of_vehiclectl(self):
        for device in ("petrol", "ev"):
            self.open(f"device/{device}", "tr[data-reference]")
            self.page.get_by_role("button", name="that are not reported").click()
            agreed = set()

            def agree():
                before, shown, after = self.rig.readings(f"{device}.*"), self.shown(), self.rig.readings(f"{device}.*")
                for first, second in zip(before, after):
                    reference = f"{first['device']}.{first['property']}"
                    if isinstance(first["value"], list) and first.get("unit"):
                        agreed.add(reference)  # Drawn as bars.
                        continue
                    text, note = shown[reference]
                    for candidate in (first, second):
                        value, unit = candidate["value"], candidate.get("unit", "")
                        if (text is None and value is None and note in ("", candidate.get("reason"))) or (text == rounded(value) and note == unit):
                            agreed.add(reference)
                missing = {f"{one['device']}.{one['property']}" for one in before} - agreed
                self.disagreement = {reference: shown.get(reference) for reference in missing}
                return not missing

            try:
                wait(agree, 30)
            except AssertionError:
                self.fail(f"not as vehiclectl shows them: {self.disagreement}")
        self.assert_no_problems()

    def test_imperial_units(self):
        self.open("device/gps", "tr[data-reference]")
        self.page.get_by_label("Units").select_option("imperial")
        row = self.page.locator("[data-reference='gps.speed']")
        expect(row.locator(".unit")).to_have_text("mph")
        self.assertAlmostEqual(float(row.locator(".number").text_content()), 50 / 1.609344, delta=0.5)
        self.page.get_by_label("Units").select_option("metric")
        expect(row.locator(".unit")).to_have_text("km/h")

    def test_link_problem_with_its_reason(self):
        self.open("", "[data-device=van]")
        card = self.page.locator("[data-device=van]")
        expect(card.locator(".problem")).to_contain_text("cannot reach 127.0.0.1:9: connection refused")
        expect(card.locator(".number").first).to_have_text("–")

    def test_setting_a_property_by_keyboard(self):
        self.open("device/phone", "#set-steps")
        self.page.focus("#set-steps")
        self.page.keyboard.type("4321")
        self.page.keyboard.press("Enter")
        expect(self.page.locator("[data-reference='phone.steps'] .number")).to_have_text("4321")
        self.assertEqual(self.rig.vehiclectl("get", "phone.steps").stdout.split()[0], "4321")
        self.page.focus("#set-steps")
        self.page.evaluate("document.querySelector('#set-steps').max = ''")
        self.page.fill("#set-steps", "99999999")
        self.page.keyboard.press("Enter")
        expect(self.page.locator(".result", has_text="steps: ")).to_be_visible()
        self.assertEqual(self.rig.vehiclectl("get", "phone.steps").stdout.split()[0], "4321")
        self.assert_no_problems()

    def test_all_views_by_keyboard(self):
        self.open("", "[data-device=phone]")
        self.page.keyboard.press("Tab")
        expect(self.page.locator(":focus")).to_have_text("Skip to content")
        self.page.keyboard.press("Enter")
        for _ in range(20):
            self.page.keyboard.press("Tab")
            if self.page.locator(":focus").text_content() == "petrol":
                break
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("heading", level=1)).to_have_text("petrol")
        for name in ("Plot", "History", "Doctor", "Kiosk"):
            self.page.get_by_role("link", name=name, exact=True).focus()
            self.page.keyboard.press("Enter")
            expect(self.page.locator("main h1").first).to_have_text(name)
        self.page.keyboard.press("Tab")
        expect(self.page.locator(":focus")).to_have_text("‹ Overview")

    def test_no_input_without_the_right_and_none_that_moves(self):
        self.open("device/ev", "tr[data-reference]")
        for part in ("controls", "codes", "actions"):
            self.assertEqual(self.page.locator(f"#{part}").count(), 0, part)
        self.assertEqual(self.page.get_by_role("button", name="Disconnect").count(), 0)
        self.open("device/car", "#set-mode")
        labels = self.page.locator("label").all_text_contents()
        declared = json.loads(self.rig.vehiclectl("call", "Describe", '{"device":"car"}').stdout)["schemas"][0]
        for one in declared["properties"]:
            self.assertEqual(one["name"] in labels, one["writable"] and not one["motion"], one["name"])
        offered = self.page.locator("summary .action").all_text_contents()
        self.assertEqual(offered, [one["name"] for one in declared["actions"] if not one["motion"] and one["name"] != "stop"])

    def test_stop_is_on_every_view_of_the_device(self):
        reference = "car.motor-battery-voltage"
        for view in ("", "device/car", f"kiosk/gps.speed,{reference}", f"plot/gps.speed,{reference}"):
            self.open(view, "text=Stop car")
            self.page.get_by_role("button", name="Stop car").click()
            self.page.wait_for_timeout(300)
            self.assertEqual(self.page.locator(".stop [role=alert]").text_content(), "")
        for view in ("kiosk/gps.speed", "plot/gps.speed"):
            self.open(view, "[data-reference='gps.speed']")
            self.assertEqual(self.page.get_by_role("button", name="Stop car").count(), 0)
        self.assert_no_problems()

    def test_action_with_arguments_and_its_report(self):
        self.open("device/car", "#actions")
        self.page.locator("summary", has_text="mode-info").click()
        self.page.get_by_role("button", name="Run mode-info").click()
        expect(self.page.locator(".report").locator("text=/Tilt/").first).to_be_visible()

    def test_trouble_codes_are_cleared_only_after_two_confirmations(self):
        self.open("device/petrol", "#codes")
        count = lambda: self.rig.readings("petrol.dtc-count")[0]["value"]
        codes = wait(lambda: count())
        self.page.get_by_role("button", name="Read trouble codes").click()
        expect(self.page.locator(".report table")).to_be_visible(timeout=20_000)
        self.assertRegex(self.page.locator(".report table").text_content(), r"P0\d{3}")
        self.page.get_by_role("button", name="Clear trouble codes").click()
        self.page.get_by_role("button", name="Clear them").click(timeout=20_000)
        self.page.get_by_role("button", name="Keep the codes").click()
        expect(self.page.locator("dialog")).to_have_count(0)
        self.assertEqual(count(), codes)
        self.page.get_by_role("button", name="Clear trouble codes").click()
        self.page.get_by_role("button", name="Clear them").click(timeout=20_000)
        self.page.get_by_role("button", name="Really clear the codes of petrol").click()
        results = self.page.locator("#codes ~ .report tbody tr")
        expect(results.first).to_contain_text("cleared", timeout=20_000)
        self.assertEqual([row for row in results.all_text_contents() if "not cleared" in row], [])

    def test_recording_is_a_file_that_replays(self):
        self.open("device/board", "#recording")
        self.page.get_by_role("button", name="Start recording").click()
        expect(self.page.locator("#recording ~ .buttons .result")).to_contain_text(re.compile(r"\d\d+ lines"))
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name="Stop and save").click()
        other = Rig()
        self.addCleanup(other.close)
        path = other.directory / "board.ndjson"
        download.value.save_as(path)
        other.start_daemon(f'[device.board]\nkind = "longboard"\nprotocol = "vesc"\nlink = "replay:{path}"\n')
        wait(lambda: other.vehiclectl("get", "board.battery-voltage", check=False).returncode == 0)

    def test_doctor_names_problem_and_remedy(self):
        self.open("doctor", ".findings li")
        finding = self.page.locator(".findings li", has_text="van")
        expect(finding).to_contain_text("failed")
        self.assertTrue(finding.locator(".remedy").text_content())
        expect(self.page.locator(".log li").first).to_be_visible()

    def test_kiosk_shows_the_values_of_the_address(self):
        self.open("kiosk/gps.speed,petrol.fuel-level", ".gauge")
        self.assertEqual(self.page.locator(".gauge").count(), 2)
        expect(self.page.locator("[data-reference='gps.speed'] .number")).to_have_text("50")
        fuel = rounded(round(self.rig.readings("petrol.fuel-level")[0]["value"], 1))
        expect(self.page.locator("[data-reference='petrol.fuel-level'] .number")).to_have_text(fuel)

    def test_reasons_in_the_kiosk_cover_nothing(self):
        for width in (320, 1280):
            self.page.set_viewport_size({"width": width, "height": 640})
            self.open("kiosk/gps.speed,phone.heart-rate,van.battery-power", ".gauge.absent")
            for name, reason in (("phone.heart-rate", "no measurement"), ("van.battery-power", "link down")):
                gauge = self.page.locator(f"[data-reference='{name}']")
                expect(gauge.locator(".reason")).to_contain_text(reason)
                box = gauge.locator(".reason").bounding_box()
                for part in (".number", ".unit", ".name"):
                    other = gauge.locator(f"svg {part}").bounding_box()
                    self.assertTrue(other is None or other["y"] + other["height"] <= box["y"] + 1, f"{name} {part} at {width}")
        # The line above the gauges already has the reason of the first device.
        self.open("kiosk/van.battery-power", ".gauge.absent")
        expect(self.page.locator(".kiosk .problem.bad")).to_contain_text("connection refused")
        expect(self.page.locator(".gauge .reason")).to_have_text("")

    def test_names_of_values_are_whole(self):
        for width in (320, 1280):
            self.page.set_viewport_size({"width": width, "height": 640})
            self.open("device/ev", "tr[data-reference]")
            cut = self.page.evaluate("[...document.querySelectorAll('.group th')].filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)")
            self.assertEqual(cut, [])

    def test_trips_are_those_of_vehiclectl(self):
        finished = [trip for trip in self.rig.periods("ev") if not trip["open"]]
        self.open("history/trip", "tbody tr")
        self.assertGreaterEqual(self.page.locator("tbody tr").count(), len(finished))
        for trip in finished[:3]:
            row = self.page.locator("tr", has=self.page.locator(f"a[href='#/period/{trip['number']}']"))
            expect(row).to_contain_text(f"{trip['distance']['value']:.1f} km")
        self.page.locator(f"a[href='#/period/{finished[0]['number']}']").click()
        expect(self.page.locator("h1")).to_contain_text("Trip of ev")
        expect(self.page.locator(".legend")).to_contain_text("ev.speed")
        expect(self.page.locator(".legend .number").first).not_to_have_text("–")
        self.wait_until_drawn()
        self.assert_no_problems()

    def test_connection_can_be_used_again_after_a_stream(self):
        self.open("", "[data-device=ev]")
        trip = next(trip for trip in self.rig.periods("ev") if not trip["open"])
        call = {"method": "io.vehicled.history.Samples", "more": True, "parameters": {"device": "ev", "start": trip["start"], "end": trip["end"]}}
        replies = self.page.evaluate("""(call) => new Promise((resolve) => {
          const protocols = ["vehicled", `key-${localStorage.getItem("vehicled.key")}`];
          const socket = new WebSocket(location.origin.replace("http", "ws") + "/varlink/io.vehicled.history", protocols);
          const counts = [0, 0];
          let index = 0;
          socket.onopen = () => socket.send(JSON.stringify(call));
          socket.onclose = (event) => resolve(event.reason);
          socket.onmessage = (event) => {
            counts[index] += 1;
            if (JSON.parse(event.data).continues) return;
            index += 1;
            if (index < counts.length) socket.send(JSON.stringify(call));
            else resolve(counts);
          };
        })""", call)
        self.assertEqual(len(replies), 2, replies)
        self.assertGreater(replies[0], 1)
        self.assertEqual(replies[0], replies[1])

    def test_visible_plots_are_drawn(self):
        trip = next(trip for trip in self.rig.periods("ev") if not trip["open"])
        # As in a busy browser: the first change, to invisible, arrives together with a later one.
        self.page.add_init_script("""const Original = IntersectionObserver;
          window.IntersectionObserver = class { constructor(callback) {
            return new Original((entries, observer) => callback([{ target: entries[0].target, isIntersecting: false }, ...entries], observer)); } };""")
        self.open(f"period/{trip['number']}", "main h1")
        expect(self.page.locator(".plot")).to_have_count(4)
        self.wait_until_drawn()
        picture = lambda index: self.page.evaluate("(index) => document.querySelectorAll('.plot .lines')[index].toDataURL()", index)
        first, last = picture(0), picture(3)
        self.page.locator(".charts").press("+")
        wait(lambda: picture(0) != first)
        self.page.locator(".plot").last.scroll_into_view_if_needed()
        wait(lambda: picture(3) != last)

    def test_plot_of_the_history_zooms_to_more_detail(self):
        trip = next(trip for trip in self.rig.periods("ev") if not trip["open"])
        self.open(f"period/{trip['number']}", ".plot canvas")
        expect(self.page.locator(".legend .number").first).not_to_have_text("")
        rows = lambda: self.csv()[1:]
        whole = rows()
        box = self.page.locator(".plot").first.bounding_box()
        self.page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 50)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 50)
        self.page.mouse.up()
        expect(self.page.locator(".buttons .result")).to_contain_text("–")
        part = rows()
        step = lambda lines: (self.moment(lines[-1]) - self.moment(lines[0])) / len(lines)
        self.assertLess(step(part), step(whole))
        self.assertLess(self.moment(part[-1]) - self.moment(part[0]), 0.2 * (self.moment(whole[-1]) - self.moment(whole[0])))

    def test_a_property_that_is_not_recorded_hides_no_other(self):
        trip = next(trip for trip in self.rig.periods("ev") if not trip["open"])
        start, end = trip["start"] // 1_000_000, trip["end"] // 1_000_000
        self.open(f"plot/ev.speed,phone.steps/{start}/{end}", ".legend [data-reference='ev.speed']")
        expect(self.page.locator(".buttons .result")).to_contain_text("phone.steps: phone has no recorded values")
        # The range of the address is none of the list.
        expect(self.page.get_by_label("Range")).to_have_value("range")
        self.wait_until_drawn()
        self.open("plot/phone.steps", ".legend [data-reference='phone.steps']")
        self.page.get_by_label("Range").select_option("1 day")
        expect(self.page.locator(".buttons .result")).to_contain_text("phone.steps: phone has no recorded values")
        self.assertNotIn("now", self.page.locator(".legend").text_content())
        self.assertEqual(self.page.locator(".plot").count(), 0)
        self.assert_no_problems()

    def test_track_of_a_trip(self):
        trip = wait(lambda: next(iter(self.rig.periods("gps")), None), 60)
        self.open(f"period/{trip['number']}", ".track")
        self.assertNotIn("latitude", self.page.locator(".legend").text_content())
        self.assertGreater(len(self.page.locator(".track .way").get_attribute("d")), 20)

    def csv(self):
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name="CSV").click()
        return pathlib.Path(download.value.path()).read_text().splitlines()

    @staticmethod
    def moment(line):
        return datetime.datetime.fromisoformat(line.split(",")[0].replace("Z", "+00:00")).timestamp()

    def test_every_view_at_every_size(self):
        trip = next(trip for trip in self.rig.periods("ev") if not trip["open"])
        views = {"overview": "", "device": "device/ev", "settings": "device/car", "plot": "plot", "history": "history", "trip": f"period/{trip['number']}",
                 "doctor": "doctor", "kiosk": "kiosk"}
        for width, height, scheme in ((320, 640, "dark"), (1440, 900, "light"), (1440, 900, "dark"), (3840, 2160, "light")):
            self.page.set_viewport_size({"width": width, "height": height})
            self.page.emulate_media(color_scheme=scheme)
            for name, view in views.items():
                if width == 3840 and name in ("device", "settings", "history", "doctor"):
                    continue  # Large screenshots take long, and these views have nothing that grows but texts.
                with self.subTest(name, width=width, scheme=scheme):
                    self.open(view, "main h1")
                    self.page.wait_for_timeout(250)
                    if name in ("plot", "trip"):
                        self.wait_until_drawn()
                    self.page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{scheme}.png")
                    self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), width)
                    self.assertTrue(self.page.evaluate("(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)(document.querySelector('nav'))"))
                    if width == 1440:
                        self.assertEqual(self.page.evaluate(POOR_CONTRAST), [])
                        self.assertEqual(self.page.evaluate(UNNAMED), [])
        self.assert_no_problems()

    def test_nothing_moves_while_values_arrive(self):
        self.page.add_init_script("""window.shifts = [];
          new PerformanceObserver((list) => list.getEntries().forEach((entry) => !entry.hadRecentInput && shifts.push(entry.value))).observe({ type: "layout-shift" });""")
        for view, selector in (("", "[data-device]"), ("device/ev", "tr[data-reference]"), ("kiosk", ".gauge"), ("plot", ".plot")):
            with self.subTest(view):
                self.open(view, selector)
                self.page.wait_for_timeout(500)
                self.page.evaluate("shifts.length = 0")
                self.page.wait_for_timeout(3000)
                self.assertLess(self.page.evaluate("shifts.reduce((sum, shift) => sum + shift, 0)"), 0.01)


# Texts with less contrast than WCAG 2.2 requires (4.5, or 3 for large text).
POOR_CONTRAST = """() => {
  const channel = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const parse = (color) => { const parts = color.match(/[\\d.]+/g).map(Number); return parts.length > 3 ? parts : [...parts, 1]; };
  const luminance = ([red, green, blue]) => 0.2126 * channel(red / 255) + 0.7152 * channel(green / 255) + 0.0722 * channel(blue / 255);
  const background = (node) => { for (; node; node = node.parentElement) { const color = parse(getComputedStyle(node).backgroundColor); if (color[3] > 0.9) return color; } return [255, 255, 255]; };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    if (!node.checkVisibility() || node.closest("svg, .unseen, .skip, option, :disabled")) continue;
    if (![...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim())) continue;
    const style = getComputedStyle(node);
    const [one, other] = [luminance(parse(style.color)), luminance(background(node))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) found.push(`${node.className || node.tagName} ${node.textContent.slice(0, 30)} ${contrast.toFixed(2)}`);
  }
  return [...new Set(found)].slice(0, 5);
}"""

# Controls without a name for screen readers.
UNNAMED = """() => [...document.querySelectorAll("a, button, input, select")].filter((node) => node.checkVisibility()
  && !(node.textContent.trim() || node.getAttribute("aria-label") || node.labels?.length)).map((node) => node.outerHTML.slice(0, 120))"""


class Failures(PageTest):
    """What the page shows while the car is off, or while the daemon is not running."""

    @classmethod
    def prepare(cls):
        link = cls.rig.simulate("ev", "obd", "--key", "off@14")
        cls.rig.start_daemon(f'[device.ev]\nkind = "obd"\nlink = "{link}"\nrate = 20\n[device.phone]\nkind = "health"\n')
        return cls.rig.start_web()

    def test_1_car_switched_off(self):
        self.open("", "[data-device=ev]")
        number = lambda name: self.page.locator(f"[data-reference='ev.{name}'] .number").text_content()
        wait(lambda: re.match(r"[\d.-]", number("speed")), 12)
        expect(self.page.locator("[data-device=ev] .state")).to_have_text("polling")
        wait(lambda: number("speed") == number("battery-power") == "–", 30)
        expect(self.page.locator("[data-device=ev] .problem")).to_contain_text("no response from the vehicle")
        # The state of charge is still that of the car, and is shown with its age.
        self.assertRegex(number("state-of-charge-display"), r"\d")
        expect(self.page.locator("[data-reference='ev.state-of-charge-display'] .age")).to_have_text(re.compile(r"\d+ s|min"))
        self.open("device/ev", "tr[data-reference]")
        values, retained = self.shown(), {"vehicle", "adapter", "protocol", "request"}
        declared = json.loads(self.rig.vehiclectl("call", "Describe", '{"device":"ev"}').stdout)["schemas"][0]["properties"]
        retained |= {one["name"] for one in declared if one.get("retained") or one.get("group") in ("adapter", "statistics")}
        current = {reference: shown for reference, shown in values.items() if reference.removeprefix("ev.") not in retained and shown[0] is not None}
        self.assertEqual(current, {})

    def test_2_daemon_killed_and_back(self):
        self.open("device/phone", "tr[data-reference]")
        self.rig.vehiclectl("set", "phone.steps", "77")
        steps = self.page.locator("[data-reference='phone.steps'] .number")
        expect(steps).to_have_text("77")
        self.rig.end("daemon", signal.SIGKILL)
        banner = self.page.locator(".banner")
        expect(banner).to_have_text(re.compile("^No current values: .+; connecting again$"))
        self.assertNotRegex(self.page.locator(".groups").text_content(), r"77")
        expect(self.page.locator(".state")).to_have_text("unknown")
        self.rig.start_daemon()
        expect(banner).to_be_hidden(timeout=15_000)
        self.rig.vehiclectl("set", "phone.steps", "78")
        expect(steps).to_have_text("78")

    def test_2_banner_before_the_first_reply(self):
        self.rig.running["daemon"].send_signal(signal.SIGSTOP)
        try:
            self.page.goto("about:blank")
            self.page.goto(f"{self.address}#/")
            expect(self.page.locator(".banner")).to_have_text("No current values: connecting to vehicled")
        finally:
            self.rig.running["daemon"].send_signal(signal.SIGCONT)
        expect(self.page.locator(".banner")).to_be_hidden(timeout=15_000)

    def test_2_log_goes_on_after_a_restart(self):
        self.open("doctor", ".log li")
        self.rig.end("daemon")
        ended = self.page.locator(".log li", has_text="has closed the connection")
        expect(ended).to_be_visible()
        self.rig.start_daemon()
        after = ended.locator("xpath=following-sibling::li")
        expect(after.first).to_be_visible(timeout=20_000)
        # What was shown before is not repeated: each daemon started once, and one stopped. Their times can be the same.
        lines = self.page.locator(".log li").all_text_contents()
        self.assertEqual([sum(words in line for line in lines) for words in ("notice serving ", "notice stopping")], [2, 1], lines)

    def test_3_daemon_hangs(self):
        self.open("device/phone", "tr[data-reference]")
        self.rig.vehiclectl("set", "phone.steps", "79")
        steps = self.page.locator("[data-reference='phone.steps'] .number")
        expect(steps).to_have_text("79")
        self.rig.running["daemon"].send_signal(signal.SIGSTOP)
        banner = self.page.locator(".banner")
        expect(banner).to_contain_text("vehicled does not respond", timeout=10_000)
        expect(steps).not_to_have_text("79")
        self.rig.running["daemon"].send_signal(signal.SIGCONT)
        expect(banner).to_be_hidden(timeout=15_000)
        expect(steps).to_have_text("79")

    def test_3_history_started_later(self):
        self.open("", "[data-device=phone]")
        link = self.page.get_by_role("link", name="History", exact=True)
        self.assertEqual(link.count(), 0)
        self.rig.start_history('[history]\nrecord = ["phone"]\n')
        self.page.get_by_role("link", name="Doctor", exact=True).click()
        expect(link).to_be_visible()
        expect(self.page.get_by_role("link", name="Doctor", exact=True)).to_have_attribute("aria-current", "page")
        link.click()
        expect(self.page.locator("main h1")).to_have_text("History")

    def test_4_session_ended(self):
        self.open("", "[data-device=phone]")
        self.rig.end("web")
        expect(self.page.locator(".banner")).to_contain_text("No current values", timeout=15_000)


HOSTILE = [
    "<img src=x onerror=\"window.hacked=1\">", "<script>window.hacked=2</script>", "\"><svg onload=window.hacked=3>", "javascript:window.hacked=4",
    "</table><h1>owned", "${window.hacked=5}", "{{constructor.constructor('window.hacked=6')()}}", "' onmouseover='window.hacked=7", "\u202eevil\u0000\u0007",
    "a" * 3000, "__proto__", "constructor", "%00%3Cscript%3E", "#/doctor", "&lt;b&gt;",
]


class Hostile(PageTest):
    """Texts of devices are data, wherever they occur."""

    @classmethod
    def prepare(cls):
        schemas, devices = [], []
        for index, text in enumerate(HOSTILE):
            name = text if index % 2 else f"device-{index}"
            properties = [{"name": text, "type": "string", "writable": True, "motion": False, "help": text, "group": text, "rank": 1, "unit": text, "choices": [text]},
                          {"name": "plain", "type": "float", "writable": False, "motion": False, "help": text, "group": "drive", "rank": 1, "unit": text}]
            action = {"name": text, "arguments": [{"name": text, "type": "string", "optional": True, "secret": False, "help": text}], "motion": False, "streams": False, "help": text}
            schemas.append({"device": name, "kind": text, "properties": properties, "actions": [action]})
            devices.append({
                "name": name, "kind": text, "state": text, "fault": text, "holder": text,
                "links": [{"name": text, "url": text, "state": text, "reason": text, "since": 0, "details": {text: text}}],
                "readings": [reading(name, text, text, text), reading(name, "plain", 1.5, text)],
            })
        findings = [{"subject": text, "state": "failed", "text": text, "remedy": text} for text in HOSTILE]
        cls.fake = FakeDaemon(cls.rig.daemon_socket, schemas, devices, findings)
        cls.addClassCleanup(cls.fake.close)
        return cls.rig.start_web()

    def test_every_text_stays_text(self):
        views = {"": "[data-device]", "doctor": ".findings li", "plot": ".choices label", "kiosk": ".kiosk"}
        views |= {f"device/{self.page.evaluate('encodeURIComponent', text if index % 2 else f'device-{index}')}": ".head" for index, text in enumerate(HOSTILE)}
        for view, selector in views.items():
            with self.subTest(view[:40]):
                self.open(view, selector)
                self.page.wait_for_timeout(50)
                self.assertIsNone(self.page.evaluate("window.hacked ?? null"))
                self.assertEqual(self.page.locator("img, script:not([src='main.js']), svg[onload], [onerror], [onmouseover], body h1:text('owned')").count(), 0)
        self.open("", "[data-device]")
        states = self.page.locator(".state").all_text_contents()
        self.assertEqual([text.replace("\0", "") for text in HOSTILE], [text.replace("\ufffd", "").replace("\0", "") for text in states])
        self.assert_no_problems()


class Live(PageTest):
    """Live plots of a fake daemon whose samples are known."""

    @classmethod
    def prepare(cls):
        properties = [{"name": f"value-{letter}", "type": "float", "writable": False, "motion": False, "help": "", "group": "drive", "rank": 1, "unit": "A"} for letter in "abcdef"]
        cls.names = [one["name"] for one in properties]
        device = {"name": "ev", "kind": "obd", "state": "polling", "links": [], "readings": [reading("ev", name, 0.0, "A") for name in cls.names]}
        cls.fake = FakeDaemon(cls.rig.daemon_socket, [{"device": "ev", "kind": "obd", "properties": properties, "actions": []}], [device])
        cls.addClassCleanup(cls.fake.close)
        return cls.rig.start_web()

    csv = Vehicles.csv

    def test_no_update_is_dropped_and_absence_is_a_gap(self):
        self.open(f"plot/{','.join(f'ev.{name}' for name in self.names)}", ".legend .number")
        start = time.time()
        for index in range(100):
            values = [None if index == 50 and name == "value-a" else float(index) for name in self.names]
            self.fake.send(changes=[reading("ev", name, value, "A" if value is not None else "stale", start + index / 20) for name, value in zip(self.names, values)])
            time.sleep(0.05)
        expect(self.page.locator("[data-reference='ev.value-b'] .number")).to_have_text("99")
        self.page.wait_for_timeout(100)
        columns = list(zip(*[line.split(",") for line in self.csv()[1:]]))
        self.assertEqual([cell for cell in columns[2] if cell][-100:], [str(index) for index in range(100)])
        self.assertNotIn("50", columns[1])
        self.page.keyboard.press("Escape")
        self.assert_no_problems()

    def test_pause_and_hover(self):
        self.open("plot/ev.value-a", ".plot")
        self.fake.send(changes=[reading("ev", "value-a", 12.5, "A")])
        number = self.page.locator(".legend .number")
        expect(number).to_have_text("12.5")
        self.page.wait_for_timeout(1000)
        self.page.locator("main").click(position={"x": 2, "y": 2})
        self.page.keyboard.press("Space")
        expect(self.page.get_by_role("button", name="Continue")).to_be_visible()
        self.fake.send(changes=[reading("ev", "value-a", 99.0, "A")])
        self.page.wait_for_timeout(200)
        box = self.page.locator(".plot").bounding_box()
        self.page.mouse.move(box["x"] + box["width"] - 14, box["y"] + 40)
        expect(number).to_have_text("12.5")
        self.page.mouse.move(0, 0)
        self.page.get_by_role("button", name="Continue").click()
        expect(number).to_have_text("99")

    def test_paused_plot_stays_whole(self):
        self.open("plot/ev.value-a", ".plot")
        number, start = self.page.locator(".legend .number"), time.time()
        for second in range(-40, 1):
            self.fake.send(changes=[reading("ev", "value-a", float(second), "A", start + second)])
        expect(number).to_have_text("0")
        self.page.get_by_role("button", name="Pause").click()
        before = self.csv()
        self.assertGreater(len(before), 40)
        for minute in range(1, 20):
            self.fake.send(changes=[reading("ev", "value-a", 99.0, "A", start + 60 * minute)])
        self.page.wait_for_timeout(300)
        self.assertEqual(self.csv(), before)
        self.page.get_by_role("button", name="Continue").click()
        expect(number).to_have_text("99")

    def test_clock_set_back(self):
        self.open("plot/ev.value-a", ".plot")
        number, start = self.page.locator(".legend .number"), time.time()
        for second in range(60):
            self.fake.send(changes=[reading("ev", "value-a", 5.0, "A", start + second)])
        expect(number).to_have_text("5")
        for index in range(3):
            self.fake.send(changes=[reading("ev", "value-a", 7.0 + index, "A", start + 20 + index)])
        expect(number).to_have_text("9")
        self.assertEqual([line.split(",")[1] for line in self.csv()[-4:]], ["5", "7", "8", "9"])
        # A value from before the clock was set does not give the clock.
        old = reading("ev", "value-b", 1.0, "A", start - 5000, age=100)
        self.fake.send(changes=[old, reading("ev", "value-a", 11.0, "A", start + 24)])
        expect(number).to_have_text("11")
        self.fake.send(changes=[old], time=int((start + 24) * 1e6))
        self.page.wait_for_timeout(400)
        expect(number).to_have_text("11")
        self.assert_no_problems()

    def test_picture_is_saved(self):
        self.open("plot/ev.value-a", ".plot")
        self.page.wait_for_timeout(200)
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name="PNG").click()
        self.assertEqual(pathlib.Path(download.value.path()).read_bytes()[:4], b"\x89PNG")


class Declaring(PageTest):
    """A device that declares its schema again while the page shows it."""

    @classmethod
    def prepare(cls):
        cls.properties = [
            {"name": "steps", "type": "int", "writable": True, "motion": False, "help": "", "group": "health", "rank": 1},
            {"name": "speed", "type": "float", "writable": False, "motion": False, "help": "", "group": "drive", "rank": 1, "unit": "km/h"},
        ]
        cls.actions = [{"name": "rates", "arguments": [{"name": "count", "type": "int", "optional": True, "secret": False, "help": ""}],
                        "motion": False, "streams": False, "help": ""}]
        link = {"name": "main", "url": "tcp:127.0.0.1:9", "state": "up", "since": 0}
        device = {"name": "ev", "kind": "obd", "state": "polling", "links": [link], "readings": [reading("ev", "steps", 5), reading("ev", "speed", 1.5, "km/h")]}
        cls.fake = FakeDaemon(cls.rig.daemon_socket, [cls.schema()], [device])
        cls.addClassCleanup(cls.fake.close)
        return cls.rig.start_web("--control", "ev")

    @classmethod
    def schema(cls, **changes):
        return {"device": "ev", "kind": "obd", "properties": [cls.properties[0], cls.properties[1] | changes], "actions": cls.actions}

    def test_inputs_and_a_recording_outlast_a_declaration(self):
        self.open("device/ev", "#set-steps")
        self.page.get_by_role("button", name="Start recording").click()
        status = self.page.locator("#recording ~ .buttons .result")
        expect(status).to_contain_text("1 lines")
        self.page.locator("summary").click()
        self.page.fill("#do-rates-count", "7")
        self.page.fill("#set-steps", "42")
        row = self.page.locator("[data-reference='ev.speed']")
        row.evaluate("(row) => (row.isOld = true)")
        self.fake.send(schemas=[self.schema()])
        self.page.wait_for_timeout(300)
        self.assertTrue(row.evaluate("(row) => row.isOld"))
        self.fake.send(schemas=[self.schema(help="Another text")])
        expect(row.locator("th")).to_have_attribute("title", "Another text")
        expect(self.page.locator("#set-steps")).to_have_value("42")
        expect(self.page.locator("#set-steps")).to_be_focused()
        expect(self.page.locator("#do-rates-count")).to_have_value("7")
        expect(status).to_contain_text("1 lines")
        with self.page.expect_download() as download:
            self.page.get_by_role("link", name="Overview").click()
        self.assertEqual(pathlib.Path(download.value.path()).read_text(), '{"link":"main"}\n')
        self.assert_no_problems()


class Reconfigured(PageTest):
    """A device that is reconfigured while the page shows it: the daemon reports that it was removed, and the same one again."""

    @classmethod
    def prepare(cls):
        speed = {"name": "speed", "type": "float", "writable": False, "motion": False, "help": "", "group": "drive", "rank": 1, "unit": "km/h"}
        actions = [{"name": name, "arguments": [], "motion": False, "streams": False, "help": ""} for name in ("dtc", "dtc-clear")]
        cls.schema = {"device": "ev", "kind": "obd", "properties": [speed], "actions": actions}
        cls.device = {"name": "ev", "kind": "obd", "state": "polling", "links": [{"name": "main", "url": "tcp:127.0.0.1:9", "state": "up", "since": 0}],
                      "readings": [reading("ev", "speed", 1.5, "km/h")]}
        cls.fake = FakeDaemon(cls.rig.daemon_socket, [cls.schema], [cls.device], reports={"dtc-clear": "This will be lost: P0420"})
        cls.addClassCleanup(cls.fake.close)
        return cls.rig.start_web("--control", "ev")

    def remove(self, **others):
        self.fake.send(events=[{"device": "ev", "name": "removed", "text": "device reconfigured or removed", "time": int(time.time() * 1e6)}], **others)

    def replace(self, value):
        """The daemon sends these one by one, and the page gets them within one frame."""
        device = self.device | {"readings": [reading("ev", "speed", None, "not known yet")]}
        self.remove(schemas=[self.schema], snapshot=[device], changes=[reading("ev", "speed", value, "km/h")])

    def test_views_show_the_new_device(self):
        views = {"": ".card .number", "device/ev": "tr[data-reference='ev.speed'] .number", "plot/ev.speed": ".legend .number", "kiosk/ev.speed": ".gauge"}
        for count, (view, number) in enumerate(views.items()):
            with self.subTest(view=view):
                self.open(view, number)
                self.replace(40.5 + count)
                expect(self.page.locator(number).first).to_contain_text(f"{40.5 + count}")
        self.assert_no_problems()

    def test_no_view_shows_the_last_device_after_its_removal(self):
        for view, number in {"": ".card", "device/ev": "tr[data-reference]", "plot/ev.speed": ".legend .number", "kiosk": ".gauge"}.items():
            with self.subTest(view=view):
                self.open(view, number)
                self.remove()
                expect(self.page.locator(number)).to_have_count(0)
        self.assert_no_problems()

    def test_kiosk_returns_to_the_chosen_device(self):
        self.open("kiosk", ".gauge")
        selected = self.page.get_by_label("Device", exact=True)
        expect(selected).to_have_value("ev")
        self.fake.send(schemas=[self.schema | {"device": "van"}], snapshot=[
            self.device | {"name": "van", "readings": [reading("van", "speed", 7.5, "km/h")]}])
        self.remove()
        expect(selected).to_have_value("van")
        expect(self.page.locator(".gauge")).to_contain_text("7.5")
        self.replace(41.5)
        expect(selected).to_have_value("ev")
        expect(self.page.locator(".gauge")).to_contain_text("41.5")
        self.assert_no_problems()

    def test_a_new_line_is_drawn_whole(self):
        """Not only from its first sample on: what is left of it belongs to the old device."""
        self.open("plot/ev.speed", ".plot")
        changes = self.page.evaluate("""async () => {
          const [{ LiveTrace }, { Ring }] = await Promise.all(["trace", "ring"].map((name) => import(`${location.origin}/${name}.js`)));
          const ring = new Ring();
          ring.push(5, 1);
          const trace = new LiveTrace({}, "", ring);
          const first = trace.takeChange();
          ring.push(6, 2);
          return [first, trace.takeChange(), trace.takeChange()];
        }""")
        self.assertEqual(changes, [-math.inf, 6, math.inf])

    def test_codes_of_another_vehicle_are_not_cleared(self):
        self.open("device/ev", ".danger")
        self.page.get_by_role("button", name="Clear trouble codes").click()
        expect(self.page.locator("dialog")).to_contain_text("P0420")
        self.replace(3.5)
        expect(self.page.locator("dialog")).to_have_count(0)
        self.assert_no_problems()


class Lists(PageTest):
    """Lists, and series of properties that are folded into one row."""

    @classmethod
    def prepare(cls):
        declare = lambda name, kind, unit: {"name": name, "type": kind, "writable": False, "motion": False, "help": "", "group": "temperatures", "rank": 2, "unit": unit}
        names = [f"module-temperature-{number}" for number in range(1, 5)]
        properties = [declare("strip", "list", "°C"), declare("short", "list", "km/h"), *(declare(name, "float", "°C") for name in names)]
        readings = [reading("ev", "strip", ["0", "10", "?", "20", "30"], "°C"), reading("ev", "short", ["100", "?", "off"], "km/h"),
                    *(reading("ev", name, 17.0 + index, "°C") for index, name in enumerate(names))]
        device = {"name": "ev", "kind": "obd", "state": "polling", "links": [], "readings": readings}
        cls.fake = FakeDaemon(cls.rig.daemon_socket, [{"device": "ev", "kind": "obd", "properties": properties, "actions": []}], [device])
        cls.addClassCleanup(cls.fake.close)
        return cls.rig.start_web()

    def test_a_series_has_its_oldest_age_and_why_members_are_absent(self):
        self.open("device/ev", "button.fold")
        row = self.page.locator("tr", has=self.page.locator("button.fold"))
        expect(row).to_contain_text("17 – 20 °C")
        self.fake.send(changes=[reading("ev", "module-temperature-2", 18.0, "°C", time.time() - 300, age=300),
                                reading("ev", "module-temperature-1", None, "not answered")])
        expect(row.locator(".age")).to_have_text("5 min")
        expect(row.locator("td").first).to_have_text("18 – 20 °C 3 of 4; not answered")
        self.fake.send(changes=[reading("ev", f"module-temperature-{number}", None, "not answered") for number in range(1, 5)])
        expect(row.locator("td").first).to_have_text(re.compile("^–\\s+not answered$"))
        expect(row.locator(".age")).to_have_text("")
        cut = row.evaluate("(row) => [...row.cells].filter((cell) => cell.scrollWidth > cell.clientWidth).length")
        self.assertEqual(cut, 0)
        self.assert_no_problems()

    def test_entries_are_converted_with_their_unit(self):
        self.open("device/ev", ".cells")
        expect(self.page.locator(".summary")).to_contain_text("0 – 30 °C, Δ 30 °C")
        heights = lambda: self.page.locator(".cells span").evaluate_all("(bars) => bars.map((bar) => bar.style.height)")
        before = heights()
        self.page.get_by_label("Units").select_option("imperial")
        expect(self.page.locator(".summary")).to_contain_text("5 values, 1 unreadable: 32 – 86 °F, Δ 54 °F")
        self.assertEqual(heights(), before)
        expect(self.page.locator("[data-reference='ev.short'] .number")).to_have_text("62.1; ?; off")
        expect(self.page.locator("[data-reference='ev.short'] .unit")).to_have_text("mph")
        self.page.get_by_label("Units").select_option("metric")
        expect(self.page.locator("[data-reference='ev.short'] .number")).to_have_text("100; ?; off")
        self.assert_no_problems()


class Explained(PageTest):
    """What is missing, unknown or beyond the numbers of a browser is said in words, without a mouse."""

    @classmethod
    def prepare(cls):
        declare = lambda name, kind, unit=None: {"name": name, "type": kind, "writable": False, "motion": False, "help": "", "group": "drive", "rank": 1, "unit": unit}
        properties = [declare("speed", "float", "km/h"), declare("rpm", "float", "rpm"), declare("counter", "int"), declare("label", "string"), declare("voltages", "list", "V"),
                      declare("boost", "float", "bar") | {"lifetime": 1.0}]
        readings = [reading("ev", "speed", 50.0, "km/h"), reading("ev", "rpm", None, "not answered"), reading("ev", "counter", 2**53 + 1),
                    reading("ev", "label", "blue"), reading("ev", "voltages", None, "not requested yet"), reading("ev", "boost", 1.0, "bar")]
        device = {"name": "ev", "kind": "obd", "state": "polling", "links": [], "readings": readings}
        cls.fake = FakeDaemon(cls.rig.daemon_socket, [{"device": "ev", "kind": "obd", "properties": properties, "actions": []}], [device])
        cls.addClassCleanup(cls.fake.close)
        return cls.rig.start_web()

    def test_reasons_of_absent_values(self):
        self.open("", "[data-device=ev]")
        expect(self.page.locator("[data-reference='ev.rpm'] .reason")).to_have_text("not answered")
        self.page.screenshot(path=SCREENSHOTS / "reason.png")
        self.open("plot/ev.speed,ev.rpm", ".legend [data-reference='ev.rpm']")
        expect(self.page.locator(".legend [data-reference='ev.rpm'] .number")).to_have_text("–")
        expect(self.page.locator(".charts .help")).to_have_text("ev.rpm: not answered")
        self.page.locator(".charts").press("ArrowLeft")
        expect(self.page.locator(".charts .help")).to_contain_text("ev.rpm: no value at this time")
        self.assert_no_problems()

    def test_a_value_ends_with_its_lifetime(self):
        self.open("device/ev", "tr[data-reference='ev.boost']")
        number = lambda name: self.page.locator(f"tr[data-reference='ev.{name}'] .number")
        for value in (1.5, 1.5, 1.6):
            # Between two values, the daemon is stopped for less time than the server takes to notice.
            self.fake.send(changes=[reading("ev", "boost", value, "bar")])
            expect(number("boost")).to_have_text(str(value))
            expect(number("boost")).to_have_text("– stale", timeout=4000)
        expect(self.page.locator(".banner")).to_be_hidden()
        expect(number("counter")).to_have_text("9007199254740993")
        self.assert_no_problems()

    def test_long_reasons_are_whole(self):
        for width in (320, 1280):
            self.page.set_viewport_size({"width": width, "height": 640})
            self.open("device/ev", "tr[data-reference='ev.speed']")
            self.fake.send(changes=[reading("ev", "speed", None, "no measurement in the last 120 s; connect the strap, or set the value by hand")])
            row = self.page.locator("tr[data-reference='ev.speed']")
            expect(row).to_contain_text("or set the value by hand")
            self.assertEqual(row.evaluate("(row) => [...row.cells].filter((cell) => cell.scrollWidth > cell.clientWidth).length"), 0)
        self.assert_no_problems()

    def test_unknown_names_in_bookmarks(self):
        status = self.page.locator(".buttons .result")
        self.open("plot/ev.speed,ev.nothing,van.speed,ev.label", ".legend [data-reference='ev.speed']")
        expect(status).to_have_text("no such property: ev.nothing, van.speed; not a number: ev.label")
        self.open(f"plot/{','.join(['ev.speed'] * 9)}", ".plot")
        expect(status).to_have_text("only 8 of 9 properties are shown")
        for end, message in (("abc", "no valid range"), ("9", "vehicled-history, which is not running")):
            self.open(f"plot/ev.speed/5/{end}", ".plot")
            expect(status).to_contain_text(message)
        self.open("kiosk/ev.speed,ev.nothing", ".gauge")
        expect(self.page.locator(".kiosk .problem")).to_have_text("no such property: ev.nothing")
        self.assert_no_problems()

    def test_addresses_that_lead_nowhere(self):
        for view, message in (("nothing", 'There is no view "nothing"'), ("constructor", 'There is no view "constructor"'),
                              ("period/abc", '"abc" is not the number of a period'), ("device/van", 'No such device: "van"')):
            self.open(view, "main .empty")
            expect(self.page.locator("main .empty")).to_contain_text(message)
            expect(self.page.locator("main .empty a")).to_be_visible()
        self.assert_no_problems()

    def test_selection_of_a_live_plot(self):
        self.open("plot/ev.speed", ".plot")
        select = self.page.get_by_label("Range")
        expect(select).to_have_value("1 min")
        self.page.locator(".charts").press("+")
        expect(select).to_have_value("range")
        self.page.get_by_role("button", name="Continue").click()
        expect(select).to_have_value("1 min")

    def test_large_integers_keep_their_digits(self):
        for view, place in (("", "[data-reference='ev.counter']"), ("device/ev", "tr[data-reference='ev.counter']")):
            self.open(view, place)
            expect(self.page.locator(f"{place} .number")).to_have_text("9007199254740993")
            self.assertTrue(self.page.locator(f"{place} .number").evaluate("(number) => number.parentNode.scrollWidth <= number.parentNode.clientWidth"), view)

    def test_lists_that_arrive_later_become_bars(self):
        self.open("device/ev", "tr[data-reference='ev.voltages']")
        self.fake.send(changes=[reading("ev", "voltages", ["3.80", "3.81", "3.82", "3.80"], "V")])
        expect(self.page.locator(".cells span")).to_have_count(4)
        expect(self.page.locator(".summary")).to_contain_text("3.80 – 3.82 V, Δ 20 mV")
        self.fake.send(changes=[reading("ev", "voltages", None, "stale")])
        expect(self.page.locator(".summary")).to_have_text("– stale")
        self.assert_no_problems()


class Access(PageTest):
    """Who may use the server: only a signed-in browser, and only the server's own page in it."""

    @classmethod
    def prepare(cls):
        cls.rig.start_daemon('[device.phone]\nkind = "health"\n')
        cls.other_origin = cls.serve_evil_page()
        return cls.rig.start_web("--control", "phone")

    @classmethod
    def serve_evil_page(cls):
        """A page of another origin on the same host, to which browsers also send the cookie."""
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(b"<!doctype html><title>evil</title>")

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}/"

    def request(self, method, path, headers={}, body=None):
        connection = http.client.HTTPConnection(self.address.removeprefix("http://").rstrip("/"))
        connection.request(method, path, body, headers)
        reply = connection.getresponse()
        result = reply.status, reply.read().decode(errors="replace"), reply.headers
        connection.close()
        return result

    def test_token_leaves_the_address_and_works_once(self):
        other = browser.new_context()
        self.addCleanup(other.close)
        page = other.new_page()
        page.goto(self.link)
        expect(page.locator("h1")).to_have_text("Not signed in")
        self.assertIn("vehicled-web", page.locator("main").text_content())
        self.assertNotIn("token", page.url)
        page.goto(f"{self.address}?1#token=0123456789abcdef0123456789abcdef")
        expect(page.locator("[role=alert]")).to_contain_text("invalid")

    def test_link_in_the_same_tab(self):
        link = self.rig.start_web(name="same-tab")
        other = browser.new_context()
        self.addCleanup(other.close)
        page = other.new_page()
        page.goto(link.partition("#")[0])
        expect(page.locator("h1")).to_have_text("Not signed in")
        page.goto(link)
        page.wait_for_selector("[data-device=phone]")
        # The link was used, but the browser has a session. The server prints another link.
        page.evaluate("window.isOld = true")
        page.goto(link)
        page.wait_for_function("() => !window.isOld")
        page.wait_for_selector("[data-device=phone]")
        self.assertNotIn("token", page.url)
        page.evaluate("window.isOld = true")
        page.goto(wait(lambda: next(iter(self.rig.output("same-tab").split()[1:]), None)))
        page.wait_for_function("() => !window.isOld")
        page.wait_for_selector("[data-device=phone]")
        self.assertNotIn("token", page.url)

    def test_no_page_without_session(self):
        other = browser.new_context()
        self.addCleanup(other.close)
        page = other.new_page()
        page.goto(self.address)
        expect(page.locator("h1")).to_have_text("Not signed in")
        self.assertEqual(self.request("GET", "/session")[0], 401)
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
        self.assertEqual(self.request("GET", "/varlink/io.vehicled", upgrade | {"Origin": self.address.rstrip("/")})[0], 401)

    def test_cookie_alone_is_worth_nothing(self):
        """Browsers send it to other servers of this host as well."""
        cookies = "; ".join(f"{one['name']}={one['value']}" for one in self.context.cookies())
        self.assertIn("vehicled-web-", cookies)
        self.assertEqual(self.request("GET", "/session", {"Cookie": cookies})[0], 401)
        self.open("", "[data-device=phone]")
        key = self.page.evaluate("localStorage.getItem('vehicled.key')")
        self.assertEqual(self.request("GET", "/session", {"Cookie": cookies, "Vehicled-Key": key})[0], 200)

    def test_other_origins_are_refused(self):
        page = self.context.new_page()
        self.addCleanup(page.close)
        page.goto(self.other_origin)
        attempts = page.evaluate("""async (address) => {
          const socket = new WebSocket(address.replace("http", "ws") + "varlink/io.vehicled");
          const opened = await new Promise((resolve) => { socket.onopen = () => resolve(true); socket.onclose = () => resolve(false); });
          const read = await fetch(address + "session", { credentials: "include" }).then((reply) => reply.text(), () => "refused");
          const end = await fetch(address + "session", { method: "DELETE", credentials: "include" }).then(() => "done", () => "refused");
          await fetch(address + "session", { method: "POST", mode: "no-cors", credentials: "include", body: "{}" }).catch(() => {});
          const frame = document.createElement("iframe");
          frame.src = address;
          document.body.append(frame);
          await new Promise((resolve) => (frame.onload = resolve));
          return { opened, read, end };
        }""", self.address)
        self.assertEqual(attempts, {"opened": False, "read": "refused", "end": "refused"})
        self.assertEqual([frame.title() for frame in page.frames if "vehicled" in frame.title()], [])
        self.open("", "[data-device=phone]")  # The session is still there.

    def test_other_hosts_are_refused(self):
        page = self.context.new_page()
        self.addCleanup(page.close)
        port = self.address.rsplit(":", 1)[1]
        reply = page.goto(f"http://{REBOUND}:{port}")
        self.assertGreaterEqual(reply.status, 400)
        self.assertNotIn("main.js", page.content())
        for headers in ({"Host": "evil.example"}, {"Host": ""}):
            self.assertGreaterEqual(self.request("GET", "/", headers)[0], 400)

    def test_sign_out_ends_the_session(self):
        link = self.rig.start_web(name="second")
        page = self.context.new_page()
        self.addCleanup(page.close)
        page.goto(link)
        page.get_by_role("button", name="Sign out").click()
        expect(page.locator("h1")).to_have_text("Not signed in")

    def test_kiosk_token_starts_with_gauges_and_may_not_control(self):
        token = self.rig.directory / "kiosk.token"
        token.write_text("0123456789abcdef0123456789abcdef\n")
        token.chmod(0o600)
        configuration = self.rig.directory / "web.toml"
        port = free_port()
        configuration.write_text(f"""
[web]
listen = "127.0.0.1:{port}"
daemon = "{self.rig.daemon_socket}"
history = "{self.rig.history_socket}"
files = "{PAGE}"
[token.kiosk]
file = "{token}"
kiosk = true
""")
        def start():
            self.rig.start("kiosk", "vehicled-web", "--config", configuration, environment={"RUNTIME_DIRECTORY": str(self.rig.directory)})
            wait(lambda: "serving" in self.rig.errors("kiosk"))

        start()
        context = browser.new_context()
        self.addCleanup(context.close)
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{port}/#token=0123456789abcdef0123456789abcdef")
        expect(page.locator(".gauge").first).to_be_visible()
        self.assertEqual(page.url, f"http://127.0.0.1:{port}/#/kiosk")
        page.goto(f"http://127.0.0.1:{port}/#/device/phone")
        page.wait_for_selector("tr[data-reference]")
        self.assertEqual(page.locator("#controls").count(), 0)
        # A restart signs out no browser, whether its page is open or not.
        self.rig.end("kiosk")
        expect(page.locator(".banner")).to_contain_text("No current values", timeout=15_000)
        start()
        expect(page.locator(".banner")).to_be_hidden(timeout=15_000)
        page.reload()
        page.wait_for_selector("tr[data-reference]")

    def test_after_a_restart_a_page_observes_until_it_signs_in_again(self):
        token = self.rig.directory / "phone.token"
        token.write_text("fedcba9876543210fedcba9876543210\n")
        token.chmod(0o600)
        configuration = self.rig.directory / "phone.toml"
        port = free_port()
        configuration.write_text(f"""
[web]
listen = "127.0.0.1:{port}"
daemon = "{self.rig.daemon_socket}"
files = "{PAGE}"
[token.phone]
file = "{token}"
control = ["phone"]
""")
        directory = self.rig.directory / "phone-run"
        directory.mkdir()

        def start():
            self.rig.start("phone", "vehicled-web", "--config", configuration, environment={"RUNTIME_DIRECTORY": str(directory)})
            wait(lambda: "serving" in self.rig.errors("phone"))

        start()
        context = browser.new_context()
        self.addCleanup(context.close)
        page = context.new_page()
        link = f"http://127.0.0.1:{port}/#token=fedcba9876543210fedcba9876543210"
        page.goto(link)
        page.goto(f"http://127.0.0.1:{port}/#/device/phone")
        expect(page.locator("#set-steps")).to_be_visible()
        self.rig.end("phone")
        expect(page.locator(".banner")).to_contain_text("No current values", timeout=15_000)
        start()
        expect(page.locator("#withheld")).to_contain_text("sign in again", timeout=15_000)
        self.assertEqual(page.locator("#controls").count(), 0)
        page.goto(link)
        page.wait_for_function("() => !location.hash")
        page.goto(f"http://127.0.0.1:{port}/#/device/phone")
        expect(page.locator("#set-steps")).to_be_visible()
        self.assertEqual(page.locator("#withheld").count(), 0)

    def test_page_is_small(self):
        """As the server compresses it."""
        headers = [self.request("GET", f"/{path.name}", {"Accept-Encoding": "gzip"})[2] for path in PAGE.iterdir()]
        self.assertLessEqual(sum(int(one["Content-Length"]) for one in headers), 60_000)

    def test_policy_is_strict(self):
        policy = self.request("GET", "/")[2]["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)


class Files(unittest.TestCase):
    def test_modules_are_loaded_at_once(self):
        """Without the list, a browser finds a module only when it has loaded the ones that import it."""
        listed = set(re.findall(r'modulepreload" href="([^"]+)"', (PAGE / "index.html").read_text()))
        self.assertEqual(listed | {"main.js"}, {path.name for path in PAGE.glob("*.js")})

    def test_no_html_from_text(self):
        for path in [*PAGE.glob("*.js"), *(PAGE.parent / "Cockpit").glob("*.js")]:
            self.assertNotRegex(path.read_text(), r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", path.name)
        for path in [*PAGE.glob("*.html"), *(PAGE.parent / "Cockpit").glob("*.html")]:
            self.assertNotRegex(path.read_text(), r"\sstyle=|\son\w+=|<style|<script(?![^>]*src=)", path.name)


if __name__ == "__main__":
    unittest.main()
