// Scales of plots: round limits, ticks, and labels.

import { clock, date, round } from "./format.js";

// Round limits and the step between ticks for values from `low` to `high`, with about `count` steps.
export function niceScale(low, high, count) {
  if (!(low <= high)) return { low: 0, high: 1, step: 1 };
  if (high - low < Math.max(Math.abs(low), Math.abs(high)) * 1e-6 || high === low) {
    // A steady value is in the middle of a range in which noise does not look like a change.
    const margin = Math.max(Math.abs(high) * 0.05, 0.5);
    [low, high] = [low - margin, high + margin];
  }
  const step = niceStep((high - low) / Math.max(1, count));
  return { low: Math.floor(low / step + 1e-9) * step, high: Math.ceil(high / step - 1e-9) * step, step };
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999) * power;
}

export function* ticks({ low, high, step }) {
  for (let index = 0; low + index * step <= high + step / 2; index += 1) yield low + index * step;
}

// A tick with as many places as its step requires.
export const tickText = (value, step) => round(value, 9).toFixed(Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9))));

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;
const TIME_STEPS = [
  1, 2, 5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR,
  DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY, 364 * DAY,
];

// The ticks of a time axis in seconds since the Unix epoch, at round local times, with their labels.
export function timeTicks(start, end, count) {
  const step = TIME_STEPS.find((step) => (end - start) / step <= count) ?? TIME_STEPS.at(-1);
  const zone = -new Date(start * 1000).getTimezoneOffset() * MINUTE;
  const found = [];
  for (let time = Math.ceil((start + zone) / step) * step - zone; time <= end; time += step) {
    found.push({ time, label: step >= DAY ? date(new Date(time * 1000)) : clock(time * 1000, step < MINUTE) });
  }
  return found;
}

// The ticks of a live plot, counted from its end, so that they stand still: `-40 s`, `-5 min`, `now`.
export function ageTicks(start, end, count) {
  const step = TIME_STEPS.find((step) => (end - start) / step <= count);
  const unit = step >= MINUTE ? [MINUTE, "min"] : [1, "s"];
  const found = [];
  for (let age = 0; age <= end - start + 1e-6; age += step) {
    found.push({ time: end - age, label: age === 0 ? "now" : `-${age / unit[0]} ${unit[1]}` });
  }
  return found;
}
