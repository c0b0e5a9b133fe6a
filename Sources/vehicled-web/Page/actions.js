// The actions of a device with inputs for their arguments. Actions that move the device are not offered.

import { element } from "./dom.js";
import { CODE_ACTIONS } from "./codes.js";
import { Field } from "./field.js";
import { Report } from "./report.js";

// Has a part of its own; or sends arbitrary requests to ECUs, which is left to vehiclectl.
const LEFT_OUT = [...CODE_ACTIONS, "stop", "query"];

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
