// Recorded values from vehicled-history as traces of plots.

import { color } from "./charts.js";
import { BandTrace } from "./trace.js";
import { exact, shownUnit } from "./units.js";

const MAX_POINTS = 2000;

// One trace for each reference (`device.property`), with an interval for each pixel column, and why others have none. Times in seconds
// since the Unix epoch.
export async function bands(history, references, start, end, columns) {
  const points = Math.min(MAX_POINTS, Math.max(100, Math.round(columns)));
  const results = await Promise.allSettled(references.map(async (reference, index) => {
    const [device, property] = reference.split(".");
    const reply = await history.call("Plot", { device, property, start: Math.round(start * 1e6), end: Math.round(end * 1e6), points });
    return new BandTrace(reference, shownUnit(reply.unit), color(index), reply, (number) => exact(number, reply.unit));
  }));
  return {
    traces: results.filter((result) => result.status === "fulfilled").map((result) => result.value),
    problems: results.flatMap(({ reason }, index) => (reason ? [problem(references[index], reason.message)] : [])),
  };
}

const problem = (reference, message) => (message.startsWith(`${reference} `) ? message : `${reference}: ${message}`);

// The positions of all devices that have any between two times: a list of runs of [latitude, longitude], which gaps separate.
export async function tracks(history, start, end) {
  const { series } = await history.call("Series");
  const recorded = new Set(series.map((one) => `${one.device}.${one.property}`));
  const isPosition = (device) => recorded.has(`${device}.latitude`) && recorded.has(`${device}.longitude`);
  const devices = [...new Set(series.map((one) => one.device))].filter(isPosition);
  const runs = await Promise.all(devices.map((device) => track(history, device, start, end)));
  return runs.flat().filter((run) => run.length > 1);
}

async function track(history, device, start, end) {
  const runs = [[]];
  const names = new Map();
  const point = {};
  await history.stream("Samples", { device, properties: ["latitude", "longitude"], start: Math.round(start * 1e6),
    end: Math.round(end * 1e6) }, (reply) => {
    for (const one of reply.series ?? []) names.set(one.id, one.property);
    for (const { series, time, value } of reply.samples ?? []) {
      const number = value?.float ?? value?.int;
      const name = names.get(series);
      if (number == null) {
        if (runs.at(-1).length) runs.push([]);
        delete point[name];
      } else if (time >= start * 1e6) {
        point[name] = number;
        const last = runs.at(-1).at(-1);
        // Both coordinates of a fix have the same time.
        if (point.latitude == null || point.longitude == null) continue;
        if (last?.time === time) [last.latitude, last.longitude] = [point.latitude, point.longitude];
        else runs.at(-1).push({ time, latitude: point.latitude, longitude: point.longitude });
      }
    }
  }).done;
  return runs;
}
