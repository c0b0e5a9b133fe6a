// The order of calls and replies on one connection: Varlink replies in the order of the calls, so the error of a refused call waits for the
// replies of the calls before it. Replies are counted, not parsed: each call has one, except a call with `more`, whose last reply is the one
// without `continues`. Until then, the connection accepts no further call.

import NIOCore

struct CallQueue {
  /// The maximum number of calls without a reply; then no more are read.
  static let maxLength = 64

  private enum Entry {
    case forwarded(streams: Bool)
    case refused(ByteBuffer)
  }

  private var entries: [Entry] = []

  /// Whether a call with `more` has further replies. It is the last call.
  var isStreaming: Bool { if case .forwarded(streams: true)? = entries.last { true } else { false } }

  var isFull: Bool { entries.count >= Self.maxLength }

  /// Adds a call that the service replies to.
  mutating func forwarded(streams: Bool) {
    entries.append(.forwarded(streams: streams))
  }

  /// Adds a call with the error that replies to it. Returns the errors that can be sent now.
  mutating func refused(_ error: ByteBuffer) -> [ByteBuffer] {
    entries.append(.refused(error))
    return nextErrors()
  }

  /// The service has replied once. `continues`: another reply to the same call follows. Returns the errors that can be sent now.
  mutating func replied(continues: Bool) -> [ByteBuffer] {
    guard !continues, case .forwarded? = entries.first else { return [] }
    entries.removeFirst()
    return nextErrors()
  }

  private mutating func nextErrors() -> [ByteBuffer] {
    var errors: [ByteBuffer] = []
    while case .refused(let error)? = entries.first {
      errors.append(error)
      entries.removeFirst()
    }
    return errors
  }
}
