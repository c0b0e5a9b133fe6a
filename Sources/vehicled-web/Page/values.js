// The values of a device: a table for each group. Lists of numbers are drawn as bars, and properties whose names differ only in a number
// are folded into one row with their range.

import { element, setAttribute, setText } from "./dom.js";
import { age, brief, fixed, rounded } from "./format.js";
import { isNumeric, meaning, share } from "./row.js";

const MIN_SERIES = 3;
const MIN_CELLS = 4;

export class Values {
  node = element("div", { class: "groups" });
  #lines = [];
  // The lists that are not drawn as bars, because they had no numbers yet.
  #lists;

  // `device`: built again when its shape changes. `showsAll`: whether to include values that the vehicle does not report.
  constructor(device, showsAll) {
    this.#lists = device.rows.filter((row) => row.declaration.type === "list" && !isCells(row));
    const groups = Map.groupBy(device.rows.filter((row) => showsAll || !row.isNotReported), (row) => row.group);
    for (const [name, rows] of groups) this.node.append(this.#group(device, name, rows));
  }

  // Whether a list has become one of numbers since, so that the view must be built again.
  get isOutdated() {
    return this.#lists.some(isCells);
  }

  update(now) {
    for (const line of this.#lines) line.update(now);
  }

  #group(device, name, rows) {
    const cells = rows.filter(isCells);
    const strips = [...Map.groupBy(cells, (row) => row.unit).values()].map((rows) => this.#add(new CellStrip(rows)));
    const series = findSeries(rows);
    const bodies = [];
    let body = null;
    for (const row of rows) {
      if (cells.includes(row)) continue;
      const members = series.get(row);
      if (members && members[0] !== row) continue;
      if (members) {
        bodies.push(...this.#series(device, members));
        body = null;
        continue;
      }
      if (!body) bodies.push((body = element("tbody")));
      body.append(this.#add(new Line(device, row)).node);
    }
    const id = `group-${name}`;
    return element("section", { class: "group", "aria-labelledby": id }, element("h2", { id }, name),
      strips.map((strip) => strip.node), element("table", {}, bodies));
  }

  // A row with the range of a series, and the hidden rows of its members.
  #series(device, members) {
    const body = element("tbody", { hidden: true }, members.map((row) => this.#add(new Line(device, row)).node));
    return [element("tbody", {}, this.#add(new Series(device, members, body)).node), body];
  }

  #add(line) {
    this.#lines.push(line);
    return line;
  }
}

// One property.
class Line {
  #device;
  #row;
  #value = element("span", { class: "number" });
  #unit = element("span", { class: "unit" });
  #cell;
  #age = element("td", { class: "age" });
  #bar;
  #version = -1;
  #explained;

  constructor(device, row) {
    this.#device = device;
    this.#row = row;
    const name = row.isPlottable ? element("a", { href: `#/plot/${encodeURIComponent(row.reference)}` }, row.name) : row.name;
    this.#bar = share(row) === undefined ? null : element("span", { class: "bar", "aria-hidden": "true" }, element("span"));
    this.#cell = element("td", {}, this.#bar, this.#value, " ", this.#unit);
    this.node = element("tr", { "data-reference": row.reference }, element("th", { scope: "row", title: row.declaration.help }, name),
      this.#cell, this.#age);
  }

  update(now) {
    const row = this.#row;
    const isKnown = row.value !== undefined;
    setText(this.#age, isKnown ? age(row.age(now)) : "");
    const isExplained = this.#device.explains(row.reason);
    if (row.version === this.#version && isExplained === this.#explained) return;
    this.#version = row.version;
    this.#explained = isExplained;
    setText(this.#value, isKnown ? row.text : isExplained ? "–" : `– ${row.reason}`);
    setText(this.#unit, isKnown ? row.unit : "");
    // A reason also takes the place of the age.
    this.#cell.colSpan = isKnown ? 1 : 2;
    this.#age.hidden = !isKnown;
    if (this.#bar) this.#bar.hidden = !isKnown;
    setAttribute(this.node, "class", isKnown ? `${meaning(row)} ${row.isNumber && row.text.length < 12 ? "" : Array.isArray(row.value) ? "word list" : "word"}`
      : "absent");
    setAttribute(this.#value, "title", isKnown ? null : row.reason);
    if (this.#bar) this.#bar.firstChild.style.width = `${100 * Math.min(1, Math.max(0, share(row) ?? 0))}%`;
  }
}

// The range of a series, with the age of its oldest value: `module-temperature-1–16  17 – 19 °C  12 of 16; stale`, and a button that shows
// its members.
class Series {
  #device;
  #members;
  #value = element("span", { class: "number" });
  #unit = element("span", { class: "unit" });
  // How many have a value, and why others have none.
  #count = element("span", { class: "help" });
  #age = element("td", { class: "age" });

  constructor(device, members, body) {
    this.#device = device;
    this.#members = members;
    const numbers = members.map((row) => Number(numbered(row.name).number));
    const { before, after } = numbered(members[0].name);
    const name = `${before}${Math.min(...numbers)}–${Math.max(...numbers)}${after}`;
    const button = element("button", {
      class: "fold", "aria-expanded": "false",
      onclick: () => {
        body.hidden = !body.hidden;
        button.setAttribute("aria-expanded", String(!body.hidden));
      },
    }, name);
    this.node = element("tr", {}, element("th", { scope: "row" }, button), element("td", {}, this.#value, " ", this.#unit, " ", this.#count),
      this.#age);
  }

  update(now) {
    const known = this.#members.filter((row) => row.isNumber);
    const numbers = known.map((row) => Number(row.text));
    const ends = numbers.length ? [brief(Math.min(...numbers)), brief(Math.max(...numbers))] : [];
    setText(this.#value, numbers.length ? (ends[0] === ends[1] ? ends[0] : ends.join(" – ")) : "–");
    setText(this.#unit, numbers.length ? known[0].unit : "");
    setText(this.#age, numbers.length ? age(Math.max(...known.map((row) => row.age(now) ?? 0))) : "");
    const reasons = new Set(this.#members.filter((row) => row.value === undefined).map((row) => row.reason));
    const count = known.length && known.length < this.#members.length ? `${known.length} of ${this.#members.length}` : "";
    setAttribute(this.node, "class", known.length < this.#members.length ? "word" : null);
    setText(this.#count, [count, ...[...reasons].filter((reason) => !this.#device.explains(reason))].filter(Boolean).join("; "));
  }
}

// Lists of numbers, such as cell voltages: a summary, and a bar for each that shows its difference from the median.
class CellStrip {
  #rows;
  #summary = element("p", { class: "summary" });
  #age = element("span", { class: "age" });
  #bars = element("div", { class: "cells", "aria-hidden": "true" });
  #version = "";
  // The range in V at least, so that small differences look small; the differences that are good and acceptable.
  static #range = 0.04;
  static #good = 0.045;
  static #acceptable = 0.105;

  constructor(rows) {
    this.#rows = rows;
    this.node = element("div", { "data-reference": rows.map((row) => row.reference).join(" ") }, this.#summary, this.#bars);
  }

  update(now) {
    setText(this.#age, age(Math.max(...this.#rows.map((row) => row.age(now) ?? 0))));
    const version = this.#rows.map((row) => row.version).join();
    if (version === this.#version) return;
    this.#version = version;
    const numbers = this.#rows.flatMap((row) => row.numbers);
    const known = numbers.filter(Number.isFinite).sort((left, right) => left - right);
    if (!known.length) {
      this.#summary.replaceChildren(`– ${this.#rows[0].reason}`);
      this.#bars.replaceChildren();
      return;
    }
    this.#summary.replaceChildren(this.#text(numbers.length, known), " ", this.#age);
    const [low, median, high] = [known[0], known[known.length >> 1], known.at(-1)];
    const range = Math.max(high - low, CellStrip.#range);
    while (this.#bars.childElementCount < numbers.length) this.#bars.append(element("span"));
    while (this.#bars.childElementCount > numbers.length) this.#bars.lastChild.remove();
    numbers.forEach((number, index) => {
      const bar = this.#bars.children[index];
      bar.className = this.#role(Math.abs(number - median));
      bar.style.height = Number.isNaN(number) ? "100%" : `${Math.round(100 * ((number - median) / range / 2 + 0.5))}%`;
    });
  }

  #role(difference) {
    if (Number.isNaN(difference)) return "bad";
    if (this.#rows[0].unit !== "V") return "";
    return difference <= CellStrip.#good ? "good" : difference <= CellStrip.#acceptable ? "warn" : "bad";
  }

  // `192 cells, 2 unreadable: 3.80 – 3.82 V, Δ 20 mV`.
  #text(count, known) {
    const { unit, group } = this.#rows[0];
    const isVoltage = unit === "V";
    const [low, high] = [known[0], known.at(-1)];
    const number = (value) => (isVoltage ? fixed(value, 2) : rounded(value));
    const difference = isVoltage ? `${Math.round((high - low) * 1000)} mV` : `${rounded(high - low)} ${unit}`;
    const missing = count - known.length;
    const entries = `${count} ${group === "cells" ? "cells" : "values"}${missing ? `, ${missing} unreadable` : ""}`;
    return `${entries}: ${number(low)} – ${number(high)} ${unit}, Δ ${difference}`;
  }
}

function isCells(row) {
  return Array.isArray(row.value) && row.value.length >= MIN_CELLS
    && row.value.every((entry) => entry === "?" || isNumeric(entry));
}

// The only number between the hyphens of a name, and the texts around it; undefined if there is none or more than one.
function numbered(name) {
  const parts = name.split("-");
  const positions = [...parts.keys()].filter((position) => /^\d+$/.test(parts[position]));
  if (positions.length !== 1) return undefined;
  const [position] = positions;
  const before = parts.slice(0, position).map((part) => `${part}-`).join("");
  return { before, number: parts[position], after: parts.slice(position + 1).map((part) => `-${part}`).join("") };
}

// The series among these rows, by member.
function findSeries(rows) {
  const candidates = rows.filter((row) => row.declaration.type !== "list" && numbered(row.name));
  const groups = Map.groupBy(candidates, (row) => `${numbered(row.name).before}#${numbered(row.name).after} ${row.declaration.unit}`);
  return new Map([...groups.values()].filter((members) => members.length >= MIN_SERIES).flatMap((members) => members.map((row) => [row,
    members])));
}
