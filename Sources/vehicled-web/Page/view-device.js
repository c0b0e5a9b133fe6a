// One device: state and links, values by group, inputs, actions, trouble codes, a recording.

import { Codes } from "./codes.js";
import { Actions, Controls } from "./controls.js";
import { linkText } from "./device.js";
import { element, replace, setAttribute, setText } from "./dom.js";
import { Recording } from "./recording.js";
import { Values } from "./values.js";
import { stopButtons } from "./view-overview.js";

export class DeviceView {
  node = element("div", { class: "device" });
  #app;
  #shape = -1;
  #showsAll = false;
  #parts = [];
  // The constructors of the parts, each with what the part depends on: one that still holds is kept, with what runs or is typed in it.
  static #kinds = [
    [Controls, (device) => device.rows.filter((row) => row.declaration.writable).map((row) => row.declaration)],
    [Codes, (device) => device.actions],
    [Actions, (device) => device.actions],
    [Recording, (device) => device.links.length > 0],
  ];
  #built = null;
  #keys = [];
  #values = null;
  #groups = element("div");
  #all = element("button", { class: "quiet", onclick: () => this.#toggle() });
  #state = element("span", { class: "state" });
  #links = element("ul", { class: "links" });
  #problem = element("p", { class: "problem" });
  #connect = element("button", { class: "quiet", onclick: () => this.#switch() });
  #result = element("span", { class: "result", role: "status" });

  constructor(app, name) {
    this.#app = app;
    this.title = name;
  }

  get #device() {
    return this.#app.model.devices.get(this.title);
  }

  update() {
    const device = this.#device;
    if (!device) {
      if (this.#app.model.outage === null || this.#built) {
        this.close();
        [this.#shape, this.#built, this.#parts, this.#keys] = [-1, null, [], []];
        this.node.replaceChildren(element("p", { class: "empty" }, `No such device: "${this.title}"; `,
          element("a", { href: "#/" }, "see the overview")));
      }
      return;
    }
    if (device.shape !== this.#shape) this.#build(device);
    if (this.#values.isOutdated) this.#list(device);
    this.#updateHead(device);
    this.#values.update(this.#app.model.now);
    for (const part of this.#parts) part.update?.();
  }

  close() {
    for (const part of this.#parts) part.close?.();
  }

  #build(device) {
    const keys = DeviceView.#kinds.map(([, key]) => JSON.stringify(key(device)));
    const isKept = keys.map((key, index) => device === this.#built && key === this.#keys[index]);
    this.#parts.forEach((part, index) => isKept[index] || part.close?.());
    this.#parts = DeviceView.#kinds.map(([Part], index) => (isKept[index] ? this.#parts[index] : new Part(this.#app, device)));
    [this.#shape, this.#built, this.#keys] = [device.shape, device, keys];
    const focused = document.activeElement;
    const stop = stopButtons(this.#app, [device]);
    const isConnectable = device.links.length > 0 && this.#app.mayControl(device.name);
    replace(this.node,
      element("div", { class: "head" }, element("h1", {}, device.name), element("span", { class: "kind" }, device.kind), this.#state,
        isConnectable && this.#connect, this.#result),
      element("div", {}, this.#problem, this.#links),
      this.#app.isWithheld(device.name) && element("p", { class: "help", id: "withheld" },
        "vehicled-web has restarted, so this page only observes; to control the device, sign in again with the token"),
      stop, this.#groups, this.#all,
      element("div", { class: "panels" }, this.#parts.map((part) => part.node)));
    // A node that is moved loses the focus.
    if (focused !== document.activeElement && this.node.contains(focused)) focused.focus({ preventScroll: true });
    this.#list(device);
  }

  #list(device) {
    this.#values = new Values(device, this.#showsAll);
    this.#groups.replaceChildren(this.#values.node);
    const count = device.rows.filter((row) => row.isNotReported).length;
    this.#all.hidden = count === 0;
    setText(this.#all, this.#showsAll ? "Hide values that are not reported" : `Show ${count} values that are not reported`);
  }

  #toggle() {
    this.#showsAll = !this.#showsAll;
    this.#list(this.#device);
    this.update();
  }

  #updateHead(device) {
    const { outage, wall } = this.#app.model;
    setAttribute(this.node, "class", `device ${outage === null ? device.role : "dim"}`);
    setText(this.#state, outage === null ? device.state : "unknown");
    setText(this.#problem, [device.fault, device.warning, device.holder && `driven by ${device.holder}`].filter(Boolean).join(" · "));
    setAttribute(this.#problem, "class", `problem ${device.needsAttention ? "bad" : "warn"}`);
    setText(this.#connect, device.isDisconnected ? "Connect" : "Disconnect");
    while (this.#links.childElementCount < device.links.length) this.#links.append(element("li", {}, element("span", { class: "url" }),
      " ", element("span"), " ", element("span", { class: "details" })));
    while (this.#links.childElementCount > device.links.length) this.#links.lastChild.remove();
    device.links.forEach((link, index) => {
      const [url, state, details] = this.#links.children[index].children;
      setText(url, device.links.length > 1 ? `${link.name} ${link.url}` : link.url);
      setText(state, outage === null ? linkText(link, wall) : "unknown");
      setAttribute(state, "class", outage !== null ? "" : link.state === "up" ? "good" : link.state === "down"
        ? (device.isDisconnected ? "" : "bad") : "warn");
      setText(details, Object.entries(link.details ?? {}).map(([key, value]) => `${key} ${value}`).join(", "));
    });
  }

  async #switch() {
    setText(this.#result, "");
    const method = this.#device.isDisconnected ? "Connect" : "Disconnect";
    await this.#app.daemon.call(method, { device: this.title }).catch((error) => setText(this.#result, error.message));
  }
}
