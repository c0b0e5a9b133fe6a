// Plots of several traces: one plot for each unit, with a shared time axis and cursor, and a legend with the values at the cursor.

import { element, save, setText } from "./dom.js";
import { clock, dateAndTime, rounded } from "./format.js";
import { Plot } from "./plot.js";

const THEME = matchMedia("(prefers-color-scheme: dark)");
const COLORS = 8;
// The time between two changes of the numbers in the legend of a moving plot in ms: faster ones cannot be read.
const LEGEND_PAUSE = 200;

// The colour of the trace with this index, in the current theme.
export const color = (index) => getComputedStyle(document.documentElement).getPropertyValue(`--series-${index % COLORS}`).trim();

export class Charts {
  // Called with a start and an end when the user selects a range by dragging or with the keyboard.
  onrange = () => {};
  start = 0;
  end = 1;
  node = element("div", { class: "charts", tabindex: "0", role: "group",
    "aria-label": "Plots; arrow keys move the cursor, plus and minus zoom", onkeydown: (event) => this.#key(event) });
  legend = element("ul", { class: "legend" });
  #plots = [];
  #traces = [];
  #cursor = null;
  #isLive = false;
  #legendAt = 0;
  #values = [];
  // Why traces have no value, below the plots: in the legend, it would move them.
  #reasons = element("p", { class: "help" });
  #time = element("li", { class: "time" });
  #onTheme = () => this.#recolor();

  constructor() {
    THEME.addEventListener("change", this.#onTheme);
  }

  close() {
    THEME.removeEventListener("change", this.#onTheme);
  }

  get traces() {
    return this.#traces;
  }

  // Shows these traces. `isLive`: the end of the time axis is now.
  show(traces, { isLive }) {
    this.#traces = traces;
    this.#isLive = isLive;
    const groups = [...Map.groupBy(traces, (trace) => trace.unit).entries()];
    if (groups.length !== this.#plots.length || groups.some(([unit], index) => unit !== this.#plots[index].unit)) {
      this.#plots = groups.map(([unit]) => new Plot({ label: `Plot in ${unit || "numbers"}`, onpoint: (time) => this.#point(time),
        onselect: (start, end) => this.onrange(start, end) }));
      this.node.replaceChildren(
        ...this.#plots.flatMap((plot, index) => [element("div", { class: "axis" }, groups[index][0]), plot.node]), this.#reasons);
    }
    groups.forEach(([unit, members], index) => Object.assign(this.#plots[index], { unit, traces: members, isLive }));
    this.#values = traces.map((trace) => element("span", { class: "number" }));
    this.legend.replaceChildren(this.#time, ...traces.map((trace, index) => {
      const mark = element("span", { class: "swatch", "aria-hidden": "true" });
      mark.style.background = trace.color;
      return element("li", { "data-reference": trace.label }, mark, element("span", { class: "name" }, trace.label), " ",
        this.#values[index], " ", element("span", { class: "unit" }, trace.unit));
    }));
    this.draw();
  }

  // Draws after a change of the range or of the values.
  draw() {
    for (const plot of this.#plots) {
      [plot.start, plot.end] = [this.start, this.end];
      plot.draw();
      plot.point(this.#cursor);
    }
    if (!this.#isLive || performance.now() - this.#legendAt >= LEGEND_PAUSE) this.#updateLegend();
  }

  csv() {
    const rows = new Map();
    this.#traces.forEach((trace, index) => {
      for (const [time, value] of trace.samples(this.start, this.end)) {
        if (!rows.has(time)) rows.set(time, new Array(this.#traces.length).fill(""));
        rows.get(time)[index] = Number.isNaN(value) ? "" : String(value);
      }
    });
    const head = ["time", ...this.#traces.map((trace) => (trace.unit ? `${trace.label} (${trace.unit})` : trace.label))];
    const times = [...rows.keys()].sort((left, right) => left - right);
    const lines = [head, ...times.map((time) => [new Date(time * 1000).toISOString(), ...rows.get(time)])];
    return lines.map((cells) => `${cells.map(quoted).join(",")}\r\n`).join("");
  }

  saveCSV() {
    save(`vehicled-${this.#stamp}.csv`, this.csv(), "text/csv");
  }

  // All plots below each other in one picture.
  async savePNG() {
    if (!this.#plots.length) return;
    const background = getComputedStyle(document.body).backgroundColor;
    const pictures = await Promise.all(this.#plots.map(async (plot) => createImageBitmap(await plot.picture(background))));
    const canvas = element("canvas", { width: Math.max(...pictures.map((picture) => picture.width)),
      height: pictures.reduce((sum, picture) => sum + picture.height, 0) });
    let top = 0;
    for (const picture of pictures) {
      canvas.getContext("2d").drawImage(picture, 0, top);
      top += picture.height;
    }
    save(`vehicled-${this.#stamp}.png`, await new Promise((resolve) => canvas.toBlob(resolve)));
  }

  get #stamp() {
    return new Date(this.end * 1000).toISOString().slice(0, 19).replaceAll(":", "");
  }

  #point(time) {
    this.#cursor = time;
    for (const plot of this.#plots) plot.point(time);
    this.#updateLegend();
  }

  #updateLegend() {
    this.#legendAt = performance.now();
    const time = this.#cursor ?? this.end;
    const isLong = this.end - this.start > 86_400;
    setText(this.#time, this.#cursor === null ? (this.#isLive ? "now" : "") : isLong ? dateAndTime(time * 1000) : clock(time * 1000));
    const isRange = this.#cursor === null && !this.#isLive;
    const reasons = this.#traces.flatMap((trace, index) => {
      const text = isRange ? range(trace.extent(this.start, this.end)) : trace.at(time, rounded);
      setText(this.#values[index], text || "–");
      const reason = isRange ? "no values in this range" : this.#cursor === null ? trace.row.reason : "no value at this time";
      return text || !reason ? [] : [`${trace.label}: ${reason}`];
    });
    setText(this.#reasons, reasons.join("; "));
  }

  #key(event) {
    const width = this.end - this.start;
    const middle = this.#cursor ?? (this.start + this.end) / 2;
    const steps = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.key in steps) this.#point(Math.min(this.end, Math.max(this.start, middle + (steps[event.key] * width) / 100)));
    else if (event.key === "Escape") this.#point(null);
    else if (event.key === "+") this.onrange(middle - width / 4, middle + width / 4);
    else if (event.key === "-") this.onrange(middle - width, middle + width);
    else return;
    event.preventDefault();
  }

  #recolor() {
    this.#traces.forEach((trace, index) => (trace.color = color(index)));
    this.show(this.#traces, { isLive: this.#isLive });
    for (const plot of this.#plots) plot.redraw();
  }
}

const range = (extent) => extent?.map(rounded).join(" – ");
const quoted = (cell) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
