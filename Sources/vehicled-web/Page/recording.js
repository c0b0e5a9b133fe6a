// Records every byte on the links of a device, as `vehiclectl record` does, until the user stops or leaves the device, and saves the
// recording as a file.

import { element, save, setText } from "./dom.js";
import { clock, size } from "./format.js";

// A page should not hold more than this in memory, in bytes.
const MAX_SIZE = 50e6;

export class Recording {
  #app;
  #device;
  #stream = null;
  #lines = [];
  #size = 0;
  #button = element("button", { onclick: () => (this.#stream ? this.#stop() : this.#start()) }, "Start recording");
  #status = element("span", { class: "result" });

  // `node` is null if the device has no links.
  constructor(app, device) {
    this.#app = app;
    this.#device = device.name;
    this.node = device.links.length > 0
      ? element("section", { class: "panel", "aria-labelledby": "recording" }, element("h2", { id: "recording" }, "Recording"),
        element("p", { class: "help" },
          "Every byte on the links, with times, as a file for bug reports and replays. Secrets are replaced by their length."),
        element("div", { class: "buttons" }, this.#button, this.#status))
      : null;
  }

  update() {
    if (this.#stream) setText(this.#status, `${this.#lines.length} lines, ${size(this.#size)}`);
  }

  close() {
    if (this.#stream) this.#stop();
  }

  async #start() {
    [this.#lines, this.#size] = [[], 0];
    setText(this.#button, "Stop and save");
    const stream = this.#app.daemon.stream("Record", { device: this.#device }, ({ line }) => {
      if (line == null) return;
      this.#lines.push(line);
      this.#size += line.length + 1;
      if (this.#size > MAX_SIZE) this.#stop("stopped at 50 MB; use vehiclectl record for longer recordings");
    });
    this.#stream = stream;
    await stream.done.catch((error) => this.#stop(`stopped: ${error.message}`));
  }

  #stop(note = "") {
    this.#stream?.close();
    this.#stream = null;
    setText(this.#button, "Start recording");
    setText(this.#status, note);
    if (!this.#lines.length) return;
    save(`${this.#device}-${clock(Date.now()).replaceAll(":", "")}.ndjson`, `${this.#lines.join("\n")}\n`, "application/x-ndjson");
    this.#lines = [];
  }
}
