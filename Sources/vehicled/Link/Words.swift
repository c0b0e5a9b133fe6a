// Errors of the system in a person's words. The text of an error is made here, once.

import Glibc
import NIOCore
import NIOPosix

/// What the system says about an errno, without a capital letter or a full stop.
func systemWords(_ code: CInt) -> String {
  switch code {
  case ECONNREFUSED: "connection refused"
  case ETIMEDOUT: "no answer"
  case EHOSTUNREACH, ENETUNREACH: "no route to it: is the network up?"
  case ECONNRESET: "connection reset"
  case EPIPE: "connection closed"
  case EIO: "input/output error: was it unplugged?"
  default: String(cString: strerror(code)).lowercased()
  }
}

/// An error of NIO in a person's words.
func plainWords(_ error: any Error) -> String {
  switch error {
  case let error as IOError: systemWords(error.errnoCode)
  case let error as NIOConnectionError:
    if let first = error.connectionErrors.first {
      plainWords(first.error)
    } else {
      "its name is not known: check the spelling"
    }
  case ChannelError.connectTimeout: "no answer"
  case is ChannelError: "connection closed"
  default: "\(error)"
  }
}
