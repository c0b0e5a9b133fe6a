// One trip, charge or parked period: its figures, plots of the recorded values with zoom, the charging curve, and the track.

import { Charts } from "./charts.js";
import { element, replace, setText } from "./dom.js";
import { clock, dateAndTime, span } from "./format.js";
import { figures, NO_HISTORY, NOTES, notes } from "./period.js";
import { bands, tracks } from "./recorded.js";
import { table } from "./report.js";
import { inOrder } from "./row.js";
import { trackDrawing } from "./track.js";

const MAX_TRACES = 4;
// Drawn as a track.
const POSITION = ["latitude", "longitude"];

export class PeriodView {
  #app;
  #charts = new Charts();
  #period = null;
  #references = [];
  #request = 0;
  #status = element("p", { class: "result", role: "status" });
  #zoomed = element("span", { class: "result" });

  constructor(app, number) {
    this.#app = app;
    this.title = `Period ${number}`;
    this.node = element("div", { class: "period" }, this.#status);
    this.#charts.onrange = (start, end) => this.#zoom(start, end);
    this.#load(number).catch((error) => replace(this.node, element("p", { class: "empty", role: "status" }, `${error.message}; `,
      element("a", { href: "#/history" }, "see the history"))));
  }

  update() {}

  close() {
    this.#request += 1;
    this.#charts.close();
  }

  async #load(number) {
    if (!/^\d{1,15}$/.test(number)) throw new Error(`"${number}" is not the number of a period`);
    if (!this.#app.history) throw new Error(NO_HISTORY);
    const { period, pauses, curve } = await this.#app.history.call("Period", { number: Number(number) });
    const { series } = await this.#app.history.call("Series", { device: period.device });
    this.#period = period;
    this.#references = await this.#choose(series);
    const name = { trip: "Trip", charge: "Charge", parking: "Parked" }[period.kind] ?? period.kind;
    const shown = Object.entries(figures(period, { hasBound: true })).filter(([, text]) => text);
    const address = `#/plot/${this.#references.join(",")}/${Math.floor(period.start / 1e6)}/${Math.ceil(period.end / 1e6)}`;
    const track = element("div");
    replace(this.node,
      element("p", {}, element("a", { href: `#/history/${period.kind}` }, "‹ History")),
      element("h1", {}, `${name} of ${period.device}, ${dateAndTime(period.start / 1000)}–${clock(period.end / 1000, false)}`),
      notes(period).map((note) => element("p", { class: "help" },
        `${note}: ${NOTES[note] ?? "unknown to this page; update vehicled-web"}`)),
      element("dl", { class: "figures" }, shown.map(([name, text]) => element("div", {}, element("dt", {}, name),
        element("dd", {}, text)))),
      element("div", { class: "buttons" },
        element("button", { onclick: () => this.#zoom(period.start / 1e6, period.end / 1e6) }, "Whole period"),
        element("button", { onclick: () => this.#charts.savePNG() }, "PNG"),
          element("button", { onclick: () => this.#charts.saveCSV() }, "CSV"),
        element("a", { href: address }, "Choose properties"), this.#zoomed),
      this.#charts.legend, this.#charts.node, track, this.#status,
      curve.length > 0 && element("section", {}, element("h2", {}, "Charging curve"),
        table(["state of charge %", "power kW"], curve.map((point) => [String(point.stateOfCharge), point.power.toFixed(1)]))),
      pauses.length > 0 && element("section", {}, element("h2", {}, "Pauses"),
        element("ul", {}, pauses.map((pause) => element("li", {},
        `${clock(pause.start / 1000)} for ${span((pause.end - pause.start) / 1e6)}`)))));
    setText(this.#status, "");
    await this.#zoom(period.start / 1e6, period.end / 1e6);
    if (period.kind !== "trip") return;
    const runs = await tracks(this.#app.history, period.start / 1e6, period.end / 1e6);
    if (runs.length) track.replaceWith(element("section", {}, element("h2", {}, "Track"), trackDrawing(runs)));
  }

  // The most important numbers that are recorded. A device that is configured no longer has no ranks.
  async #choose(series) {
    const { device } = this.#period;
    const { schemas } = await this.#app.daemon.call("Describe", { device }).catch(() => ({ schemas: [] }));
    const isPlotted = ({ type, property }) => ["int", "float"].includes(type) && !POSITION.includes(property);
    const recorded = new Set(series.filter(isPlotted).map((one) => one.property));
    const declared = schemas[0]?.properties ?? [];
    const ranked = declared.toSorted(inOrder(declared)).filter((property) => property.rank <= 2 && recorded.has(property.name));
    const names = ranked.sort((left, right) => left.rank - right.rank).map((property) => property.name);
    return (names.length ? names : [...recorded]).slice(0, MAX_TRACES).map((name) => `${device}.${name}`);
  }

  // Asks for the values of a range in as much detail as the plots can show.
  async #zoom(start, end) {
    const [first, last] = [this.#period.start / 1e6, this.#period.end / 1e6];
    [start, end] = [Math.max(first, start), Math.min(last, end)];
    this.#request += 1;
    const request = this.#request;
    setText(this.#zoomed, "loading …");
    const width = this.#charts.node.clientWidth;
    const { traces, problems } = await bands(this.#app.history, this.#references, start, end, width);
    if (request !== this.#request) return;
    [this.#charts.start, this.#charts.end] = [start, end];
    this.#charts.show(traces, { isLive: false });
    const range = end - start < last - first ? `${clock(start * 1000)} – ${clock(end * 1000)}` : "";
    setText(this.#zoomed, [range, ...problems].filter(Boolean).join("; "));
  }
}
