// The recent samples of one number: times in seconds since the Unix epoch and values, NaN where there was none. A sample is valid until
// the next one. The memory is bounded by the span and by the capacity.

const MAX_CAPACITY = 1 << 15;

export class Ring {
  #times = new Float64Array(32);
  #values = new Float64Array(32);
  #start = 0;
  #length = 0;
  // The age in seconds at which samples are dropped.
  span = 60;

  get length() {
    return this.#length;
  }

  time(index) {
    return this.#times[(this.#start + index) & (this.#times.length - 1)];
  }

  value(index) {
    return this.#values[(this.#start + index) & (this.#times.length - 1)];
  }

  // Adds a sample. One with the time of the last one replaces it; an older one is ignored.
  push(time, value) {
    const last = this.#length ? this.time(this.#length - 1) : -Infinity;
    if (time < last) return;
    if (time === last) this.#length -= 1;
    // The last sample before the span stays: it is valid at its start.
    while (this.#length > 1 && this.time(1) < time - this.span) this.#drop();
    if (this.#length === this.#times.length) {
      if (this.#length < MAX_CAPACITY) this.#grow();
      else this.#drop();
    }
    const slot = (this.#start + this.#length) & (this.#times.length - 1);
    this.#times[slot] = time;
    this.#values[slot] = value;
    this.#length += 1;
  }

  copy() {
    const copy = new Ring();
    [copy.#times, copy.#values, copy.#start, copy.#length] = [this.#times.slice(), this.#values.slice(), this.#start, this.#length];
    return copy;
  }

  // Removes the samples after a time.
  dropAfter(time) {
    this.#length = this.index(time) + 1;
  }

  // The index of the last sample at or before this time; -1 if all are later.
  index(time) {
    let [low, high] = [0, this.#length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time(middle) <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  #drop() {
    this.#start = (this.#start + 1) & (this.#times.length - 1);
    this.#length -= 1;
  }

  #grow() {
    const [times, values] = [new Float64Array(2 * this.#length), new Float64Array(2 * this.#length)];
    for (let index = 0; index < this.#length; index += 1) {
      times[index] = this.time(index);
      values[index] = this.value(index);
    }
    [this.#times, this.#values, this.#start] = [times, values, 0];
  }
}
