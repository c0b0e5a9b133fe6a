// A listening socket that accepts clients only while its owner allows it; other clients wait in the kernel's backlog. Without free
// file descriptors it pauses.

import Glibc
import Protocols

final class Acceptor: EventSource {
  /// The listening socket; negative when there is none.
  var file: Int32 = -1
  /// Whether a client may be accepted now.
  var isOpen: () -> Bool = { true }
  var came: (Int32) -> Void = { _ in }

  override var descriptor: Int32 { file }
  override var interest: Int16 { Int16(wake == nil && isOpen() ? POLLIN : 0) }
  override func woken(at now: Instant) { wake = nil }

  override func ready(_ events: Int16, at now: Instant) {
    while isOpen() {
      guard let client = TCPPort.accept(file) else {
        if errno != EAGAIN { wake = now + 100 * .millisecond }
        return
      }
      came(client)
    }
  }
}
