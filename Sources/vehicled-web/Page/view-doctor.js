// The doctor: checks of the requirements with suggested fixes, the state of the history, and the latest log records.

import { element, setText } from "./dom.js";
import { clock, dateAndTime, size } from "./format.js";

const MAX_RECORDS = 200;
// The pause before another attempt to follow the log, in seconds.
const RETRY = 2;

export class DoctorView {
  title = "Doctor";
  #app;
  #findings = element("ul", { class: "findings" });
  #status = element("p", { class: "result", role: "status" });
  #history = element("p");
  #log = element("ol", { class: "log" });
  #stream = null;
  // The time of the last record in µs since the Unix epoch.
  #last = 0;
  // When to follow the log again after the connection was lost.
  #retryAt = Infinity;

  constructor(app) {
    this.#app = app;
    this.node = element("div", {},
      element("div", { class: "head" }, element("h1", {}, "Doctor"), element("button", { onclick: () => this.#check() }, "Check again"),
        this.#status),
      this.#findings, app.history && element("section", {}, element("h2", {}, "History"), this.#history),
      element("section", {}, element("h2", {}, "Log"), this.#log));
    this.#check();
    this.#follow();
    if (app.history) this.#describeHistory();
  }

  update() {
    const { outage, now } = this.#app.model;
    if (this.#stream === null && outage === null && now >= this.#retryAt) this.#follow();
  }

  close() {
    this.#stream?.close();
    this.#retryAt = Infinity;
  }

  async #check() {
    setText(this.#status, "checking …");
    try {
      const { findings } = await this.#app.daemon.call("Diagnose");
      const count = findings.filter((finding) => finding.state !== "ok").length;
      setText(this.#status, count === 0 ? "no problems found" : `${count} problem${count === 1 ? "" : "s"} found`);
      const order = ["failed", "warning", "ok"];
      findings.sort((left, right) => order.indexOf(left.state) - order.indexOf(right.state));
      this.#findings.replaceChildren(...findings.map((finding) => this.#finding(finding)));
    } catch (error) {
      setText(this.#status, error.message);
    }
  }

  #finding({ subject, state, text, remedy }) {
    const role = { ok: "good", warning: "warn", failed: "bad" }[state] ?? "";
    return element("li", { class: role }, element("span", { class: "state" }, state), element("strong", {}, subject), " ", text, remedy
      && element("p", { class: "remedy" }, remedy));
  }

  async #describeHistory() {
    try {
      const status = await this.#app.history.call("Status");
      const since = status.first == null ? "nothing recorded yet" : `since ${dateAndTime(status.first / 1000)}`;
      const state = status.recording ? "recording" : `not recording: ${status.reason}`;
      setText(this.#history, `${state}, ${since}; ${size(status.size)} of ${size(status.limit)}; ${status.devices.join(", ")}`);
    } catch (error) {
      setText(this.#history, error.message);
    }
  }

  #follow() {
    let isFirst = true;
    const stream = this.#app.daemon.stream("Log", {}, ({ records = [] }) => {
      // After an interruption, the first reply repeats what the daemon has stored.
      const fresh = isFirst ? records.filter((record) => record.time > this.#last) : records;
      isFirst = false;
      this.#last = records.at(-1)?.time ?? this.#last;
      this.#append(fresh.slice(-MAX_RECORDS).map((record) => this.#record(record)));
    });
    this.#stream = stream;
    stream.done.catch((error) => {
      this.#append([element("li", { class: "warning" }, error.message)]);
      this.#stream = null;
      // An error of the daemon itself would only be repeated.
      this.#retryAt = error.name === "" ? this.#app.model.now + RETRY : Infinity;
    });
  }

  #append(nodes) {
    const isAtEnd = this.#log.scrollTop + this.#log.clientHeight >= this.#log.scrollHeight - 8;
    this.#log.append(...nodes);
    while (this.#log.childElementCount > MAX_RECORDS) this.#log.firstChild.remove();
    if (isAtEnd) this.#log.scrollTop = this.#log.scrollHeight;
  }

  #record({ time, level, device, link, message }) {
    const about = [device, link].filter(Boolean).join(" ");
    return element("li", { class: level }, element("time", {}, clock(time / 1000)), " ", element("span", { class: "level" }, level), " ",
      about && `${about}: `, message);
  }
}
