// The page as a plugin of Cockpit: connects to the sockets of the services through Cockpit's bridge, which runs as the user who has
// logged in. Login, encryption and rights are therefore those of Cockpit and of the daemon. See "Raw channels" in the Cockpit guide.

import { start } from "./app.js";
import { Client } from "./varlink.js";

const SOCKETS = { "io.vehicled": "/run/vehicled/io.vehicled", "io.vehicled.history": "/run/vehicled-history/io.vehicled.history" };
const PROGRAMS = { "io.vehicled": "vehicled", "io.vehicled.history": "vehicled-history" };

// A transport (see app.js). The bridge passes on the bytes of the socket in pieces of any length.
function channel(service) {
  const raw = window.cockpit.channel({ payload: "stream", unix: SOCKETS[service], binary: true });
  const [encoder, decoder] = [new TextEncoder(), new TextDecoder()];
  const transport = {
    send: (text) => raw.send(encoder.encode(`${text}\0`)),
    close: () => raw.close(),
    onmessage: null,
    onclose: null,
  };
  let rest = "";
  raw.addEventListener("message", (event, bytes) => {
    const messages = (rest + decoder.decode(Uint8Array.from(bytes), { stream: true })).split("\0");
    rest = messages.pop();
    for (const message of messages) transport.onmessage(message);
  });
  raw.addEventListener("close", (event, { problem }) => transport.onclose(reason(problem, service)));
  return transport;
}

function reason(problem, service) {
  const program = PROGRAMS[service];
  if (problem === "not-found") return `${program} is not running; start it: sudo systemctl start ${program}`;
  if (problem === "access-denied") return "permission denied; add yourself to group vehicled (sudo usermod -aG vehicled USER), then log in";
  return `${program} closed the connection${problem ? `: ${problem}` : ""}; see: journalctl -u ${program}`;
}

// There is a history if its socket can be reached; an error that it returns is shown where it matters.
async function openSession() {
  const history = await new Client(channel, "io.vehicled.history").call("Status").then(() => true, (error) => error.name !== "");
  return { history };
}

start({ open: channel, openSession });
