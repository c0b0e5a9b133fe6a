// Plots of properties that the user chooses: live at the full rate, with pause, or recorded values when vehicled-history runs. The address
// has the properties, and the range of recorded values in seconds since the Unix epoch: #/plot/ev.speed,ev.rpm/1700000000/1700003600.

import { Charts, color } from "./charts.js";
import { element, replace, setText } from "./dom.js";
import { clock, dateAndTime } from "./format.js";
import { bands } from "./recorded.js";
import { LiveTrace } from "./trace.js";
import { stopButtons } from "./view-overview.js";

const MAX_TRACES = 8;
const DEFAULT_TRACES = 3;
// The names of the ranges with their lengths in seconds.
const LIVE = { "15 s": 15, "1 min": 60, "5 min": 300, "10 min": 600 };
const RECORDED = { "1 hour": 3600, "1 day": 86_400, "1 week": 604_800, "30 days": 2_592_000, "1 year": 31_536_000 };
const MINUTE = 60;

export class PlotView {
  title = "Plot";
  #app;
  #charts = new Charts();
  #references;
  // The end of a paused live plot; null while it moves.
  #pausedAt = null;
  // The samples of a paused live plot by reference: rows drop theirs when they are too old, and devices can be replaced.
  #paused = new Map();
  // The range of recorded values; null in a live plot.
  #range = null;
  #length = MINUTE;
  #shape = "";
  #request = 0;
  #choices = element("div", { class: "choices" });
  #filter = element("input", { type: "search", placeholder: "Find a property", "aria-label": "Find a property",
    oninput: () => this.#applyFilter() });
  #pause = element("button", { "aria-pressed": "false", onclick: () => this.#togglePause() }, "Pause");
  #select;
  #notice = "";
  #stop = element("div");
  #status = element("p", { class: "result", role: "status" });
  #onkey = (event) => {
    if (event.key !== " " || !["BODY", "MAIN", "DIV"].includes(event.target.tagName)) return;
    event.preventDefault();
    this.#togglePause();
  };

  constructor(app, references = "", start = "", end = "") {
    this.#app = app;
    const given = references.split(",").filter(Boolean);
    this.#references = given.slice(0, MAX_TRACES);
    if (given.length > MAX_TRACES) this.#notice = `only ${MAX_TRACES} of ${given.length} properties are shown`;
    if (start || end) this.#takeRange(Number(start), Number(end));
    const ranges = [element("optgroup", { label: "Live" },
      Object.keys(LIVE).map((name) => element("option", { value: name, selected: LIVE[name] === MINUTE }, name))),
      app.history && element("optgroup", { label: "Recorded" },
        Object.keys(RECORDED).map((name) => element("option", { value: name }, name))),
      element("option", { value: "range", hidden: true, selected: this.#range !== null }, "selection")];
    this.#select = element("select", { "aria-label": "Range", onchange: () => this.#chooseRange() }, ranges.filter(Boolean));
    this.node = element("div", { class: "plot-view" },
      element("details", { class: "picker", open: matchMedia("(min-width: 60rem)").matches }, element("summary", {}, "Properties"),
        this.#filter, this.#choices),
      element("div", { class: "stage" },
        element("h1", { class: "unseen" }, "Plot"),
        element("div", { class: "buttons" }, this.#select, this.#pause,
          element("button", { onclick: () => this.#charts.savePNG() }, "PNG"),
            element("button", { onclick: () => this.#charts.saveCSV() }, "CSV"), this.#status),
        this.#stop, this.#charts.legend, this.#charts.node));
    this.#charts.onrange = (start, end) => this.#zoom(start, end);
    document.addEventListener("keydown", this.#onkey);
  }

  #takeRange(start, end) {
    if (!(end > start)) this.#notice = "the address has no valid range; this is the live plot";
    else if (!this.#app.history) this.#notice = "recorded values need vehicled-history, which is not running; this is the live plot";
    else this.#range = [start, end];
  }

  update() {
    const { model } = this.#app;
    const { shape } = model;
    if (shape !== this.#shape) {
      this.#shape = shape;
      if (!this.#references.length) this.#references = this.#defaults();
      this.#list();
      this.#show();
    }
    if (this.#range) return;
    this.#follow();
    this.#charts.draw();
  }

  // Sets the range of a live plot.
  #follow() {
    this.#charts.end = this.#pausedAt ?? this.#app.model.wall;
    this.#charts.start = this.#charts.end - this.#length;
  }

  close() {
    this.#request += 1;
    this.#charts.close();
    document.removeEventListener("keydown", this.#onkey);
    this.#keep([]);
  }

  // The first headline values, so that there is something to see.
  #defaults() {
    const rows = [...this.#app.model.devices.values()].flatMap((device) => device.headlines);
    return rows.filter((row) => row.isPlottable && row.value !== undefined).slice(0, DEFAULT_TRACES).map((row) => row.reference);
  }

  #list() {
    replace(this.#choices, [...this.#app.model.devices.values()].map((device) => {
      const rows = device.rows.filter((row) => row.isPlottable && !row.isNotReported);
      return rows.length > 0 && element("fieldset", {}, element("legend", {}, device.name),
        rows.map((row) => element("label", { title: row.declaration.help },
        element("input", { type: "checkbox", value: row.reference, checked: this.#references.includes(row.reference),
          onchange: (event) => this.#choose(event.target) }), row.name)));
    }));
    this.#applyFilter();
  }

  #applyFilter() {
    const words = this.#filter.value.toLowerCase().split(/\s+/);
    for (const label of this.#choices.querySelectorAll("label")) {
      label.hidden = !words.every((word) => label.firstChild.value.includes(word) || label.title.toLowerCase().includes(word));
    }
    for (const set of this.#choices.children) set.hidden = !set.querySelector("label:not([hidden])");
  }

  #choose(box) {
    this.#references = this.#references.filter((reference) => reference !== box.value);
    if (box.checked && this.#references.length >= MAX_TRACES) {
      box.checked = false;
      this.#notice = `at most ${MAX_TRACES} properties; deselect one first`;
    } else {
      this.#notice = "";
      if (box.checked) this.#references.push(box.value);
    }
    this.#show();
  }

  #chooseRange() {
    const name = this.#select.value;
    this.#notice = "";
    this.#range = null;
    if (name in RECORDED) this.#range = [this.#app.model.wall - RECORDED[name], this.#app.model.wall];
    else this.#length = LIVE[name];
    this.#show();
  }

  // Zooms into a range: of the recorded values, or of a paused live plot.
  #zoom(start, end) {
    this.#select.value = "range";
    if (this.#app.history && (this.#range || end - start > LIVE["10 min"])) {
      this.#range = [start, Math.min(end, this.#app.model.wall)];
      this.#show();
    } else {
      this.#length = Math.min(LIVE["10 min"], Math.max(1, end - start));
      if (this.#pausedAt === null) this.#togglePause();
      this.#pausedAt = end;
      this.update();
    }
  }

  #togglePause() {
    if (this.#range) return;
    this.#pausedAt = this.#pausedAt === null ? this.#app.model.wall : null;
    this.#paused.clear();
    if (this.#pausedAt === null) this.#length = this.#liveLength();
    this.#pause.setAttribute("aria-pressed", String(this.#pausedAt !== null));
    setText(this.#pause, this.#pausedAt === null ? "Pause" : "Continue");
    this.#show();
  }

  // The length of a live plot that goes on: as chosen, or a minute after a selection.
  #liveLength() {
    if (this.#select.value === "range") this.#select.value = "1 min";
    return LIVE[this.#select.value];
  }

  // With the names in the address that cannot be plotted.
  #notices() {
    const rows = this.#references.map((reference) => [reference, this.#app.model.row(reference)]);
    const list = (text, found) => found.length > 0 && `${text}: ${found.map(([reference]) => reference).join(", ")}`;
    return [this.#notice, list("no such property", rows.filter(([, row]) => !row)),
      list("not a number", rows.filter(([, row]) => row && !row.isPlottable))].filter(Boolean);
  }

  async #show() {
    this.#request += 1;
    const range = this.#range ? `/${this.#range.map(Math.round).join("/")}` : "";
    history.replaceState(null, "", `#/plot/${this.#references.join(",")}${range}`);
    this.#pause.disabled = this.#range !== null;
    const shown = new Set(this.#references.map((reference) => reference.split(".")[0]));
    replace(this.#stop, stopButtons(this.#app, [...this.#app.model.devices.values()].filter(({ name }) => shown.has(name))));
    if (this.#range) return this.#showRecorded(this.#request);
    const rows = this.#references.map((reference) => this.#app.model.row(reference)).filter((row) => row?.isPlottable);
    this.#keep(rows);
    setText(this.#status, [...(this.#pausedAt === null ? [] : [`paused at ${clock(this.#pausedAt * 1000)}`]), ...this.#notices()].join("; "));
    this.#follow();
    this.#charts.show(rows.map((row, index) => new LiveTrace(row, color(index), this.#samples(row))), { isLive: this.#pausedAt === null });
  }

  #samples(row) {
    if (this.#pausedAt === null) return row.ring;
    if (!this.#paused.has(row.reference)) this.#paused.set(row.reference, row.ring.copy());
    return this.#paused.get(row.reference);
  }

  async #showRecorded(request) {
    const [start, end] = this.#range;
    setText(this.#status, "loading …");
    // Recorded values stay until there are others, so that zooming does not flicker; a live plot does not.
    if (this.#charts.traces.some((trace) => trace instanceof LiveTrace)) this.#charts.show([], { isLive: false });
    const width = this.#charts.node.clientWidth;
    const { traces, problems } = await bands(this.#app.history, this.#references, start, end, width);
    if (request !== this.#request) return;
    [this.#charts.start, this.#charts.end] = [start, end];
    this.#charts.show(traces, { isLive: false });
    setText(this.#status, [`${dateAndTime(start * 1000)} to ${dateAndTime(end * 1000)}`, this.#notice, ...problems].filter(Boolean).join("; "));
  }

  // Stores the samples of these rows for as long as a live plot can show; those of others only for a minute.
  #keep(rows) {
    for (const device of this.#app.model.devices.values()) {
      for (const row of device.rows) row.ring.span = rows.includes(row) ? LIVE["10 min"] : MINUTE;
    }
  }
}
