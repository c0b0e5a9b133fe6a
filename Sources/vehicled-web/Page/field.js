// Inputs for values by their type, range and choices: for writable properties and arguments of actions.

import { element } from "./dom.js";
import { range } from "./format.js";
import { entered, isConverted, shown, shownUnit } from "./units.js";

// An input for `declaration` (type, unit, minimum, maximum, choices, secret, optional), with the label `name`.
export class Field {
  #declaration;
  input;

  constructor(declaration, attributes = {}) {
    this.#declaration = declaration;
    const { type, choices, secret, optional, minimum, maximum } = declaration;
    const common = { ...attributes, required: !optional && type !== "string" };
    if (choices || type === "bool") {
      const options = choices ?? ["on", "off"];
      this.input = element("select", common, element("option", { value: "" }, optional ? "not set" : "choose"),
        options.map((option) => element("option", { value: option }, option)));
    } else if (type === "int" || type === "float") {
      const limits = { min: this.#shown(minimum), max: this.#shown(maximum) };
      // A larger integer would be rounded.
      const exact = type === "int" ? { min: limits.min ?? -Number.MAX_SAFE_INTEGER, max: limits.max ?? Number.MAX_SAFE_INTEGER } : limits;
      this.input = element("input", { ...common, type: "number", step: type === "int" && this.#unit === declaration.unit ? "1" : "any",
        inputmode: "decimal", placeholder: range(limits.min, limits.max), ...exact });
    } else {
      this.input = element("input", { ...common, type: secret ? "password" : "text", autocomplete: "off", placeholder: type === "list"
        ? "separated by commas" : "" });
    }
  }

  // The shown unit and the range: `km/h, 0 to 100`.
  get hint() {
    const { minimum, maximum } = this.#declaration;
    return [this.#unit, range(this.#shown(minimum), this.#shown(maximum))].filter(Boolean).join(", ");
  }

  get #unit() {
    return this.#declaration.unit && shownUnit(this.#declaration.unit);
  }

  #shown(number) {
    return number == null ? undefined : shown(number, this.#declaration.unit);
  }

  // Shows a value, unless the user is changing the field.
  show(text) {
    if (document.activeElement !== this.input && this.input.value !== text) this.input.value = text;
  }

  // An entry of a list, as the daemon expects it.
  #entered(entry) {
    const { unit } = this.#declaration;
    return isConverted(unit) && Number.isFinite(Number(entry)) ? String(entered(Number(entry), unit)) : entry;
  }

  // The entered value as in the contract; undefined if the field is empty and may be.
  get value() {
    const text = this.input.value;
    const { type, optional, unit } = this.#declaration;
    if (text === "" && (optional || type !== "string")) return undefined;
    switch (type) {
      case "bool": return { bool: text === "on" };
      case "int": return { int: Math.round(entered(Number(text), unit)) };
      case "float": return { float: entered(Number(text), unit) };
      case "list": return { list: text.split(",").map((entry) => entry.trim()).filter(Boolean).map((entry) => this.#entered(entry)) };
      default: return { string: text };
    }
  }
}
