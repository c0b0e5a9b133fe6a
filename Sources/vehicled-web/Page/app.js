// The frame of the page: session, navigation, notices, and the view that the address selects. Views are built from what devices declare;
// none has code for a kind of device.

import { element, setText } from "./dom.js";
import { Model } from "./model.js";
import * as units from "./units.js";
import { Client } from "./varlink.js";
import { DeviceView } from "./view-device.js";
import { DoctorView } from "./view-doctor.js";
import { KioskView } from "./view-kiosk.js";
import { OverviewView } from "./view-overview.js";
import { PeriodView } from "./view-period.js";
import { PeriodsView } from "./view-periods.js";
import { PlotView } from "./view-plot.js";

// The views by the first part of the address.
const VIEWS = {
  "": OverviewView, device: DeviceView, plot: PlotView, history: PeriodsView, period: PeriodView, doctor: DoctorView, kiosk: KioskView,
};
// The minimum time between two frames in ms, in which a line in a plot of a minute moves by less than a pixel.
const FRAME = 60;

// Shows the page, in vehicled-web (main.js) or Cockpit (plugin.js). `environment`:
// - open: a transport, a function of the name of a service that returns a channel: send(text), close(), and the callbacks onmessage(text)
//   and onclose(reason), of which the caller sets both at once. It is also closed if the daemon hangs.
// - openSession: returns `control`, the devices that the session may control (without it they are unknown, and the daemon decides);
//   `withheld`, those that it may control after signing in again; `history`, whether there is a history service; and `kiosk`, whether to
//   start with large gauges. Throws an error with `isSignedOut` if there is no session.
// - closeSession, followLink: where one can sign out and in.
export async function start(environment) {
  try {
    await new App(environment, await environment.openSession()).run();
  } catch (error) {
    showSignedOut(error, environment);
  }
}

class App {
  // The rights.
  session;
  daemon;
  history;
  model;
  #environment;
  #view = null;
  #main = element("main", { id: "main", tabindex: "-1" });
  #banner = element("p", { class: "banner", role: "alert", hidden: true });
  #announcer = element("p", { class: "unseen", role: "status" });
  #announced = new Map();
  #links;
  #drawnAt = 0;
  #isScheduled = false;

  constructor(environment, session) {
    this.#environment = environment;
    this.session = session;
    this.daemon = new Client(environment.open, "io.vehicled");
    this.#findHistory();
    this.model = new Model(this.daemon);
  }

  mayControl(device) {
    return this.session.control?.includes(device) ?? true;
  }

  // Whether the browser must sign in again to control the device, because the server has restarted.
  isWithheld(device) {
    return this.session.withheld?.includes(device) ?? false;
  }

