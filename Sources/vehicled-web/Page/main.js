// The page as vehicled-web serves it: its session, and WebSockets to the services. The session is a cookie and a key; a browser sends the
// cookie to all ports of this host, the key only to this server.

import { start } from "./app.js";

const KEY = "vehicled.key";
const key = () => localStorage.getItem(KEY) ?? "";
const tokenInAddress = () => new URLSearchParams(location.hash.slice(1)).get("token");

// Signs in when a link is opened in the tab that shows the page already: then only the part of the address after # changes. Returns whether
// there was one.
function followLink() {
  const isLink = Boolean(tokenInAddress());
  if (isLink) location.reload();
  return isLink;
}

// Exchanges a token in the address, and returns the rights.
async function openSession() {
  const token = tokenInAddress();
  let problem = "this browser has no session";
  if (token) {
    history.replaceState(null, "", location.pathname);
    const reply = await request("POST", JSON.stringify({ token }));
    if (reply.ok) localStorage.setItem(KEY, (await reply.json()).key);
    else problem = (await reply.text()).trim() || "the link is not valid any more";
  }
  // After a link that was used, the browser may still have the session that it opened.
  const reply = await request("GET");
  if (!reply.ok) throw Object.assign(new Error(problem), { isSignedOut: true });
  return reply.json();
}

const closeSession = () => request("DELETE").finally(() => localStorage.removeItem(KEY));

const request = (method, body) =>
  fetch("session", { method, body, credentials: "same-origin", cache: "no-store", headers: { "Vehicled-Key": key() } });

// Each WebSocket is one Varlink connection; a text message is one JSON message. Its handshake takes the key as a subprotocol.
function open(service) {
  const address = new URL(`varlink/${service}`, document.baseURI);
  address.protocol = address.protocol.replace("http", "ws");
  const socket = new WebSocket(address, ["vehicled", `key-${key()}`]);
  const waiting = [];
  const channel = {
    send: (text) => (socket.readyState === WebSocket.CONNECTING ? waiting.push(text) : socket.send(text)),
    close: () => socket.close(),
    onmessage: null,
    onclose: null,
  };
  socket.onopen = () => waiting.splice(0).forEach((text) => socket.send(text));
  socket.onmessage = (event) => channel.onmessage(event.data);
  socket.onclose = (event) => channel.onclose(event.reason
    || "cannot connect to vehicled-web: it is not running, or the session has ended");
  return channel;
}

start({ open, openSession, closeSession, followLink });
