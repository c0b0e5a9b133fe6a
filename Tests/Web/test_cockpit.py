"""Tests the page as a plugin of Cockpit, with the real cockpit-ws and cockpit-bridge: test_cockpit.py [CLASS[.TEST]...]

Needs Debian's chromium, cockpit-ws and cockpit-bridge, and the package playwright. cockpit-ws runs without a login, as the user who runs the
test, and listens on loopback.
"""

import os, pathlib, shutil, signal, subprocess, sys, unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.dont_write_bytecode = True
from playwright.sync_api import expect, sync_playwright  # noqa: E402
from rig import PAGE, Rig, free_port, wait  # noqa: E402

COCKPIT = "/usr/lib/cockpit/cockpit-ws"


class Plugin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rig = Rig()
        cls.addClassCleanup(cls.rig.close)
        link = cls.rig.simulate("ev", "obd")
        cls.rig.start_daemon(f'[device.ev]\nkind = "obd"\nlink = "{link}"\n[device.phone]\nkind = "health"\n')
        cls.install()
        port = free_port()
        with open(cls.rig.directory / "cockpit.err", "w") as errors:
            cls.rig.running["cockpit"] = subprocess.Popen(
                [COCKPIT, "--no-tls", "--address", "127.0.0.1", "--port", str(port), "--local-session=cockpit-bridge"], stderr=errors,
                env=os.environ | {"XDG_DATA_HOME": str(cls.rig.directory)})
        cls.address = f"http://127.0.0.1:{port}/cockpit/@localhost/vehicled/index.html"
        playwright = sync_playwright().start()
        cls.addClassCleanup(playwright.stop)
        cls.browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
        cls.addClassCleanup(cls.browser.close)

    @classmethod
    def install(cls):
        """Installs the plugin for this user as `make install` does for all, but with the sockets of the test."""
        place = cls.rig.directory / "cockpit/vehicled"
        place.mkdir(parents=True)
        for path in [*PAGE.glob("*.js"), PAGE / "style.css", PAGE / "icon.svg", *(PAGE.parent / "Cockpit").iterdir()]:
            shutil.copy(path, place)
        plugin = (place / "plugin.js").read_text()
        for path, socket in (("/run/vehicled/io.vehicled", cls.rig.daemon_socket), ("/run/vehicled-history/io.vehicled.history", cls.rig.history_socket)):
            assert f'"{path}"' in plugin
            plugin = plugin.replace(f'"{path}"', f'"{socket}"')
        (place / "plugin.js").write_text(plugin)

    def setUp(self):
        self.problems = []
        self.page = self.browser.new_page()
        self.addCleanup(self.page.close)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))

        def answers():
            try:
                return self.page.goto(self.address).ok
            except Exception as error:
                if "ERR_CONNECTION_REFUSED" not in str(error):
                    raise

        wait(answers)

    def test_1_values_and_inputs(self):
        self.page.click("[data-device=phone] a")
        self.page.fill("#set-steps", "123")
        self.page.keyboard.press("Enter")
        expect(self.page.locator("[data-reference='phone.steps'] .number")).to_have_text("123")
        self.page.get_by_role("link", name="Overview").click()
        self.page.click("[data-device=ev] a")
        # The snapshot of this car is longer than one message of Cockpit.
        expect(self.page.locator("[data-reference='ev.vin'] .number")).to_have_text("KNAC381AVN5000042", timeout=20_000)
        self.assertEqual(self.page.get_by_role("link", name="History").count(), 0)
        self.assertEqual(self.page.get_by_role("button", name="Sign out").count(), 0)
        self.assertEqual(self.problems, [])

    def test_2_daemon_stopped_and_back(self):
        self.page.wait_for_selector("[data-device=phone]")
        self.rig.end("daemon", signal.SIGTERM)
        banner = self.page.locator(".banner")
        expect(banner).to_contain_text("vehicled is not running; start it", timeout=15_000)
        self.rig.start_daemon()
        expect(banner).to_be_hidden(timeout=15_000)
        self.assertEqual(self.problems, [])

    def test_3_daemon_hangs(self):
        self.page.wait_for_selector("[data-device=phone]")
        self.rig.running["daemon"].send_signal(signal.SIGSTOP)
        banner = self.page.locator(".banner")
        expect(banner).to_contain_text("vehicled does not respond", timeout=15_000)
        self.rig.running["daemon"].send_signal(signal.SIGCONT)
        expect(banner).to_be_hidden(timeout=15_000)
        self.assertEqual(self.problems, [])


if __name__ == "__main__":
    unittest.main()
