// The trips, charges and parked periods that vehicled-history has recorded, latest first, with their totals.

import { element, replace, setText } from "./dom.js";
import { dateAndTime, span } from "./format.js";
import { figures, NO_HISTORY, NOTES, notes, seconds } from "./period.js";

const LIMIT = 100;
const KINDS = { trip: "Trips", charge: "Charges", parking: "Parked" };
const COLUMNS = {
  trip: ["time", "distance", "energy", "consumption", "fuel", "fuel consumption", "state of charge"],
  charge: ["time", "charged", "state of charge", "mean power", "maximum power", "type"],
  parking: ["time", "state of charge", "energy"],
};

export class PeriodsView {
  title = "History";
  #app;
  #kind;
  #isKnown;
  #status = element("p", { class: "result", role: "status" });
  #list = element("div", { class: "scroll" });
  #limit = LIMIT;

  constructor(app, kind = "trip") {
    this.#app = app;
    this.#isKnown = Object.hasOwn(KINDS, kind);
    this.#kind = kind;
    this.node = element("div", { class: "periods" },
      element("div", { class: "head" }, element("h1", {}, "History"),
        element("nav", { class: "tabs", "aria-label": "Kinds" },
          Object.entries(KINDS).map(([kind, name]) => element("a",
          { href: `#/history/${kind}`, "aria-current": kind === this.#kind ? "page" : null }, name))),
        this.#status),
      this.#list);
    this.#load();
  }

  update() {}

  async #load() {
    if (!this.#app.history) return setText(this.#status, NO_HISTORY);
    if (!this.#isKnown) return setText(this.#status, `there is no kind "${this.#kind}"; choose one of the others`);
    setText(this.#status, "loading …");
    const periods = [];
    try {
      await this.#app.history.stream("Periods", { kind: this.#kind, limit: this.#limit }, (reply) => periods.push(...reply.periods)).done;
      this.#show(periods.reverse());
    } catch (error) {
      setText(this.#status, error.message);
    }
  }

  #show(periods) {
    const total = span(periods.reduce((sum, period) => sum + seconds(period), 0));
    setText(this.#status, periods.length ? `${periods.length} shown, ${total}` : `no ${KINDS[this.#kind].toLowerCase()} are recorded yet`);
    const rows = periods.map((period) => [period, figures(period)]);
    const columns = COLUMNS[this.#kind].filter((name) => rows.some(([, figures]) => figures[name]));
    const hasDevices = new Set(periods.map((period) => period.device)).size > 1;
    const isMarked = rows.some(([period]) => notes(period).length);
    const heads = ["start", hasDevices && "device", ...columns, isMarked && "notes"].filter(Boolean);
    replace(this.#list, periods.length > 0 && element("table", { class: "data numbers" },
      element("thead", {}, element("tr", {}, heads.map((name) => element("th",
        { scope: "col", class: columns.includes(name) ? null : "text" }, name)))),
      element("tbody", {}, rows.map(([period, figures]) => element("tr", { class: period.open ? "good" : null },
        element("th", { scope: "row" }, element("a", { href: `#/period/${period.number}` }, dateAndTime(period.start / 1000))),
        hasDevices && element("td", { class: "text" }, period.device), columns.map((name) => element("td", {}, figures[name])),
        isMarked && element("td", { class: "text" }, notes(period).map((note) => element("span",
          { class: "note", title: NOTES[note] ?? "" }, note))))))),
    periods.length === this.#limit && element("button", { onclick: () => { this.#limit *= 10; this.#load(); } }, "Show more"));
  }
}
