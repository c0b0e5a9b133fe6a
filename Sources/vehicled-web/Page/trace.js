// The lines of plots: a Ring of live samples, or intervals of the history with their minimum and maximum. Both have extent, draw, at and
// samples. `area` maps times (s) and values to pixels: x(time), y(value).

// Live samples, drawn as steps. Each pixel column has its first, lowest, highest and last value, so that no peak is lost.
export class LiveTrace {
  // The time of the last sample that was drawn.
  #drawn = -Infinity;
  #ring;

  // `ring`: the samples; those of the row, to which new ones are added, if it is undefined.
  constructor(row, color, ring = row.ring) {
    this.#ring = ring;
    this.row = row;
    this.color = color;
    this.label = row.reference;
    this.unit = row.unit;
  }

  // The range of the values between two times; undefined if there are none.
  extent(start, end) {
    const ring = this.#ring;
    let [low, high] = [Infinity, -Infinity];
    for (let index = Math.max(0, ring.index(start)); index < ring.length && ring.time(index) <= end; index += 1) {
      const value = ring.value(index);
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (low > high) return undefined;
    const ends = [this.row.plotted(low), this.row.plotted(high)].filter(Number.isFinite);
    return ends.length ? [Math.min(...ends), Math.max(...ends)] : undefined;
  }

  // The time of the first sample since the last call; Infinity if there is none, -Infinity in the first call.
  takeChange() {
    const [ring, drawn] = [this.#ring, this.#drawn];
    const index = ring.index(drawn) + 1;
    if (ring.length) this.#drawn = ring.time(ring.length - 1);
    return drawn === -Infinity ? drawn : index < ring.length ? ring.time(index) : Infinity;
  }

  draw(context, area, start, end) {
    const ring = this.#ring;
    context.strokeStyle = this.color;
    context.beginPath();
    let last = NaN;
    const first = Math.max(0, ring.index(start));
    for (let index = first; index < ring.length && ring.time(index) <= end; ) {
      const x = area.x(Math.max(start, ring.time(index)));
      let [low, high] = [Infinity, -Infinity];
      const before = last;
      const opening = area.y(this.row.plotted(ring.value(index)));
      // All samples within this pixel column.
      do {
        last = area.y(this.row.plotted(ring.value(index)));
        if (last < low) low = last;
        if (last > high) high = last;
        index += 1;
      } while (index < ring.length && ring.time(index) <= end && area.x(ring.time(index)) < x + 1);
      if (before === before) context.lineTo(x, before);
      if (opening === opening) context[before === before ? "lineTo" : "moveTo"](x, opening);
      if (low < high) {
        context.lineTo(x, low);
        context.lineTo(x, high);
      }
      if (last === last) context.lineTo(x, last);
    }
    // The last value is valid until now.
    if (last === last) context.lineTo(area.x(end), last);
    context.stroke();
  }

  // The value at a time as text; empty if there was none.
  at(time, text) {
    const index = this.#ring.index(time);
    const value = index < 0 ? NaN : this.row.plotted(this.#ring.value(index));
    return Number.isNaN(value) ? "" : text(value);
  }

  // The samples between two times, for export: [time in s, value].
  *samples(start, end) {
    const ring = this.#ring;
    for (let index = Math.max(0, ring.index(start)); index < ring.length && ring.time(index) <= end; index += 1) {
      yield [ring.time(index), this.row.plotted(ring.value(index))];
    }
  }
}

// Intervals of a reply of Plot: a band from the minimum to the maximum, and the mean as a line. An interval without values is a gap.
export class BandTrace {
  #start;
  #width;
  #points;

  // `convert` converts a recorded number to the shown unit.
  constructor(label, unit, color, reply, convert) {
    Object.assign(this, { label, unit, color });
    this.#start = reply.start / 1e6;
    this.#width = reply.width / 1e6;
    this.#points = reply.points.map(({ index, minimum, maximum, mean }) => {
      const ends = [convert(minimum), convert(maximum)];
      return { index, low: Math.min(...ends), high: Math.max(...ends), mean: convert(mean) };
    });
  }

  #time(point) {
    return this.#start + (point.index + 0.5) * this.#width;
  }

  extent() {
    const known = this.#points.filter((point) => Number.isFinite(point.low) && Number.isFinite(point.high));
    if (!known.length) return undefined;
    return known.reduce(([low, high], point) => [Math.min(low, point.low), Math.max(high, point.high)], [Infinity, -Infinity]);
  }

  draw(context, area) {
    for (const run of this.#runs()) {
      const half = run.length === 1 ? this.#width / 2 : 0;
      const upper = run.flatMap((point) => [[this.#time(point) - half, point.high],
        ...(half ? [[this.#time(point) + half, point.high]] : [])]);
      const lower = run.flatMap((point) => [[this.#time(point) - half, point.low],
        ...(half ? [[this.#time(point) + half, point.low]] : [])]);
      context.fillStyle = this.color;
      context.globalAlpha = 0.25;
      context.beginPath();
      for (const [time, value] of [...upper, ...lower.reverse()]) context.lineTo(area.x(time), area.y(value));
      context.fill();
      context.globalAlpha = 1;
      context.strokeStyle = this.color;
      context.beginPath();
      for (const point of run) {
        context.lineTo(area.x(this.#time(point) - half), area.y(point.mean));
        if (half) context.lineTo(area.x(this.#time(point) + half), area.y(point.mean));
      }
      context.stroke();
    }
  }

  // Intervals that follow each other without a gap.
  *#runs() {
    let run = [];
    for (const point of this.#points) {
      if (run.length && point.index !== run.at(-1).index + 1) {
        yield run;
        run = [];
      }
      run.push(point);
    }
    if (run.length) yield run;
  }

  at(time, text) {
    const index = Math.floor((time - this.#start) / this.#width);
    const point = this.#points.find((point) => point.index === index);
    if (!point) return "";
    return point.low === point.high ? text(point.mean) : `${text(point.low)} – ${text(point.high)}, mean ${text(point.mean)}`;
  }

  *samples() {
    for (const point of this.#points) yield [this.#time(point), point.mean];
  }
}
