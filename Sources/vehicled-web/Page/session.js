// The session with vehicled-web: exchanges the token in the address for a cookie, and reads the rights of the session.

const tokenInAddress = () => new URLSearchParams(location.hash.slice(1)).get("token");

// Signs in when a link is opened in the tab that shows the page already: then only the part of the address after # changes. Returns whether
// there was one.
export function followLink() {
  const isLink = Boolean(tokenInAddress());
  if (isLink) location.reload();
  return isLink;
}

// Returns `control`, the devices that the session may control (without it they are unknown, and the daemon decides); `withheld`, those
// that it may control after signing in again; `history`, whether there is a history service; and `kiosk`, whether to start with large
// gauges. Throws if there is no session.
export async function openSession() {
  const token = tokenInAddress();
  let problem = "this browser has no session";
  if (token) {
    history.replaceState(null, "", location.pathname);
    const reply = await request("POST", { token });
    if (!reply.ok) problem = (await reply.text()).trim() || "the link is not valid any more";
  }
  // After a link that was used, the browser may still have the session that it opened.
  const reply = await request("GET");
  if (!reply.ok) throw new SignedOut(problem);
  return reply.json();
}

export const closeSession = () => request("DELETE");

export class SignedOut extends Error {}

const request = (method, body) =>
  fetch("session", {
    method, credentials: "same-origin", cache: "no-store",
    ...(body && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
  });
