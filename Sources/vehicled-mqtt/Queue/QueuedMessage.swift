// A message of the send queue with what the queue needs to know about it. No I/O.

struct QueuedMessage: Equatable, Sendable {
  /// How a message is kept until the broker has acknowledged it.
  enum Kind: Sendable {
    /// Only the newest of a topic counts.
    case state
    /// Kept in order.
    case event
    /// Kept in order, independently of the events: a fleet may store them with another program, which does not run at the moment.
    case batch
  }

  /// Its number, in the order of queueing.
  var id: Int64
  /// When it was queued, in µs of the queue's clock.
  var created: Int64
  var message: OutgoingMessage
  /// Whether the disk has it.
  var isStored = false

  var kind: Kind { message.isRetained ? .state : Topics.isBatch(message.topic) ? .batch : .event }

  /// The message as to be sent now, with the rest of its expiry; nil if it has expired.
  func message(at now: Int64) -> OutgoingMessage? {
    guard let expiry = message.expiry else { return message }
    let rest = Int64(expiry) - max(0, now - created) / 1_000_000
    guard rest > 0 else { return nil }
    var message = message
    message.expiry = UInt32(rest)
    return message
  }

  /// The memory that it takes, in bytes.
  var size: Int { message.topic.utf8.count + message.payload.count + 32 }
}
