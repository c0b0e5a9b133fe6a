// The overview: a card for each device with its state, headline values, and problem.

import { element, setAttribute, setText } from "./dom.js";
import { age } from "./format.js";
import { meaning } from "./row.js";
import { niceScale } from "./scale.js";
import { LiveTrace } from "./trace.js";

const MAX_VALUES = 4;
// Longer numbers are small.
const MAX_DIGITS = 8;
// The length of the small line of a card in seconds.
const LENGTH = 60;

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
    const { shape } = model;
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
    const explained = this.#problem.textContent;
    for (const value of this.#values) value.update(now, outage !== null || explained.includes(value.reason));
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
  #reason = element("span", { class: "reason" });
  #version = -1;
  #explained;

  constructor(row) {
    this.#row = row;
    this.node = element("div", { class: "headline", title: row.declaration.help, "data-reference": row.reference },
      element("div", { class: "name" }, row.name, " ", this.#age),
      element("div", { class: "value" }, this.#value, " ", this.#unit, this.#reason));
  }

  // Why there is no value; empty if there is one.
  get reason() {
    return this.#row.value === undefined ? this.#row.reason : "";
  }

  // `isExplained`: whether the card shows the reason elsewhere.
  update(now, isExplained) {
    const row = this.#row;
    setText(this.#age, row.value === undefined ? "" : age(row.age(now)));
    if (row.version === this.#version && isExplained === this.#explained) return;
    [this.#version, this.#explained] = [row.version, isExplained];
    setText(this.#reason, isExplained ? "" : this.reason);
    setText(this.#value, row.value === undefined ? "–" : row.brief);
    setText(this.#unit, row.value === undefined ? "" : row.unit);
    const isLong = row.value === undefined ? !isExplained : row.isNumber && row.brief.length > MAX_DIGITS;
    setAttribute(this.node, "class", `headline ${meaning(row)} ${isLong ? "long" : row.isNumber || row.value === undefined ? "" : "word"}`);
    setAttribute(this.node, "title", row.value === undefined ? row.reason : row.declaration.help);
  }
}

// A line of the last minute of a number, without axes, drawn at most once a second.
class Sparkline {
  node = element("canvas", { class: "spark", "aria-hidden": "true" });
  #trace;
  #second = 0;

  constructor(row) {
    this.#trace = new LiveTrace(row, "");
  }

  // `wall`: the server's time.
  update(wall) {
    if (Math.floor(wall) === this.#second) return;
    this.#second = Math.floor(wall);
    const canvas = this.node;
    canvas.width = Math.round(canvas.clientWidth * devicePixelRatio);
    canvas.height = Math.round(canvas.clientHeight * devicePixelRatio);
    const extent = this.#trace.extent(wall - LENGTH, wall);
    if (!extent) return;
    const { low, high } = niceScale(...extent, 2);
    const margin = devicePixelRatio;
    const area = {
      x: (time) => canvas.width * (1 - (wall - time) / LENGTH),
      y: (value) => margin + (canvas.height - 2 * margin) * (1 - (value - low) / (high - low)),
    };
    this.#trace.color = getComputedStyle(canvas).color;
    const context = canvas.getContext("2d");
    context.lineWidth = 1.5 * devicePixelRatio;
    context.lineJoin = "round";
    this.#trace.draw(context, area, wall - LENGTH, wall);
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
