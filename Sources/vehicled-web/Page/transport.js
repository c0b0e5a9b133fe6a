// The page's connections to the services. Each WebSocket is one Varlink connection; a text message is one JSON message without the NUL.
// A transport is a function of the name of the service that returns a channel: send(text), close(), and the callbacks onmessage(text) and
// onclose(reason), of which the caller sets both at once.

export function webSocket(service) {
  const address = new URL(`varlink/${service}`, document.baseURI);
  address.protocol = address.protocol.replace("http", "ws");
  const socket = new WebSocket(address);
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
