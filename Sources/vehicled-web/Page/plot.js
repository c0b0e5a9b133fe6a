// A plot of traces with one unit on a canvas: grid, lines, a cursor. The grid and the lines are two layers, because in a live plot only the
// lines change. Nothing is drawn while the plot is outside the window.

import { element } from "./dom.js";
import { ageTicks, niceScale, ticks, tickText, timeTicks } from "./scale.js";

// In rem, as in style.css.
const MARGIN = { left: 3.5, right: 0.75, top: 0.625, bottom: 1.5 };
// The pixels beside a new part of a line that are drawn again because they join the two.
const EDGE = 6;

export class Plot {
  // The time range in seconds since the Unix epoch.
  start = 0;
  end = 1;
  traces = [];
  // Whether the labels of the time axis are ages instead of times of day.
  isLive = false;
  #grid = element("canvas", { "aria-hidden": "true" });
  #lines = element("canvas", { "aria-hidden": "true", class: "lines" });
  #cursor = element("div", { class: "cursor", hidden: true });
  #size = { width: 0, height: 0, ratio: 1 };
  // MARGIN in pixels, and the size of the root font.
  #margin = { ...MARGIN, font: 16 };
  #scale = niceScale(0, 1, 4);
  // What the grid and the lines were drawn for, and the pixel column at the end of the lines.
  #drawn = "";
  #picture = "";
  #end = 0;
  #colors;
  #isVisible = true;

