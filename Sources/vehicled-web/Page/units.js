// Conversion of the daemon's units for users of imperial ones, as `vehiclectl --units imperial` does.

import { round } from "./format.js";

const CONVERSIONS = {
  "km/h": { unit: "mph", factor: 1 / 1.609344, places: 1 },
  km: { unit: "mi", factor: 1 / 1.609344 },
  "°C": { unit: "°F", factor: 1.8, offset: 32 },
  kPa: { unit: "psi", factor: 0.14503773773 },
  bar: { unit: "psi", factor: 14.503773773 },
  L: { unit: "gal", factor: 1 / 3.785411784 },
  "L/h": { unit: "gal/h", factor: 1 / 3.785411784 },
  Nm: { unit: "lb·ft", factor: 0.737562149277 },
  "g/s": { unit: "lb/min", factor: 60 / 453.59237 },
  "kWh/100km": { unit: "mi/kWh", factor: 100 / 1.609344, isInverse: true },
  "Wh/km": { unit: "Wh/mi", factor: 1.609344 },
  "L/100km": { unit: "mpg", factor: (100 * 3.785411784) / 1.609344, isInverse: true },
};
const KEY = "vehicled.units";

export const system = localStorage.getItem(KEY) === "imperial" ? "imperial" : "metric";

// Stores the choice, and shows the page again in these units.
export function choose(name) {
  localStorage.setItem(KEY, name);
  location.reload();
}

const conversion = (unit) => (system === "imperial" ? CONVERSIONS[unit] : undefined);

export const shownUnit = (unit) => conversion(unit)?.unit ?? unit ?? "";

// Whether numbers in this unit are shown in another one.
export const isConverted = (unit) => conversion(unit) !== undefined;

// The exact number in the shown unit; NaN if it has no equivalent, such as a consumption of 0.
export function exact(number, unit) {
  const to = conversion(unit);
  if (!to) return number;
  return to.isInverse ? (number > 0 ? to.factor / number : NaN) : number * to.factor + (to.offset ?? 0);
}

// The number in the shown unit, rounded to one decimal place, or two if it is small; undefined if it has no equivalent.
export function shown(number, unit) {
  const to = conversion(unit);
  if (!to) return number;
  const converted = exact(number, unit);
  return Number.isFinite(converted) ? round(converted, to.places ?? (Math.abs(converted) < 10 ? 2 : 1)) : undefined;
}

// A number in the shown unit, as the daemon expects it.
export function entered(number, unit) {
  const to = conversion(unit);
  if (!to) return number;
  return round(to.isInverse ? to.factor / number : (number - (to.offset ?? 0)) / to.factor, 6);
}
