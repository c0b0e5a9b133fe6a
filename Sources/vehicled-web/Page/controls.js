// Inputs for the writable properties of a device, and its actions with inputs for their arguments. What moves the device is not offered.

import { CODE_ACTIONS } from "./codes.js";
import { element, setText } from "./dom.js";
import { Field } from "./field.js";
import { Report } from "./report.js";

// Has a part of its own; or sends arbitrary requests to ECUs, which is left to vehiclectl.
const LEFT_OUT = [...CODE_ACTIONS, "stop", "query"];

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

export class Actions {
  node;
  #reports = [];

  // `node` is null if there are none.
  constructor(app, device) {
    const offered = device.actions.filter((action) => !action.motion && !LEFT_OUT.includes(action.name));
    this.node = app.mayControl(device.name) && offered.length
      ? element("section", { class: "panel", "aria-labelledby": "actions" }, element("h2", { id: "actions" }, "Actions"),
        offered.map((action) => this.#action(app, device, action)))
      : null;
  }

  close() {
    for (const report of this.#reports) report.close();
  }

  #action(app, device, action) {
    const report = new Report();
    this.#reports.push(report);
    const fields = action.arguments.map((argument) => [argument, new Field(argument, { id: `do-${action.name}-${argument.name}` })]);
    const form = element("form", {
      onsubmit: async (event) => {
        event.preventDefault();
        const given = fields.map(([argument, field]) => [argument.name, field.value]).filter(([, value]) => value !== undefined);
        await report.run(app, device.name, action, Object.fromEntries(given));
        for (const [argument, field] of fields) if (argument.secret) field.input.value = "";
      },
    },
    fields.map(([argument, field]) => element("div", { class: "argument" },
      element("label", { for: field.input.id }, argument.name), field.input, element("p", { class: "help" }, argument.help))),
    element("button", {}, `Run ${action.name}`));
    return element("details", {}, element("summary", {}, element("span", { class: "action" }, action.name), " ",
      element("span", { class: "help" }, action.help)), form, report.node);
  }
}
