// A property with its latest reading, as views show it: text, unit, age, reason, and the samples of the last minute.

import { brief, rounded, text, unwrap } from "./format.js";
import { Ring } from "./ring.js";
import { exact, isConverted, shown, shownUnit } from "./units.js";

// In the order in which views show them; groups of a newer daemon come last.
const GROUPS = [
  "drive", "battery", "engine", "temperatures", "tyres", "body", "cells", "position", "weather", "health", "display", "general", "settings",
  "emissions", "diagnostics", "identity", "adapter", "statistics",
];

// How much older than its lifetime a value can be while all is well, in seconds: unchanged values are repeated once per second.
const MAX_DELAY = 1.5;

export class Row {
  // The declaration, or a minimal one until it is known.
  declaration;
  // The value in the daemon's unit; undefined if there is none, and then `reason` is set.
  value;
  reason = "";
  // The value in the shown unit as text, without the unit.
  text = "";
  // The time of the measurement in seconds on the page's clock (performance.now), or null if it is unknown.
  measuredAt = null;
  // Increases with each reading.
  version = 0;
  ring = new Ring();
  #rawUnit;
  // The value as text if it is an integer that a JavaScript number cannot hold.
  #digits;

  constructor(device, name, declaration) {
    this.device = device;
    this.name = name;
    this.declare(declaration);
  }

  get reference() {
    return `${this.device}.${this.name}`;
  }

  get group() {
    return this.declaration.group ?? "general";
  }

  // 1 headline, 2 main, 3 detail, 4 statistic.
  get rank() {
    return this.declaration.rank ?? 2;
  }

  get unit() {
    return shownUnit(this.#rawUnit);
  }

  get isNumber() {
    return typeof this.value === "number";
  }

  get isDeclared() {
    return this.declaration.type !== "";
  }

  // Whether the property can be plotted.
  get isPlottable() {
    return ["int", "float", "bool"].includes(this.declaration.type);
  }

  // Whether this vehicle or device does not have the value at all.
  get isNotReported() {
    return this.value === undefined && this.reason.startsWith("not reported by");
  }

  // The number in the shown unit with few digits, or the text.
  get brief() {
    return this.isNumber && this.text !== this.#digits && Number.isFinite(Number(this.text)) ? brief(Number(this.text)) : this.text;
  }

  age(now) {
    return this.measuredAt == null ? null : Math.max(0, now - this.measuredAt);
  }

  // The entries of a list of numbers in the shown unit, NaN where there is none.
  get numbers() {
    return (Array.isArray(this.value) ? this.value : []).map((entry) => (isNumeric(entry) ? exact(Number(entry), this.#rawUnit) : NaN));
  }

  // A plotted number in the shown unit.
  plotted(number) {
    return exact(number, this.#rawUnit);
  }

  declare(declaration) {
    this.declaration = declaration ?? { name: this.name, type: "", help: "" };
    this.#rawUnit = this.declaration.unit;
    this.version += 1;
  }

  // Stores a reading that was received at `now`. `wall` is the server's time then, in seconds since the Unix epoch.
  note(reading, now, wall) {
    this.#rawUnit = reading.unit ?? this.#rawUnit;
    this.value = unwrap(reading.value);
    this.#digits = reading.value?.digits;
    this.reason = reading.reason ?? "";
    this.measuredAt = reading.age == null ? null : now - reading.age;
    this.text = this.#shownText();
    this.version += 1;
    const isPlotted = typeof this.value === "number" || typeof this.value === "boolean";
    if (isPlotted) this.ring.push(reading.time == null ? wall : reading.time / 1e6, Number(this.value));
    else if (this.ring.length) this.ring.push(wall, NaN);
  }

  // Withdraws a value that has outlived its lifetime, as the daemon does unless it is stopped.
  expire(now, wall) {
    const late = this.age(now) - (this.declaration.lifetime ?? Infinity);
    if (late > MAX_DELAY) this.withdraw("stale", wall - late);
  }

  // Withdraws the value from this time on.
  withdraw(reason, wall) {
    this.value = undefined;
    this.reason = reason;
    this.text = "";
    this.measuredAt = null;
    this.version += 1;
    if (this.ring.length) this.ring.push(wall, NaN);
  }

  #shownText() {
    if (Array.isArray(this.value)) return text(this.value.map((entry) => this.#shownEntry(entry)));
    if (!this.isNumber) return text(this.value);
    if (this.#digits && !isConverted(this.#rawUnit)) return this.#digits;
    const number = shown(this.value, this.#rawUnit);
    if (number === undefined) {
      this.value = undefined;
      this.reason = `cannot be expressed in ${this.unit}`;
      return "";
    }
    return rounded(number, /\.(lat|long)itude$/.test(this.reference) ? 5 : 1);
  }

  #shownEntry(entry) {
    if (!isConverted(this.#rawUnit) || !isNumeric(entry)) return entry;
    const number = shown(Number(entry), this.#rawUnit);
    return number === undefined ? "?" : rounded(number);
  }
}

// Whether an entry of a list is a number. One that could not be read is "?".
export const isNumeric = (entry) => entry !== "" && Number.isFinite(Number(entry));

// Compares rows by group, importance and declaration.
export function inOrder(declared) {
  const group = (row) => (GROUPS.indexOf(row.group) + GROUPS.length + 1) % (GROUPS.length + 1);
  const position = new Map(declared.map((property, index) => [property.name, index]));
  return (left, right) => group(left) - group(right) || left.rank - right.rank || position.get(left.name) - position.get(right.name);
}

const isCharge = (name) => name.startsWith("state-of-charge") || name === "battery" || name === "fuel-level";

// The value as a fraction of its range; undefined unless the unit is % and the range is at most 200 %.
export function share(row) {
  if (row.unit !== "%" || !row.isNumber) return undefined;
  const { minimum: low = 0, maximum: high = 100 } = row.declaration;
  return low >= 0 && high > low && high <= 200 ? (row.value - low) / (high - low) : undefined;
}

// The meaning of a value: "bad", "warn", "good", or "" for most. Recognises the names that all kinds share.
export function meaning(row) {
  if (row.value === undefined) return "";
  if (row.name === "mil" || row.name === "dtc-count") return row.value ? "warn" : "";
  if (row.name === "fault-code") return row.value === "none" ? "" : "bad";
  if (row.name === "connected") return row.value ? "" : "bad";
  if (!isCharge(row.name) || share(row) === undefined) return "";
  return share(row) < 0.1 ? "bad" : share(row) < 0.2 ? "warn" : "good";
}
