// The session with vehicled-web: exchanges the token in the address for a cookie, and reads the rights of the session.

// Returns `control`, the devices that the session may control (without it they are unknown, and the daemon decides); `withheld`, those that
// it may control after signing in again; `history`, whether there is a history service; and `kiosk`, whether to start with large gauges. Throws if there is no session.
export async function openSession() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    history.replaceState(null, "", location.pathname);
    const reply = await request("POST", { token });
    if (!reply.ok) throw new SignedOut((await reply.text()).trim() || "the link is not valid any more");
  }
  const reply = await request("GET");
  if (!reply.ok) throw new SignedOut("this browser has no session");
  return reply.json();
}

export const closeSession = () => request("DELETE");

export class SignedOut extends Error {}

const request = (method, body) =>
  fetch("session", {
    method, credentials: "same-origin", cache: "no-store",
    ...(body && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
  });