  // onpoint(time or null): the pointer is at this time, or has left. onselect(start, end): a range was selected by dragging.
  constructor({ label, onpoint = () => {}, onselect = () => {} }) {
    this.node = element("div", { class: "plot", role: "img", "aria-label": label }, this.#grid, this.#lines, this.#cursor);
    new ResizeObserver(() => this.#resize()).observe(this.node);
    new IntersectionObserver((entries) => {
      // A busy page gets several changes at once, the latest last.
      this.#isVisible = entries.at(-1).isIntersecting;
      this.draw();
    }).observe(this.node);
    this.#listen(onpoint, onselect);
  }

  // Draws again after a change of the public properties.
  draw() {
    if (!this.#isVisible || !this.#size.width) return;
    const extents = this.traces.map((trace) => trace.extent(this.start, this.end)).filter(Boolean);
    this.#fit(Math.min(...extents.map(([low]) => low)), Math.max(...extents.map(([, high]) => high)));
    this.#drawGrid();
    this.#drawLines();
  }

  // Shows the cursor at a time, or hides it if the time is null or outside the plot.
  point(time) {
    this.#cursor.hidden = time === null || time < this.start || time > this.end;
    if (!this.#cursor.hidden) this.#cursor.style.transform = `translateX(${Math.round(this.#area.x(time))}px)`;
  }

  // Draws with the colours of the current theme.
  redraw() {
    this.#drawn = this.#picture = "";
    this.#colors = null;
    this.draw();
  }

  // A PNG of both layers, with the names of the traces.
  async picture(background) {
    const { width, height, ratio } = this.#size;
    const canvas = element("canvas", { width: width * ratio, height: height * ratio });
    const context = canvas.getContext("2d");
    context.fillStyle = background;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(this.#grid, 0, 0);
    context.drawImage(this.#lines, this.#margin.left * ratio, this.#margin.top * ratio);
    context.scale(ratio, ratio);
    context.font = this.#theme.font;
    let x = this.#margin.left + 8;
    for (const trace of this.traces) {
      context.fillStyle = trace.color;
      context.fillText(trace.label, x, this.#margin.top + 12);
      x += context.measureText(trace.label).width + 16;
    }
    return new Promise((resolve) => canvas.toBlob(resolve));
  }

  get #theme() {
    if (!this.#colors) {
      const style = getComputedStyle(this.node);
      const color = (name) => style.getPropertyValue(name).trim();
      this.#colors = { line: color("--line"), text: color("--dim"), cursor: color("--text"),
        font: `${0.75 * this.#margin.font}px ${style.fontFamily}` };
    }
    return this.#colors;
  }

  // Maps times and values to pixels.
  get #area() {
    const { width, height } = this.#size;
    const { low, high } = this.#scale;
    const perSecond = (width - this.#margin.left - this.#margin.right) / (this.end - this.start);
    const perUnit = (height - this.#margin.top - this.#margin.bottom) / (high - low);
    return {
      x: (time) => this.#margin.left + (time - this.start) * perSecond,
      y: (value) => height - this.#margin.bottom - (value - low) * perUnit,
    };
  }

  // Chooses the scale for these values. One that fits well enough stays.
  #fit(low, high) {
    const { low: bottom, high: top } = this.#scale;
    if (this.isLive && low >= bottom && high <= top && high - low > (top - bottom) / 3) return;
    this.#scale = niceScale(low, high, this.#size.height / (2.5 * this.#margin.font));
  }

  #drawGrid() {
    const { width, height, ratio } = this.#size;
    const { low, high, step } = this.#scale;
    const range = this.isLive ? this.end - this.start : `${this.start} ${this.end}`;
    const wanted = [width, height, ratio, low, high, range].join(" ");
    if (wanted === this.#drawn) return;
    this.#drawn = wanted;
    const context = this.#grid.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const area = this.#area;
    const theme = this.#theme;
    context.font = theme.font;
    context.fillStyle = theme.text;
    context.strokeStyle = theme.line;
    context.lineWidth = 1;
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.beginPath();
    for (const value of ticks(this.#scale)) {
      const y = Math.round(area.y(value)) + 0.5;
      context.moveTo(this.#margin.left, y);
      context.lineTo(width - this.#margin.right, y);
      context.fillText(tickText(value, step), this.#margin.left - this.#margin.font / 2, y);
    }
    const labels = (this.isLive ? ageTicks : timeTicks)(this.start, this.end,
      Math.max(2, (width - this.#margin.left) / (5.5 * this.#margin.font)));
    for (const { time, label } of labels) {
      const x = Math.round(area.x(time)) + 0.5;
      context.moveTo(x, this.#margin.top);
      context.lineTo(x, height - this.#margin.bottom);
      context.textAlign = x > width - this.#margin.right - 20 ? "right" : "center";
      context.fillText(label, x, height - this.#margin.bottom / 2);
    }
    context.stroke();
  }

  // In a live plot, most lines only move: they are copied, and drawn from the first new sample on. Time is quantised to pixel columns for
  // this, so that a copied line is as sharp as a drawn one.
  #drawLines() {
    const canvas = this.#lines;
    const column = (this.end - this.start) / canvas.width;
    const end = Math.ceil(this.end / column);
    const picture = [canvas.width, canvas.height, this.#scale.low, this.#scale.high, column,
      ...this.traces.map((trace) => trace.color)].join(" ");
    const first = this.traces.reduce((time, trace) => Math.min(time, trace.takeChange?.() ?? -Infinity), this.#end * column);
    const shift = end - this.#end;
    const isMoved = this.isLive && picture === this.#picture && shift >= 0 && shift < canvas.width;
    const from = isMoved ? Math.max(0, Math.floor(first / column) - end + canvas.width - EDGE) : 0;
    [this.#picture, this.#end] = [picture, end];
    const context = canvas.getContext("2d");
    if (isMoved) {
      context.globalCompositeOperation = "copy";
      context.drawImage(canvas, -shift, 0);
      context.globalCompositeOperation = "source-over";
    }
    context.clearRect(from, 0, canvas.width, canvas.height);
    context.save();
    context.beginPath();
    context.rect(from, 0, canvas.width, canvas.height);
    context.clip();
    context.lineWidth = (1.5 / 16) * this.#margin.font * this.#size.ratio;
    context.lineJoin = "bevel";
    const origin = this.isLive ? end - canvas.width : this.start / column;
    const perUnit = canvas.height / (this.#scale.high - this.#scale.low);
    const area = { x: (time) => time / column - origin, y: (value) => canvas.height - (value - this.#scale.low) * perUnit };
    const start = Math.max(this.start, (origin + from - EDGE) * column);
    for (const trace of this.traces) trace.draw(context, area, start, this.end);
    context.restore();
  }

  #resize() {
    const ratio = window.devicePixelRatio;
    this.#size = { width: this.node.clientWidth, height: this.node.clientHeight, ratio };
    const font = parseFloat(getComputedStyle(document.documentElement).fontSize);
    this.#margin = { font, ...Object.fromEntries(Object.entries(MARGIN).map(([side, length]) => [side, length * font])) };
    const { width, height } = this.#size;
    const inner = [Math.max(1, width - this.#margin.left - this.#margin.right),
      Math.max(1, height - this.#margin.top - this.#margin.bottom)];
    const outer = [width, height];
    for (const [canvas, size] of [[this.#grid, outer], [this.#lines, inner]]) {
      [canvas.width, canvas.height] = size.map((length) => Math.round(length * ratio));
    }
    this.redraw();
  }

  #listen(onpoint, onselect) {
    const time = (event) => {
      const inner = this.#size.width - this.#margin.left - this.#margin.right;
      const share = (event.clientX - this.node.getBoundingClientRect().left - this.#margin.left) / inner;
      return this.start + Math.min(1, Math.max(0, share)) * (this.end - this.start);
    };
    let from = null;
    this.node.addEventListener("pointerdown", (event) => (from = time(event)));
    this.node.addEventListener("pointermove", (event) => onpoint(time(event)));
    this.node.addEventListener("pointerleave", () => onpoint(null));
    this.node.addEventListener("pointerup", (event) => {
      const [start, end] = [from, time(event)].sort((left, right) => left - right);
      if (from !== null && end - start > (this.end - this.start) / 50) onselect(start, end);
      from = null;
    });
  }
}
