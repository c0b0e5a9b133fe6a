// The page as a plugin of Cockpit: connects to the sockets of the services through Cockpit's bridge, which runs as the user who has
// logged in. Login, encryption and rights are therefore those of Cockpit and of the daemon. See "Raw channels" in the Cockpit guide.

import { start } from "./app.js";
import { Client } from "./varlink.js";

const SOCKETS = { "io.vehicled": "/run/vehicled/io.vehicled", "io.vehicled.history": "/run/vehicled-history/io.vehicled.history" };
const PROGRAMS = { "io.vehicled": "vehicled", "io.vehicled.history": "vehicled-history" };

// Without a reply of the daemon for CALL_AFTER seconds, it is called; for HUNG_AFTER seconds, it counts as hung (as in DaemonMonitor.swift).
const CALL_AFTER = 3;
const HUNG_AFTER = 5;

// The connections to the daemon, and the seconds in which this page has run without a reply.
const connections = new Set();
let silence = 0;

const connect = (service) => window.cockpit.channel({ payload: "stream", unix: SOCKETS[service], binary: true });
const encoded = (text) => new TextEncoder().encode(`${text}\0`);

// A transport (see app.js). The bridge passes on the bytes of the socket in pieces of any length.
function channel(service) {
  const raw = connect(service);
  const isDaemon = service === "io.vehicled";
  if (isDaemon) connections.add(raw);
  const decoder = new TextDecoder();
  const transport = {
    send: (text) => raw.send(encoded(text)),
    close: () => raw.close(),
    onmessage: null,
    onclose: null,
  };
  let rest = "";
  raw.addEventListener("message", (event, bytes) => {
    if (isDaemon) silence = 0;
    const messages = (rest + decoder.decode(Uint8Array.from(bytes), { stream: true })).split("\0");
    rest = messages.pop();
    for (const message of messages) transport.onmessage(message);
  });
  raw.addEventListener("close", (event, { problem }) => {
    connections.delete(raw);
    transport.onclose(reason(problem, service));
  });
  return transport;
}

// Closes the connections to a daemon that hangs; called once a second.
function checkDaemon() {
  silence = connections.size ? silence + 1 : 0;
  if (silence === CALL_AFTER) {
    const raw = connect("io.vehicled");
    raw.addEventListener("message", () => {
      silence = 0;
      raw.close();
    });
    raw.send(encoded('{"method":"org.varlink.service.GetInfo"}'));
  } else if (silence >= HUNG_AFTER) {
    for (const raw of [...connections]) raw.close("timeout");
  }
}

function reason(problem, service) {
  const program = PROGRAMS[service];
  if (problem === "not-found") return `${program} is not running; start it: sudo systemctl start ${program}`;
  if (problem === "access-denied") return "permission denied; add yourself to group vehicled (sudo usermod -aG vehicled USER), then log in";
  if (problem === "timeout") return `${program} does not respond; see: systemctl status ${program}`;
  return `${program} closed the connection${problem ? `: ${problem}` : ""}; see: journalctl -u ${program}`;
}

// There is a history if its socket can be reached; an error that it returns is shown where it matters.
async function openSession() {
  const history = await new Client(channel, "io.vehicled.history").call("Status").then(() => true, (error) => error.name !== "");
  return { history };
}

start({ open: channel, openSession });
setInterval(checkDaemon, 1000);
