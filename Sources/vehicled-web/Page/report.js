// Calls an action of a device and shows what it returns: progress, text, a table, or data to save.

import { element, save, setText } from "./dom.js";
import { size } from "./format.js";

export class Report {
  #progress = element("progress", { max: "1", hidden: true });
  #text = element("p", { class: "report-text", role: "status" });
  #table = element("div", { class: "scroll" });
  node = element("div", { class: "report" }, this.#progress, this.#text, this.#table);
  #stream = null;

  // Resolves to the last reply, or to null if the action failed, which is shown. The new call replaces an earlier one.
  async run(app, device, action, args = {}) {
    this.#stream?.close();
    this.#progress.removeAttribute("value");
    this.#progress.hidden = false;
    setText(this.#text, "");
    this.#table.replaceChildren();
    this.node.setAttribute("aria-busy", "true");
    let last = {};
    const parameters = { device, action: action.name, ...(Object.keys(args).length && { arguments: args }) };
    this.#stream = app.daemon.stream("Call", parameters, (reply) => {
      last = reply;
      this.#show(device, action.name, reply);
    }, { more: action.streams });
    try {
      await this.#stream.done;
      if (!this.#text.textContent && !this.#table.childElementCount) setText(this.#text, "done");
      return last;
    } catch (error) {
      setText(this.#text, error.message);
      return null;
    } finally {
      this.#progress.hidden = true;
      this.node.removeAttribute("aria-busy");
    }
  }

  close() {
    this.#stream?.close();
  }

  #show(device, action, { text, progress, columns, rows, data }) {
    if (progress != null) this.#progress.value = progress;
    if (text != null) setText(this.#text, text);
    if (rows) this.#table.replaceChildren(table(columns ?? [], rows.map((row) => row.cells)));
    if (data) {
      const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
      this.#table.append(element("button", { onclick: () => save(`${device}-${action}`, new Blob([bytes])) },
        `Save ${size(bytes.length)}`));
    }
  }
}

export function table(columns, rows) {
  return element("table", { class: "data" },
    columns.length > 0 && element("thead", {}, element("tr", {}, columns.map((column) => element("th", { scope: "col" }, column)))),
    element("tbody", {}, rows.map((cells) => element("tr", {}, cells.map((cell) => element("td", {}, cell))))));
}
