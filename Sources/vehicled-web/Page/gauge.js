// A large gauge for one property: an arc with the value in its middle.

import { element, setAttribute, setText } from "./dom.js";
import { age } from "./format.js";
import { meaning, share } from "./row.js";
import { niceScale } from "./scale.js";

const START = 0.625 * 2 * Math.PI;
const SWEEP = 0.75 * 2 * Math.PI;
const RADIUS = 44;
// A new limit of the scale leaves room for larger values.
const HEADROOM = 1.25;

export class Gauge {
  #row;
  #low = 0;
  #high = 0;
  #arc = element("path", { class: "fill" });
  #value = element("text", { class: "number", x: 50, y: 54 });
  #unit = element("text", { class: "unit", x: 50, y: 68 });
  #label = element("text", { class: "name", x: 50, y: 79 });
  #age = element("text", { class: "age", x: 50, y: 30 });
  #reason = element("p", { class: "reason" });
  #ends = [element("text", { class: "end", x: 18, y: 97 }), element("text", { class: "end", x: 82, y: 97 })];
  #version = -1;
  #explained;

  constructor(row) {
    this.#row = row;
    this.node = element("figure", { class: "gauge", "data-reference": row.reference },
      element("svg", { viewBox: "0 0 100 100", role: "img" },
        element("path", { class: "rest", d: arc(0, 1) }), this.#arc, this.#age, this.#value, this.#unit, this.#label, this.#ends),
      this.#reason);
    setText(this.#label, row.name);
  }

  // `explains(row)`: whether the view shows the reason of an absent value elsewhere.
  update(now, explains) {
    const row = this.#row;
    const isKnown = row.value !== undefined;
    setText(this.#age, isKnown ? age(row.age(now)) : "");
    const isExplained = !isKnown && explains(row);
    if (row.version === this.#version && isExplained === this.#explained) return;
    this.#version = row.version;
    this.#explained = isExplained;
    setText(this.#value, isKnown ? row.brief : "–");
    setText(this.#unit, row.unit);
    setText(this.#reason, isKnown || isExplained ? "" : row.reason);
    setAttribute(this.node, "title", isKnown ? null : row.reason);
    setAttribute(this.node, "class", `gauge ${isKnown ? meaning(row) : "absent"}`);
    setAttribute(this.#value, "class", this.#value.textContent.length > 6 ? "number long" : "number");
    setAttribute(this.node.firstChild, "aria-label", `${row.name} ${this.#value.textContent} ${row.unit}`);
    const [from, to] = isKnown && row.isNumber ? this.#fractions() : [0, 0];
    setAttribute(this.#arc, "d", arc(Math.min(from, to), Math.max(from, to)));
  }

  // Where the arc starts and ends: at 0 and the value. A percentage has its declared range. Others have round limits that grow with the
  // values seen, because declared ranges are those of the encoding.
  #fractions() {
    const fraction = share(this.#row);
    const number = Number(this.#row.text);
    if (fraction === undefined && (number < this.#low || number > this.#high)) {
      const scale = niceScale(Math.min(0, this.#low, number * HEADROOM), Math.max(0, this.#high, number * HEADROOM), 2);
      [this.#low, this.#high] = [scale.low, scale.high];
    }
    const { minimum: low = 0, maximum: high = 100 } = fraction === undefined ? { minimum: this.#low, maximum: this.#high }
      : this.#row.declaration;
    this.#ends.forEach((node, index) => setText(node, String([low, high][index])));
    const position = (value) => (high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 0);
    return [position(Math.max(low, 0)), fraction ?? position(number)];
  }
}

// A part of the arc, 0 to 1.
function arc(from, to) {
  if (to - from < 1e-4) return "";
  const point = (fraction) => {
    const angle = START + fraction * SWEEP;
    return `${(50 + RADIUS * Math.sin(angle)).toFixed(2)} ${(50 - RADIUS * Math.cos(angle)).toFixed(2)}`;
  };
  return `M${point(from)}A${RADIUS} ${RADIUS} 0 ${(to - from) * SWEEP > Math.PI ? 1 : 0} 1 ${point(to)}`;
}
