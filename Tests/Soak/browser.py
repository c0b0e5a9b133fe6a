"""Headless Chromium in a thread of its own. Playwright handles a message only when its event loop has nothing else to do, which is rare in
that of the soak test: messages would be late by minutes."""
import asyncio, threading
from contextlib import suppress

TIMEOUT = 60


class Browser:
    """Chromium with one window for each page: a page in the background would not draw. `heard(name, event, text)` is called for errors,
    crashes and messages on the console, in the event loop that has made this object."""

    def __init__(self, heard):
        self.loop, self.own_loop = asyncio.get_running_loop(), asyncio.new_event_loop()
        threading.Thread(target=self.own_loop.run_forever, daemon=True).start()
        self.heard = heard
        self.playwright = self.browser = None
        self.pages, self.sessions = {}, {}

    async def open(self, names, address, script):
        """Opens the address in a window for each name; the script runs before those of the page."""
        await self.run(self.launch(names, address, script), 3 * TIMEOUT)

    async def evaluate(self, page, script):
        return await self.run(self.pages[page].evaluate(script))

    async def send(self, page, command):
        """The result of a command of the DevTools protocol."""
        return await self.run(self.sessions[page].send(command))

    async def close(self):
        if not self.own_loop.is_running():
            return
        with suppress(Exception):
            await self.run(self.end())
        self.own_loop.call_soon_threadsafe(self.own_loop.stop)

    async def run(self, coroutine, timeout=TIMEOUT):
        return await asyncio.wait_for(asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self.own_loop)), timeout)

    # In the thread.

    async def launch(self, names, address, script):
        from playwright.async_api import async_playwright
        self.playwright = await async_playwright().start()
        self.browser = await self.playwright.chromium.launch(executable_path="/usr/bin/chromium")
        for name in names:
            context = await self.browser.new_context(viewport={"width": 800, "height": 600})
            await context.add_init_script(script)
            page = self.pages[name] = await context.new_page()
            page.set_default_timeout(1000 * TIMEOUT)
            page.on("pageerror", lambda error, name=name: self.tell(name, "pageerror", str(error)))
            page.on("console", lambda message, name=name: self.tell(name, message.type, message.text))
            page.on("crash", lambda _, name=name: self.tell(name, "crash", ""))
            await page.goto(address)
            await page.wait_for_selector("nav a")
            self.sessions[name] = await context.new_cdp_session(page)

    def tell(self, *event):
        self.loop.call_soon_threadsafe(self.heard, *event)

    async def end(self):
        await self.browser.close()
        await self.playwright.stop()
