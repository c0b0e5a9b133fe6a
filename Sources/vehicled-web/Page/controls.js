// Inputs for the writable properties of a device. Properties that move the device are not offered.

import { element, setText } from "./dom.js";
import { Field } from "./field.js";

export class Controls {
  node;
  #settings;

  // `node` is null if there is nothing to set.
  constructor(app, device) {
    const writable = device.rows.filter((row) => row.declaration.writable && !row.declaration.motion);
    this.#settings = app.mayControl(device.name) ? writable.map((row) => new Setting(app, row)) : [];
    this.node = this.#settings.length
      ? element("section", { class: "panel", "aria-labelledby": "controls" }, element("h2", { id: "controls" }, "Set"),
        this.#settings.map((setting) => setting.node))
      : null;
  }

  update() {
    for (const setting of this.#settings) setting.update();
  }
}

class Setting {
  #row;
  #field;
  #isChanged = false;
  #result = element("p", { class: "result", role: "status" });

  constructor(app, row) {
    this.#row = row;
    const id = `set-${row.name}`;
    this.#field = new Field(row.declaration, { id, "aria-describedby": `${id}-help`, oninput: () => (this.#isChanged = true) });
    const button = element("button", {}, "Set");
    this.node = element("form", {
      class: "setting",
      onsubmit: async (event) => {
        event.preventDefault();
        button.disabled = true;
        await this.#send(app).finally(() => (button.disabled = false));
      },
    },
    element("label", { for: id }, row.name),
    element("div", { class: "entry" }, this.#field.input, element("span", { class: "unit" }, row.unit), button),
    element("p", { class: "help", id: `${id}-help` }, [row.declaration.help, this.#field.hint].filter(Boolean).join("; ")), this.#result);
  }

  update() {
    if (!this.#isChanged) this.#field.show(this.#row.text);
  }

  async #send(app) {
    const { device, name } = this.#row;
    const value = this.#field.value;
    if (value === undefined) return setText(this.#result, "enter a value");
    setText(this.#result, "setting …");
    try {
      await app.daemon.call("Set", { device, property: name, value });
      this.#isChanged = false;
      setText(this.#result, "set");
    } catch (error) {
      setText(this.#result, error.message);
    }
  }
}
