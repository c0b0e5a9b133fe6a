// The page as vehicled-web serves it.

import { start } from "./app.js";
import { closeSession, openSession } from "./session.js";
import { webSocket } from "./transport.js";

start({ open: webSocket, openSession, closeSession });
