// A small line of the last minute of a number, without axes. It is drawn once a second at most.

import { element } from "./dom.js";
import { niceScale } from "./scale.js";
import { LiveTrace } from "./trace.js";

const LENGTH = 60;

export class Sparkline {
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