  async run() {
    this.#build();
    if (this.session.kiosk && !location.hash) history.replaceState(null, "", "#/kiosk");
    addEventListener("hashchange", () => {
      if (this.#environment.followLink?.()) return;
      this.#navigate();
      this.#main.focus({ preventScroll: true });
      this.#refreshSession();
    });
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) return;
      this.model.retry();
      this.#schedule();
      this.#refreshSession();
    });
    this.model.onchange = () => this.#schedule();
    this.model.onlost = async () => {
      // An outage of the server is no reason to end the session.
      const session = await this.#reopenSession().catch((error) => {
        if (error.isSignedOut) throw error;
        return this.session;
      });
      this.#take(session);
    };
    // The server may have restarted since `onlost`.
    this.model.onfound = () => this.#refreshSession();
    setInterval(() => this.#schedule(), 1000);
    this.#navigate();
    await this.model.run();
  }

  // Looks whether the rights have changed, or the history service was started or stopped.
  async #refreshSession() {
    const session = await this.#environment.openSession().catch(() => null);
    if (session) this.#take(session);
  }

  #take(session) {
    const [before, rights] = [this.session, ({ control, withheld }) => JSON.stringify([control, withheld])];
    this.session = session;
    const isFound = Boolean(session.history) !== Boolean(before.history);
    if (isFound) {
      this.#findHistory();
      this.#build();
    }
    // The inputs of a device depend on the rights, and other views on the history. A device keeps what is typed.
    if (rights(before) !== rights(session) || (isFound && !(this.#view instanceof DeviceView))) this.#navigate();
    else if (isFound) this.#mark();
  }

  #findHistory() {
    this.history = this.session.history ? new Client(this.#environment.open, "io.vehicled.history") : null;
  }

  async #reopenSession() {
    try {
      return await this.#environment.openSession();
    } catch (error) {
      if (!error.isSignedOut) throw error;
      // Another tab may be signing in again, which replaces the session of this browser.
      await new Promise((resolve) => setTimeout(resolve, 1000));
      return this.#environment.openSession();
    }
  }

  #build() {
    const targets = [["#/", "Overview"], ["#/plot", "Plot"], this.history && ["#/history", "History"], ["#/doctor", "Doctor"],
      ["#/kiosk", "Kiosk"]];
    this.#links = targets.filter(Boolean).map(([href, name]) => element("a", { href }, name));
    const system = element("select", { "aria-label": "Units", onchange: (event) => units.choose(event.target.value) },
      ["metric", "imperial"].map((name) => element("option", { value: name, selected: name === units.system }, name)));
    const signOut = this.#environment.closeSession &&
      element("button", { class: "quiet", onclick: () => this.#environment.closeSession().finally(() => location.reload()) }, "Sign out");
    document.body.replaceChildren(
      element("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); this.#main.focus(); } },
        "Skip to content"),
      element("header", { class: "top" },
        element("a", { class: "brand", href: "#/" }, element("span", { class: "mark", "aria-hidden": "true" }), "vehicled"),
        element("nav", { "aria-label": "Views" }, this.#links), element("div", { class: "tools" }, system, signOut)),
      this.#banner, this.#main, this.#announcer);
  }

  #navigate() {
    const [name, ...parts] = address();
    const View = Object.hasOwn(VIEWS, name) ? VIEWS[name] : null;
    this.#view?.close?.();
    this.#view = View ? new View(this, ...parts) : new MissingView(name);
    document.body.classList.toggle("bare", View === KioskView);
    document.title = `${this.#view.title} – vehicled`;
    this.#mark();
    this.#main.replaceChildren(this.#view.node);
    scrollTo(0, 0);
    this.#draw();
  }

  // Marks the link of the current view.
  #mark() {
    const [name] = address();
    for (const link of this.#links) {
      const isCurrent = link.getAttribute("href") === `#/${name}` || (name === "device" && link.hash === "#/")
        || (name === "period" && link.hash === "#/history");
      link[isCurrent ? "setAttribute" : "removeAttribute"]("aria-current", "page");
    }
  }

  // Draws in the next frame, if the page is visible.
  #schedule() {
    if (this.#isScheduled || document.hidden) return;
    this.#isScheduled = true;
    const pause = FRAME - (performance.now() - this.#drawnAt);
    const draw = () => requestAnimationFrame(() => this.#draw());
    if (pause > 0) setTimeout(draw, pause);
    else draw();
  }

  #draw() {
    this.#isScheduled = false;
    this.#drawnAt = performance.now();
    this.model.expire();
    const { outage } = this.model;
    this.#banner.hidden = !outage;
    setText(this.#banner, outage ? `No current values: ${outage}` : "");
    this.#view.update();
    this.#announce();
  }

  // Tells screen readers about changes of states and faults, but not of values.
  #announce() {
    const news = [];
    for (const device of this.model.devices.values()) {
      const state = [device.name, device.state, device.problem, device.warning].filter(Boolean).join(", ");
      if (this.#announced.has(device.name) && this.#announced.get(device.name) !== state) news.push(state);
      this.#announced.set(device.name, state);
    }
    if (news.length) setText(this.#announcer, news.join("; "));
  }
}

// What is shown for an address that selects no view, such as a mistyped bookmark.
class MissingView {
  title = "No such view";

  constructor(name) {
    this.node = element("p", { class: "empty", role: "status" }, `There is no view "${name}"; `,
      element("a", { href: "#/" }, "see the overview"));
  }

  update() {}
}

// The name of the view in the address, and what follows it.
const address = () => location.hash.replace(/^#\/?/, "").split("/").map(decoded);

// A part of the address; as it is if its escapes are invalid.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// Explains why there is no session, and where a link to open one comes from.
function showSignedOut({ message, isSignedOut = false }, { followLink }) {
  addEventListener("hashchange", () => followLink?.());
  document.body.replaceChildren(element("main", { class: "signed-out" },
    element("h1", {}, isSignedOut ? "Not signed in" : "The page cannot be shown"),
    element("p", { role: "alert" }, message),
    isSignedOut && element("p", {}, "To open the page, run ", element("code", {}, "vehicled-web"),
      " in a terminal, and follow the link that it prints."),
    element("p", {}, element("button", { onclick: () => location.reload() }, "Try again"))));
}
