// Messages for errors of the system.

import Glibc

/// The message for an errno, in lower case and without a full stop.
public func errnoMessage(_ code: CInt) -> String {
  switch code {
  case ECONNREFUSED: "connection refused"
  case ETIMEDOUT: "timed out"
  case EHOSTUNREACH, ENETUNREACH: "no route to host: check the network"
  case ECONNRESET: "connection reset"
  case EPIPE: "connection closed"
  case EIO: "input/output error: check that the device is plugged in"
  default: String(cString: strerror(code)).lowercased()
  }
}
