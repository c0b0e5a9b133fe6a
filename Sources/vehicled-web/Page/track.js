// The track of a trip as a drawing without a map: lines from fix to fix, start and end, and a scale.

import { element } from "./dom.js";
import { exact, shownUnit } from "./units.js";

const SIZE = 400;
const MARGIN = 24;
const KILOMETRES_PER_DEGREE = 111.195;

// `runs`: lists of { latitude, longitude } that gaps separate, of which at least one has two points.
export function trackDrawing(runs) {
  const points = runs.flat();
  const middle = (points.reduce((sum, point) => sum + point.latitude, 0) / points.length) * (Math.PI / 180);
  // An equirectangular projection in km, which is exact enough for one trip.
  const east = (point) => point.longitude * KILOMETRES_PER_DEGREE * Math.cos(middle);
  const north = (point) => point.latitude * KILOMETRES_PER_DEGREE;
  const [left, right] = ends(points.map(east));
  const [bottom, top] = ends(points.map(north));
  const scale = (SIZE - 2 * MARGIN) / Math.max(right - left, top - bottom, 0.05);
  const x = (point) => (SIZE - (right - left) * scale) / 2 + (east(point) - left) * scale;
  const y = (point) => (SIZE - (top - bottom) * scale) / 2 + (top - north(point)) * scale;
  const step = (point, index) => `${index ? "L" : "M"}${x(point).toFixed(1)} ${y(point).toFixed(1)}`;
  const path = runs.flatMap((run) => run.map(step)).join("");
  const [length, label] = scaleBar(scale);
  return element("svg", { class: "track", viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img",
    "aria-label": "Track of the trip, north at the top" },
    element("path", { class: "way", d: path }),
    element("circle", { class: "start", cx: x(points[0]), cy: y(points[0]), r: 6 }),
    element("circle", { class: "end", cx: x(points.at(-1)), cy: y(points.at(-1)), r: 6 }),
    element("path", { class: "scale", d: `M12 ${SIZE - 14}v6h${length}v-6` }),
    element("text", { x: 18, y: SIZE - 14 }, label),
    element("path", { class: "north", d: `M${SIZE - 16} 28l5 -16l5 16l-5 -4z`, transform: "translate(-5 0)" }),
    element("text", { x: SIZE - 20, y: 44 }, "N"));
}

// The lowest and the highest number.
const ends = (numbers) => numbers.reduce(([low, high], number) => [Math.min(low, number), Math.max(high, number)], [Infinity, -Infinity]);

// The length of the bar in pixels, and the round distance that it stands for. `scale` is in pixels per km.
function scaleBar(scale) {
  const longest = exact(120 / scale, "km");
  const power = 10 ** Math.floor(Math.log10(longest));
  const distance = [5, 2, 1].find((factor) => factor * power <= longest) * power;
  const isMetres = shownUnit("km") === "km" && distance < 1;
  return [(120 * distance) / longest, isMetres ? `${Math.round(distance * 1000)} m` : `${distance} ${shownUnit("km")}`];
}
