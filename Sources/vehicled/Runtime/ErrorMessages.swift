// Messages for errors of NIO.

import NIOCore
import NIOPosix
import ServiceRuntime

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
