// The overview: a card for each device with its state, headline values, and problem.

import { element, setAttribute, setText } from "./dom.js";
import { age } from "./format.js";
import { meaning } from "./row.js";
import { Sparkline } from "./spark.js";

const MAX_VALUES = 4;

export class OverviewView {
  title = "Overview";
  node = element("div", { class: "overview" });
  #app;
  #cards = [];
  #shape = "";

  constructor(app) {
    this.#app = app;
  }

  update() {
    const { model } = this.#app;
    const devices = [...model.devices.values()];
    const shape = devices.map((device) => `${device.name} ${device.shape}`).join();
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#cards = devices.map((device) => new Card(this.#app, device));
      this.node.replaceChildren(element("h1", { class: "unseen" }, "Devices"),
        element("ul", { class: "cards" }, this.#cards.map((card) => card.node)));
    }
    if (!devices.length && model.outage === null) {
      this.node.replaceChildren(element("p", { class: "empty" },
        "No devices are configured, or this session may not observe any; to add one, run: vehiclectl setup"));
    }
    for (const card of this.#cards) card.update();
  }
}

class Card {
  #app;
  #device;
  #state = element("span", { class: "state" });
  #values;
  #spark;
  #problem = element("p", { class: "problem" });

  constructor(app, device) {
    this.#app = app;
    this.#device = device;
    const shown = device.headlines.filter((row) => !row.isNotReported).slice(0, MAX_VALUES);
    this.#values = shown.map((row) => new Headline(row));
    const plotted = shown.find((row) => row.declaration.type === "float" || row.declaration.type === "int");
    this.#spark = plotted && new Sparkline(plotted);
    const stop = stopButtons(app, [device]);
    this.node = element("li", { class: "card", "data-device": device.name },
      element("div", { class: "title" },
        element("h2", {}, element("a", { href: `#/device/${encodeURIComponent(device.name)}`, class: "cover" }, device.name)),
        element("span", { class: "kind" }, device.kind), this.#state),
      element("div", { class: "headlines" }, this.#values.map((value) => value.node)),
      this.#spark?.node, this.#problem, stop);
  }

  update() {
    const device = this.#device;
    const { now, wall, outage } = this.#app.model;
    setAttribute(this.node, "class", `card ${outage === null ? device.role : "dim"}`);
    setText(this.#state, outage === null ? device.state : "unknown");
    const holder = device.holder && `driven by ${device.holder}`;
    setText(this.#problem, outage === null ? [device.warning, holder, this.#condition(wall)].filter(Boolean).join(" · ") : "");
    setAttribute(this.#problem, "class", `problem ${device.needsAttention ? "bad" : device.warning ? "warn" : ""}`);
    setAttribute(this.#problem, "title", this.#problem.textContent || null);
    for (const value of this.#values) value.update(now);
    this.#spark?.update(wall);
  }

  // What is wrong; if nothing is, why there are no values, or how the device is connected.
  #condition(wall) {
    const device = this.#device;
    if (device.problem !== undefined) return device.problem + device.nextAttempt(wall);
    const rows = device.headlines.filter((row) => !row.isNotReported);
    if (rows.length && rows.every((row) => row.value === undefined)) return rows[0].reason;
    const rate = device.row("poll-rate");
    const [link] = device.links;
    return [link && `${link.url} is ${link.state}`, rate?.value !== undefined
      && `polled at ${rate.brief} ${rate.unit}`].filter(Boolean).join(", ");
  }
}

class Headline {
  #row;
  #value = element("span", { class: "number" });
  #unit = element("span", { class: "unit" });
  #age = element("span", { class: "age" });
  #version = -1;

  constructor(row) {
    this.#row = row;
    this.node = element("div", { class: "headline", title: row.declaration.help, "data-reference": row.reference },
      element("div", { class: "name" }, row.name, " ", this.#age), element("div", { class: "value" }, this.#value, " ", this.#unit));
  }

  update(now) {
    const row = this.#row;
    setText(this.#age, row.value === undefined ? "" : age(row.age(now)));
    if (row.version === this.#version) return;
    this.#version = row.version;
    setText(this.#value, row.value === undefined ? "–" : row.brief);
    setText(this.#unit, row.value === undefined ? "" : row.unit);
    setAttribute(this.node, "class", `headline ${meaning(row)} ${row.isNumber || row.value === undefined ? "" : "word"}`);
    setAttribute(this.node, "title", row.value === undefined ? row.reason : row.declaration.help);
  }
}

// A button for each of these devices that the page may stop.
export const stopButtons = (app, devices) => devices.filter((device) => device.action("stop") && app.mayControl(device.name))
  .map((device) => stopButton(app, device.name));

// A button that stops the device at once.
function stopButton(app, device) {
  const result = element("span", { role: "alert" });
  return element("div", { class: "stop" },
    element("button", {
      class: "danger large",
      onclick: async () => {
        setText(result, "");
        await app.daemon.call("Call", { device, action: "stop" }).catch((error) => setText(result, error.message));
      },
    }, `Stop ${device}`), result);
}
