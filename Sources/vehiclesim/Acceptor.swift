// A listening socket that accepts clients while its owner allows it. Until then, clients wait in the kernel's backlog. If no file
// descriptor is free, it tries again after 100 ms.

import Glibc
import Protocols
import ServiceRuntime

final class Acceptor: EventSource {
  /// The listening socket; negative when there is none.
  var file: Int32 = -1
  /// Returns whether a client may be accepted now.
  var canAccept: () -> Bool = { true }
  /// Called with the socket of each client.
  var accepted: (Int32) -> Void = { _ in }

  override var descriptor: Int32 { file }
  override var interest: Int16 { Int16(wake == nil && canAccept() ? POLLIN : 0) }
  override func timerFired(at now: Instant) { wake = nil }

  override func ready(_ events: Int16, at now: Instant) {
    while canAccept() {
      guard let client = TCPPort.accept(file) else {
        if errno != EAGAIN { wake = now + 100 * .millisecond }
        return
      }
      accepted(client)
    }
  }
}
