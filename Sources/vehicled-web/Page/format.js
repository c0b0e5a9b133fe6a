// Numbers, durations and values as text, as vehiclectl prints them: SI units and a decimal point in every locale.

// Rounds half away from zero; never returns -0.
export function round(number, places = 0) {
  const scale = 10 ** places;
  return (Math.sign(number) * Math.round(Math.abs(number) * scale)) / scale + 0;
}

// A number for a view: five significant digits, but at least these decimal places if the number has any.
export function rounded(number, least = 1) {
  const size = Math.abs(number);
  if (!(size >= 1e-6 && size < 1e9)) return String(number + 0);
  return String(round(number, Math.min(9, Math.max(least, 4 - Math.floor(Math.log10(size))))));
}

// A number with at most one decimal place, and none from 1000 on, for headlines.
export function brief(number) {
  return String(round(number, Math.abs(number) >= 1000 ? 0 : 1));
}

export const fixed = (number, places) => round(number, places).toFixed(places);

// A duration in seconds: `0.2 s`, `45 s`, `3 min`, `5 h`, `12 d`.
export function duration(seconds) {
  if (seconds < 9.95) return `${fixed(Math.max(0, seconds), 1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return seconds < 1e9 ? `${Math.floor(seconds / 86_400)} d` : "years";
}

// A span of time: `45 s`, `42 min`, `1 h 02 min`, `3 d 4 h`.
export function span(seconds) {
  const whole = Math.round(Math.max(0, seconds));
  const minutes = Math.floor((whole + 30) / 60);
  if (whole < 60) return `${whole} s`;
  if (whole < 3570) return `${minutes} min`;
  if (whole < 172_800) return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3600)} h`;
}

// The age of a value in seconds; empty while it is current.
export function age(seconds) {
  if (seconds == null || seconds < 2) return "";
  return seconds < 9.5 ? `${Math.round(seconds)} s` : duration(seconds);
}

// A size in bytes: `512 B`, `3.4 kB`, `1.2 GB`.
export function size(bytes) {
  const units = ["B", "kB", "MB", "GB"];
  let unit = 0;
  for (; bytes >= 999.5 && unit < units.length - 1; unit += 1) bytes /= 1000;
  return `${fixed(bytes, unit === 0 || bytes >= 99.95 ? 0 : 1)} ${units[unit]}`;
}

// A value of the contract as a JavaScript value; undefined if there is none.
export const unwrap = (value) => value && (value.bool ?? value.int ?? value.float ?? value.string ?? value.list);

// A JavaScript value as text: `on`, `off`, `3.82; 3.81`.
export function text(value) {
  if (value == null) return "";
  if (typeof value === "boolean") return value ? "on" : "off";
  if (typeof value === "number") return rounded(value);
  return Array.isArray(value) ? value.join("; ") : value;
}

// The range of a property or its argument: `0 to 100`, `from 0`.
export function range(low, high) {
  if (low != null && high != null) return `${low} to ${high}`;
  return low != null ? `from ${low}` : high != null ? `to ${high}` : "";
}

// A time in ms since the Unix epoch in the browser's time zone: `Mon 23 Nov 08:12`.
export function dateAndTime(milliseconds) {
  const time = new Date(milliseconds);
  return `${DAYS[time.getDay()]} ${date(time)} ${clock(milliseconds, false)}`;
}

export const date = (time) => `${time.getDate()} ${MONTHS[time.getMonth()]}${isThisYear(time) ? "" : ` ${time.getFullYear()}`}`;

// A time of day: `08:12:45`, or `08:12`.
export function clock(milliseconds, hasSeconds = true) {
  const time = new Date(milliseconds);
  const parts = [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) => String(part).padStart(2, "0"));
  return parts.slice(0, hasSeconds ? 3 : 2).join(":");
}

const isThisYear = (time) => time.getFullYear() === new Date().getFullYear();
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
