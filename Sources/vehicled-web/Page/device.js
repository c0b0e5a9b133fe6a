// A device as views show it: its rows in order, its links, and what is wrong with it.

import { duration } from "./format.js";
import { inOrder, Row } from "./row.js";

// The states of vehicles for which polling is paused because they are not in use.
const ASLEEP = ["car-asleep", "parked", "adapter-asleep"];

// The latest shape.
let shape = 0;

export class Device {
  rows = [];
  // Changes when rows, declarations or actions have changed, so that views must be built again. No two devices have the same.
  shape = 0;
  actions = [];
  kind = "";
  state = "";
  links = [];
  holder;
  fault;
  #byName = new Map();
  #declared = [];
  // The schema as text.
  #schema = "";

  constructor(name) {
    this.name = name;
  }

  row(name) {
    return this.#byName.get(name);
  }

  declare(schema) {
    const text = JSON.stringify(schema);
    if (text === this.#schema) return;
    this.#schema = text;
    this.#declared = schema.properties;
    this.actions = schema.actions;
    const declared = new Map(schema.properties.map((property) => [property.name, property]));
    for (const row of this.rows) row.declare(declared.get(row.name));
    this.#arrange();
  }

  // Replaces the state by that of a snapshot. Returns whether all its properties are declared. For `now` and `wall` see Row.note.
  place(snapshot, now, wall) {
    const { kind, state, links, holder, fault } = snapshot;
    Object.assign(this, { kind, state, links, holder, fault });
    const names = new Set(snapshot.readings.map((reading) => reading.property));
    if (names.size !== this.rows.length || this.rows.some((row) => !names.has(row.name))) {
      const declared = new Map(this.#declared.map((property) => [property.name, property]));
      this.rows = [...names].map((name) => this.#byName.get(name) ?? new Row(this.name, name, declared.get(name)));
      this.#arrange();
    }
    for (const reading of snapshot.readings) this.note(reading, now, wall);
    return this.rows.every((row) => row.isDeclared);
  }

  note(reading, now, wall) {
    this.#byName.get(reading.property)?.note(reading, now, wall);
  }

  #arrange() {
    this.rows.sort(inOrder(this.#declared));
    this.#byName = new Map(this.rows.map((row) => [row.name, row]));
    this.shape = shape += 1;
  }

  get #mainLink() {
    return this.links.find((link) => link.name === "main") ?? this.links[0];
  }

  // Whether polling is paused because the vehicle is not in use, and its 12 V battery is not low.
  get isNotInUse() {
    const isUp = !this.#mainLink || this.#mainLink.state === "up";
    return ASLEEP.includes(this.state) && isUp && !this.fault?.startsWith("the 12 V battery is low");
  }

  get isAsleep() {
    return ASLEEP.includes(this.state);
  }

  // Whether a client has closed the links.
  get isDisconnected() {
    const link = this.#mainLink;
    return !this.fault && link?.state === "down" && Boolean(link.reason?.startsWith("disconnected on request"));
  }

  // The fault, or why the main link is not up; undefined if all is well.
  get problem() {
    const link = this.#mainLink;
    if (this.fault) return this.fault;
    return link && link.state !== "up" ? `link ${link.state}${link.reason ? `: ${link.reason}` : ""}` : undefined;
  }

  get needsAttention() {
    return this.problem !== undefined && !this.isDisconnected && !this.isNotInUse;
  }

  // "bad", "good", or "dim" for a device that is not in use.
  get role() {
    return this.needsAttention ? "bad" : this.problem === undefined ? "good" : "dim";
  }

  // Whether `problem` already gives this reason for a missing value.
  explains(reason) {
    return !reason || reason === this.fault || reason === this.problem || (this.problem !== undefined && reason.startsWith("link down"));
  }

  // `; next attempt in 12 s`; empty if none is planned. `wall`: the server's time.
  nextAttempt(wall) {
    const times = this.links.filter((link) => link.nextAttempt != null).map((link) => link.nextAttempt / 1e6);
    return times.length ? `; next attempt in ${duration(Math.max(0, Math.min(...times) - wall))}` : "";
  }

  // What the vehicle itself reports as wrong: `MIL on, 2 DTCs`; empty if nothing.
  get warning() {
    const count = this.row("dtc-count")?.value ?? 0;
    return [this.row("mil")?.value && "MIL on", count > 0 && `${count} DTC${count === 1 ? "" : "s"}`].filter(Boolean).join(", ");
  }

  get headlines() {
    return this.rows.filter((row) => row.rank === 1);
  }

  action(name) {
    return this.actions.find((action) => action.name === name);
  }
}

// A link in one line: `up for 5 min`, with its reason and next attempt.
export function linkText(link, wall) {
  const next = link.nextAttempt == null ? "" : `; next attempt in ${duration(Math.max(0, link.nextAttempt / 1e6 - wall))}`;
  return `${link.state} for ${duration(wall - link.since / 1e6)}${link.reason ? `: ${link.reason}` : ""}${next}`;
}
