// A listening socket whose owner decides from moment to moment whether anybody is let in; the others wait with the kernel.

import Glibc
import Protocols

final class Acceptor: EventSource {
  /// Negative: nobody listens.
  var file: Int32 = -1
  /// Somebody would be let in now.
  var isOpen: () -> Bool = { true }
  var came: (Int32) -> Void = { _ in }

  override var descriptor: Int32 { file }
  override var interest: Int16 { Int16(wake == nil && isOpen() ? POLLIN : 0) }
  override func woken(at now: Instant) { wake = nil }

  override func ready(_ events: Int16, at now: Instant) {
    guard isOpen() else { return }
    guard let client = TCPPort.accept(file) else {
      // Without free descriptors it pauses.
      if errno != EAGAIN { wake = now + 100 * .millisecond }
      return
    }
    came(client)
  }
}
