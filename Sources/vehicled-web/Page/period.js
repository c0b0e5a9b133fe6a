// Trips, charges and parked periods as figures with units, as `vehiclectl trips` shows them.

import { fixed, span } from "./format.js";
import { exact, shownUnit } from "./units.js";

export const NO_HISTORY = "vehicled-history is not running; install it, or run: sudo systemctl start vehicled-history";
// Below this consumption in kWh/100km, the vehicle is a longboard or similar, and its energy is shown in Wh.
const SMALL_CONSUMPTION = 5;

export const NOTES = {
  open: "not finished yet",
  derived: "the vehicle provides no charging status: derived from the battery current",
  unrecorded: "derived from the odometer or the state of charge, after a time without data",
  interrupted: "data is missing for more than a minute",
  towed: "the vehicle moved with the ignition off",
  "start-unknown": "recording started within it",
  "clock-step": "ended by a clock step",
  frozen: "values have since been deleted, so it is not recomputed",
};

export const notes = (period) => [...(period.open ? ["open"] : []), ...period.marks];
export const seconds = (period) => (period.end - period.start) / 1e6;

// A figure as text: a number with at most `places` decimals, and its bound if `hasBound`. Empty if the vehicle does not report it.
function figure(quantity, unit, places = 1, { scale = 1, hasBound = false } = {}) {
  if (quantity == null) return "";
  const { value, bound = 0 } = typeof quantity === "number" ? { value: quantity } : quantity;
  const shown = exact(value * scale, unit);
  if (!Number.isFinite(shown)) return "";
  const low = exact((value - bound) * scale, unit);
  const error = Math.abs(shown - low);
  const precision = error > 0 ? Math.max(0, Math.min(places, 1 - Math.floor(Math.log10(error)))) : places;
  const text = `${fixed(shown, precision)}${hasBound && error > 0 ? ` ± ${Number(error.toPrecision(1))}` : ""}`;
  return `${text} ${shownUnit(unit)}`;
}

export function change(start, end, unit, places = 0) {
  if (start == null && end == null) return "";
  const side = (value) => (value == null ? "?" : fixed(exact(value, unit), places));
  return `${side(start)} → ${side(end)} ${shownUnit(unit)}`;
}

// All figures by name, in their order; those that the vehicle does not report are empty.
export function figures(period, options = {}) {
  const isSmall = (period.energyPer100Kilometres?.value ?? Infinity) < SMALL_CONSUMPTION;
  const energy = (quantity) => (isSmall ? figure(quantity, "Wh", 0, { ...options, scale: 1000 }) : figure(quantity, "kWh", 2, options));
  return {
    time: span(seconds(period)),
    distance: figure(period.distance, "km", 1, options),
    energy: energy(period.energy),
    consumption: isSmall ? figure(period.energyPer100Kilometres, "Wh/km", 1, { ...options, scale: 10 })
      : figure(period.energyPer100Kilometres, "kWh/100km", 1, options),
    fuel: figure(period.fuel, "L", 2, options),
    "fuel consumption": figure(period.fuelPer100Kilometres, "L/100km", 1, options),
    charged: energy(period.charged),
    "state of charge": change(period.startStateOfCharge, period.endStateOfCharge, "%"),
    regenerated: energy(period.regenerated),
    "while stationary": energy(period.standingEnergy),
    "mean speed": figure(period.meanSpeed, "km/h", 0),
    "maximum speed": figure(period.maximumSpeed, "km/h", 0),
    "mean power": figure(period.meanPower, "kW"),
    "maximum power": figure(period.maximumPower, "kW"),
    "charging time": period.chargingTime == null ? "" : span(period.chargingTime),
    type: period.chargeType?.toUpperCase() ?? "",
    driven: period.drivenTime == null ? "" : span(period.drivenTime),
    stationary: period.standingTime == null ? "" : span(period.standingTime),
    "without data": period.unknownTime ? span(period.unknownTime) : "",
    odometer: change(period.startOdometer, period.endOdometer, "km"),
    "fuel level": change(period.startFuelLevel, period.endFuelLevel, "%"),
    battery: change(period.startBatteryTemperature, period.endBatteryTemperature, "°C"),
    outdoors: change(period.startOutdoorTemperature, period.endOutdoorTemperature, "°C"),
  };
}
