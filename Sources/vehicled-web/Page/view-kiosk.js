// Large gauges on a full screen, for a display in the vehicle. The address can name the properties: #/kiosk/ev.speed,ev.battery-power.
// Without them, the headline values of one device are shown.

import { element, replace, setAttribute, setText } from "./dom.js";
import { Gauge } from "./gauge.js";
import { stopButtons } from "./view-overview.js";

const MAX_GAUGES = 6;

export class KioskView {
  title = "Kiosk";
  #app;
  #references;
  // The names in the address that no property has.
  #unknown = "";
  // The chosen device, and the one that is shown: another while the chosen one is being reconfigured.
  #chosen = "";
  #device = "";
  #shape = "";
  #gauges = [];
  #grid = element("div", { class: "gauges" });
  #problem = element("p", { class: "problem" });
  #stop = element("div");
  #select = element("select", { "aria-label": "Device", onchange: () => this.#show(this.#select.value) });
  #lock = null;
  #onVisible = () => this.#keepAwake();

  constructor(app, references = "") {
    this.#app = app;
    this.#references = references.split(",").filter(Boolean);
    this.node = element("div", { class: "kiosk" },
      element("div", { class: "bar" }, element("a", { href: "#/" }, "‹ Overview"), this.#select, this.#problem,
        element("button", { onclick: () => (document.fullscreenElement ? document.exitFullscreen()
          : document.documentElement.requestFullscreen()) }, "Full screen")),
      element("h1", { class: "unseen" }, "Kiosk"), this.#grid, this.#stop);
    document.addEventListener("visibilitychange", this.#onVisible);
    this.#keepAwake();
  }

  update() {
    const { model } = this.#app;
    const devices = [...model.devices.values()];
    const { shape } = model;
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#select.replaceChildren(...devices.map((device) => element("option", { value: device.name }, device.name)));
      this.#build();
    }
    const device = model.devices.get(this.#device);
    const problem = model.outage ?? (device
      && (device.problem !== undefined ? device.problem + device.nextAttempt(model.wall) : device.warning));
    setText(this.#problem, [problem, this.#unknown].filter(Boolean).join(" · "));
    const isBad = model.outage !== null || device?.needsAttention;
    setAttribute(this.#problem, "class", `problem ${isBad ? "bad" : device?.warning || this.#unknown ? "warn" : ""}`);
    // The line above the gauges is about one device, and explains its values.
    const explains = (row) => model.outage !== null || (row.device === this.#device && Boolean(device?.explains(row.reason)));
    for (const gauge of this.#gauges) gauge.update(model.now, explains);
  }

  close() {
    document.removeEventListener("visibilitychange", this.#onVisible);
    this.#lock?.release();
  }

  #show(device) {
    this.#references = [];
    this.#chosen = device;
    this.#build();
    this.update();
  }

  #build() {
    const { model } = this.#app;
    const named = this.#references.map((reference) => model.row(reference)).filter(Boolean);
    const unknown = this.#references.filter((reference) => !model.row(reference));
    this.#unknown = unknown.length ? `no such property: ${unknown.join(", ")}` : "";
    const devices = [...model.devices.values()];
    const first = devices.find((device) => !device.needsAttention && device.headlines.some((row) => row.isNumber)) ?? devices[0];
    const device = model.devices.get(named[0]?.device || this.#chosen) ?? first;
    this.#select.value = this.#device = device?.name;
    this.#chosen ||= this.#device;
    const own = (device?.rows ?? []).filter((row) => row.rank <= 2 && ["int", "float"].includes(row.declaration.type) && !row.isNotReported
      && !row.declaration.retained);
    const rows = named.length ? named : own.sort((left, right) => left.rank - right.rank).slice(0, MAX_GAUGES);
    this.#gauges = rows.map((row) => new Gauge(row));
    this.#grid.replaceChildren(...this.#gauges.map((gauge) => gauge.node));
    const shown = new Set([this.#device, ...rows.map((row) => row.device)]);
    replace(this.#stop, stopButtons(this.#app, devices.filter(({ name }) => shown.has(name))));
  }

  // Keeps the display on, if the browser can.
  async #keepAwake() {
    if (document.visibilityState === "visible") this.#lock = (await navigator.wakeLock?.request("screen").catch(() => null)) ?? null;
  }
}
