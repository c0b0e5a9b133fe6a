// What is known of all devices: a Watch on the daemon that reconnects by itself. While it is lost, no value is shown as current.

import { Device } from "./device.js";

const MIN_PAUSE = 250;
const MAX_PAUSE = 4000;
// The daemon sends at least a heartbeat every 10 s. Transports close earlier if it hangs.
const MAX_SILENCE = 25;
// A clock that goes back by more than this, in seconds, was set.
const MIN_STEP = 2;

export class Model {
  devices = new Map();
  // Why the values are not current; null while they are.
  outage = "connecting to vehicled";
  // The latest event of a device.
  event = null;
  // Called after every change.
  onchange = () => {};
  // Called when the connection is lost, before the next attempt; may throw to end the attempts.
  onlost = async () => {};
  // Called when there is a connection again.
  onfound = () => {};
  #client;
  // The server's clock minus the page's, in seconds.
  #offset = Date.now() / 1000 - this.now;
  #heardAt = 0;
  #wake = () => {};

  constructor(client) {
    this.#client = client;
  }

  // The page's clock in seconds, which only ages use.
  get now() {
    return performance.now() / 1000;
  }

  // The server's time in seconds since the Unix epoch.
  get wall() {
    return this.now + this.#offset;
  }

  // The shapes of all devices.
  get shape() {
    return [...this.devices.values()].map((device) => device.shape).join();
  }

  row(reference) {
    const [device, name] = reference.split(".");
    return this.devices.get(device)?.row(name);
  }

  // Follows the daemon until `onlost` throws.
  async run() {
    for (let pause = MIN_PAUSE; ; pause = Math.min(2 * pause, MAX_PAUSE)) {
      try {
        await this.#follow(() => (pause = MIN_PAUSE));
      } catch (error) {
        this.#lose(error.message);
      }
      await this.onlost();
      await new Promise((resolve) => {
        this.#wake = resolve;
        setTimeout(resolve, pause);
      });
    }
  }

  // Tries to connect at once, for example because the page became visible.
  retry() {
    this.#wake();
  }

  // Withdraws values that have outlived their lifetime.
  expire() {
    for (const device of this.devices.values()) {
      for (const row of device.rows) row.expire(this.now, this.wall);
    }
  }

  async #follow(onFirst) {
    for (const schema of (await this.#client.call("Describe")).schemas) this.#device(schema.device).declare(schema);
    const watch = this.#client.stream("Watch", {}, (reply) => {
      this.#heardAt = this.now;
      if (reply.snapshot && this.outage !== null) this.#begin(reply.snapshot, onFirst);
      this.#apply(reply);
      this.onchange();
    });
    this.#heardAt = this.now;
    const watchdog = setInterval(() => {
      if (this.now - this.#heardAt > MAX_SILENCE) watch.close();
    }, 5000);
    try {
      await watch.done;
    } finally {
      clearInterval(watchdog);
    }
    throw new Error("vehicled does not respond");
  }

  #begin(snapshot, onFirst) {
    this.outage = null;
    const names = snapshot.map((device) => device.name);
    for (const name of this.devices.keys()) {
      if (!names.includes(name)) this.devices.delete(name);
    }
    onFirst();
    this.onfound();
  }

  #apply(reply) {
    const now = this.now;
    if (reply.time) this.#synchronise(reply.time, now);
    for (const event of reply.events ?? []) {
      if (event.name === "removed") this.devices.delete(event.device);
      else this.event = event;
    }
    for (const schema of reply.schemas ?? []) this.#device(schema.device).declare(schema);
    for (const snapshot of reply.snapshot ?? []) {
      if (!this.#device(snapshot.name).place(snapshot, now, this.wall)) this.#describe(snapshot.name);
    }
    for (const reading of reply.changes ?? []) this.devices.get(reading.device)?.note(reading, now, this.wall);
  }

  // A device that appeared after the call of Describe.
  async #describe(name) {
    const { schemas } = await this.#client.call("Describe", { device: name }).catch(() => ({ schemas: [] }));
    for (const schema of schemas) this.devices.get(schema.device)?.declare(schema);
    this.onchange();
  }

  // `time`: when the server sent a reply, by its clock.
  #synchronise(time, now) {
    const offset = time / 1e6 - now;
    if (offset < this.#offset - MIN_STEP) this.#forget(now + offset);
    this.#offset = offset;
  }

  // Removes the samples of the future: the clock was set back, and they would be shown instead of new ones.
  #forget(wall) {
    for (const device of this.devices.values()) {
      for (const row of device.rows) row.ring.dropAfter(wall);
    }
  }

  #device(name) {
    if (!this.devices.has(name)) this.devices.set(name, new Device(name));
    return this.devices.get(name);
  }

  #lose(reason) {
    this.outage = `${reason}; connecting again`;
    for (const device of this.devices.values()) {
      for (const row of device.rows) row.withdraw("connection to vehicled lost", this.wall);
    }
    this.onchange();
  }
}
