// The trouble codes of a vehicle: reads them on request, because a query can wake a vehicle that is not in use, and clears them after the
// user has seen what is lost and has confirmed it twice.

import { element } from "./dom.js";
import { Report } from "./report.js";

const READ = [["dtc", "Read trouble codes"], ["ecu-codes", "Read codes of other ECUs"], ["freeze-frames", "Read freeze frames"],
  ["monitors", "Read readiness monitors"]];
const CLEAR = "dtc-clear";
export const CODE_ACTIONS = [...READ.map(([name]) => name), CLEAR];

export class Codes {
  node;
  #app;
  #device;
  #report = new Report();
  #dialog;
  #note = element("p", { class: "warn" });

  // `node` is null if the device has no trouble codes.
  constructor(app, device) {
    this.#app = app;
    this.#device = device;
    const readable = READ.filter(([name]) => device.action(name));
    if (!readable.length || !app.mayControl(device.name)) {
      this.node = null;
      return;
    }
    const clear = device.action(CLEAR) && element("button", { class: "danger", onclick: () => this.#clear() }, "Clear trouble codes …");
    this.node = element("section", { class: "panel", "aria-labelledby": "codes" }, element("h2", { id: "codes" }, "Trouble codes"),
      this.#note,
      element("div", { class: "buttons" }, readable.map(([name, label]) => element("button",
        { onclick: () => this.#report.run(app, device.name, device.action(name)) }, label)), clear),
      this.#report.node);
  }

  update() {
    const text = this.#device.isAsleep ? `${this.#device.name} is not in use (${this.#device.state}): a query may wake it` : "";
    if (this.#note.textContent !== text) this.#note.textContent = text;
  }

  close() {
    this.#report.close();
    this.#dialog?.close();
  }

  // First shows what is lost, then asks twice.
  async #clear() {
    const { name } = this.#device;
    const action = this.#device.action(CLEAR);
    const preview = new Report();
    const close = element("button", { onclick: () => dialog.close() }, "Keep the codes");
    const buttons = element("div", { class: "buttons" }, close);
    const dialog = this.#dialog = element("dialog", { "aria-labelledby": "clear-title", onclose: () => dialog.remove() },
      element("h2", { id: "clear-title" }, `Clear the trouble codes of ${name}`), element("p", {}, "This will be lost:"), preview.node,
        buttons);
    document.body.append(dialog);
    dialog.showModal();
    close.focus();
    if (!(await preview.run(this.#app, name, action))) return;
    const confirm = element("button", { class: "danger", onclick: () => confirm.replaceWith(again) }, "Clear them");
    const again = element("button", {
      class: "danger",
      onclick: () => {
        dialog.close();
        this.#report.run(this.#app, name, action, { confirm: { bool: true } });
      },
    }, `Really clear the codes of ${name}`);
    buttons.append(confirm);
  }
}
