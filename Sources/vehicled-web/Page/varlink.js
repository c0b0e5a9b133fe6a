// A Varlink client: calls with one reply or many. A connection processes its calls in order, so every call has one to itself while it
// lasts; one idle connection is kept for the next call.

// A failed call. `message` is for users and includes the remedy; `name` is that of the Varlink error, if the service returned one.
class Failure extends Error {
  constructor(message, name = "", parameters = {}) {
    super(message);
    Object.assign(this, { name, parameters });
  }
}

export class Client {
  #open;
  #service;
  #idle = null;

  // `open` is a transport (app.js); the interface has the name of its service.
  constructor(open, service) {
    this.#open = open;
    this.#service = service;
  }

  // Returns the reply. Throws a Failure.
  async call(method, parameters = {}) {
    let result;
    await this.stream(method, parameters, (reply) => (result = reply), { more: false }).done;
    return result;
  }

  // Passes each reply to a function. `done` resolves after the last one; `close` ends the call early, which is not a failure.
  stream(method, parameters, onReply, { more = true } = {}) {
    const channel = this.#idle ?? this.#open(this.#service);
    this.#idle = null;
    let close;
    const done = new Promise((resolve, reject) => {
      channel.onmessage = (text) => {
        const reply = JSON.parse(exactIntegers(text));
        if (reply.error) reject(failure(reply.error, reply.parameters ?? {}));
        else onReply(reply.parameters ?? {});
        if (reply.continues) return;
        // From now on, the channel may belong to another call.
        close = () => {};
        this.#keep(channel);
        resolve();
      };
      channel.onclose = (reason) => reject(new Failure(reason));
      close = () => {
        channel.onmessage = channel.onclose = () => {};
        channel.close();
        resolve();
      };
    });
    channel.send(JSON.stringify({ method: `${this.#service}.${method}`, parameters, more }));
    return { done, close: () => close() };
  }

  #keep(channel) {
    channel.onmessage = () => {};
    channel.onclose = () => (this.#idle = this.#idle === channel ? null : this.#idle);
    if (this.#idle) channel.close();
    else this.#idle = channel;
  }
}

// Adds the digits of integers that JavaScript rounds. No string contains such text, because its quotes are escaped.
function exactIntegers(text) {
  return text.replace(/"int":\s*(-?\d{16,19})(?=\D)/g, (member, digits) =>
    (Number.isSafeInteger(Number(digits)) ? member : `${member},"digits":"${digits}"`));
}

const quoted = (names) => names.map((name) => `"${name}"`).join(", ");

// The messages of the errors in the interfaces, by name.
const MESSAGES = {
  PermissionDenied: (p) => `permission denied: ${p.missing ?? "the session lacks the right"}`,
  NoSuchDevice: (p) => `no such device: "${p.device}"; see the overview`,
  NoSuchProperty: (p) => `no such property: "${p.property}"${p.renamedTo ? `; it is now ${p.renamedTo}` : ""}`,
  NoSuchAction: (p) => `${p.device} has no action "${p.action}"`,
  ReadOnly: (p) => `${p.device}.${p.property} is read-only`,
  OutOfRange: (p) => `${p.property}: ${p.message}`,
  NotConnected: (p) => `${p.device} is not connected: ${p.reason}`,
  Busy: (p) => `${p.device} is driven by ${p.holder}; try again when it is released`,
  LeaseRequired: (p) => `${p.device} moves: use "vehiclectl drive ${p.device}"`,
  LeaseLost: (p) => `the motion lease of ${p.device} was lost: ${p.reason}`,
  Timeout: (p) => `${p.device} did not respond within ${p.milliseconds / 1000} s; check the device`,
  NotRecorded: (p) => `${[p.device, p.property].filter(Boolean).join(".")} has no recorded values; recorded are: ${quoted(p.known)}`,
  NoSuchPeriod: (p) => `no such period: ${p.number}`,
  InvalidArgument: (p) => `${p.argument}: ${p.message}`,
  MethodNotFound: (p) => `the service does not know ${p.method}; update vehicled`,
};

function failure(error, parameters) {
  const name = error.split(".").pop();
  const message = MESSAGES[name]?.(parameters) ?? parameters.message ?? `${error} ${JSON.stringify(parameters)}; update vehicled`;
  return new Failure(message, name, parameters);
}
