// Messages for errors of the system and of NIO.

import Glibc
import NIOCore
import NIOPosix

/// The message for an errno, in lower case and without a full stop.
func errnoMessage(_ code: CInt) -> String {
  switch code {
  case ECONNREFUSED: "connection refused"
  case ETIMEDOUT: "timed out"
  case EHOSTUNREACH, ENETUNREACH: "no route to host: check the network"
  case ECONNRESET: "connection reset"
  case EPIPE: "connection closed"
  case EIO: "input/output error: check that it is plugged in"
  default: String(cString: strerror(code)).lowercased()
  }
}

/// The message for an error of NIO.
func errorMessage(_ error: any Error) -> String {
  switch error {
  case let error as IOError: errnoMessage(error.errnoCode)
  case let error as NIOConnectionError:
    if let first = error.connectionErrors.first {
      errorMessage(first.error)
    } else {
      "unknown host: check the name"
    }
  case ChannelError.connectTimeout: "timed out"
  case is ChannelError: "connection closed"
  default: "\(error)"
  }
}
