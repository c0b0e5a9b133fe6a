"""The plugin in Cockpit of the guest, in Chromium on the host: logs in as users who may control, who may only observe, and who may do
neither. Sends each check to the guest, which reports it."""
import json, socket, time, traceback

from playwright.sync_api import sync_playwright

# The guest is emulated, and much slower than the browser.
TIMEOUT = 120_000


class Checks:
    def __init__(self, port):
        self.connection = socket.create_connection(("127.0.0.1", port))

    def __call__(self, what, seen, more=""):
        self.connection.sendall((json.dumps([f"cockpit: {what}", bool(seen), str(more)]) + "\n").encode())
        return seen


def browse(port, checks, users, pictures):
    """`port`: of Cockpit. `checks`: the port that takes the checks. `users`: name, password and group of one who may control, one who may
    observe, and one who may do neither. `pictures`: a directory for screenshots."""
    check = Checks(checks)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
        for visit, user in zip((controls, observes, is_denied), users):
            context = browser.new_context(ignore_https_errors=True, viewport={"width": 1280, "height": 900})
            context.set_default_timeout(TIMEOUT)
            page = context.new_page()
            problems = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            try:
                visit(page, f"https://127.0.0.1:{port}/", user, check)
                check(f"{user[0]}: no errors in the page", not problems, problems or "")
            except Exception:
                check(f"{user[0]}: completes", False, traceback.format_exc(limit=-1).strip().replace("\n", " | ")[:600])
            page.screenshot(path=f"{pictures}/cockpit-{user[0]}.png")
            context.close()
        browser.close()
    check.connection.close()


def log_in(page, address, name, password):
    page.goto(address)
    page.fill("#login-user-input", name)
    page.fill("#login-password-input", password)
    page.click("#login-button")


def plugin(page):
    """Opens the plugin from Cockpit's menu, and returns its frame."""
    page.get_by_role("link", name="Vehicles").click()
    return page.frame_locator("iframe[name='cockpit1:localhost/vehicled']")


def until(condition, seconds=TIMEOUT / 1000):
    end = time.monotonic() + seconds
    while not (result := condition()) and time.monotonic() < end:
        time.sleep(0.3)
    return result


def set_steps(frame, steps):
    """Returns the value and the message that are shown then."""
    frame.get_by_role("link", name="Overview").click()
    frame.locator("[data-device=phone] a").click()
    frame.locator("#set-steps").fill(steps)
    frame.locator("#set-steps").press("Enter")
    value, result = frame.locator("[data-reference='phone.steps'] .number"), frame.locator("form:has(#set-steps) .result")
    until(lambda: result.text_content() not in ("", "setting …"))
    until(lambda: value.text_content() == steps, 5)
    return value.text_content(), result.text_content()


def controls(page, address, user, check):
    name, password, _ = user
    log_in(page, address, name, "wrong")
    page.wait_for_selector("#login-error-message:not(:empty)")
    check("a wrong password is rejected", "Wrong user name or password" in page.text_content("#login-error-message"), page.text_content("#login-error-message"))
    log_in(page, address, name, password)
    frame = plugin(page)
    check(f"{name} logs in, and the menu has the plugin", True)
    frame.locator("[data-device=ev] a").click()
    number = frame.locator("[data-reference='ev.polls'] .number")
    first = until(lambda: number.text_content().isdigit() and number.text_content())
    check("values of a car are live", first and until(lambda: number.text_content() not in (first, "–")), f"ev.polls {first}, then {number.text_content()}")
    check("there is the history", frame.get_by_role("link", name="History").count() == 1)
    shown = set_steps(frame, "4321")
    check(f"{name} sets a value", shown == ("4321", "set"), shown)


def observes(page, address, user, check):
    name, password, _ = user
    log_in(page, address, name, password)
    frame = plugin(page)
    frame.locator("[data-device=ev]").wait_for()
    shown = set_steps(frame, "9999")
    check(f"{name} sees values, but may not set one, and sees why", shown[0] == "4321" and "control right" in shown[1] and "usermod -aG vehicled" in shown[1], shown)


def is_denied(page, address, user, check):
    name, password, _ = user
    log_in(page, address, name, password)
    frame = plugin(page)
    main = frame.locator("body")
    check(f"{name} sees why there are no values, and the remedy", until(lambda: "usermod -aG vehicled" in main.text_content()), " ".join(main.inner_text().split())[-300:])
    check(f"{name} sees no value", frame.locator("[data-device=ev]").count() == 0)
