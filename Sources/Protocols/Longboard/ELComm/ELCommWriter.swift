// Sends bytes, one write at a time, and records when they were sent.

struct ELCommWriter: Sendable {
  /// A write in flight.
  struct Write: Sendable {
    let id: SendID
    let sent: Instant
    /// The number of the buzzer change that a response to a documented board carries.
    let change: Int?
  }

  private static let timeout: Nanoseconds = 5 * .second

  private var write: Write?
  private(set) var lastID: SendID = 0
  /// Why the last write failed.
  private(set) var failure: String?
  /// When the last byte or response was sent; `.min` on a new link.
  private(set) var lastSent: Instant = .min

  var isFree: Bool { write == nil }
  /// Whether nothing has been sent on this link yet.
  var isFirst: Bool { lastSent == .min }
  /// When the write in flight times out.
  var deadline: Instant? { write.map { $0.sent &+ Self.timeout } }

  mutating func send(_ bytes: [UInt8], change: Int? = nil, at now: Instant, _ effects: inout Effects) {
    lastID &+= 1
    write = Write(id: lastID, sent: now, change: change)
    lastSent = now
    effects.send(.main, bytes, lastID)
  }

  /// Ends the write `id` and returns it; nil if it was not in flight.
  mutating func end(_ id: SendID) -> Write? {
    guard let write, write.id == id else { return nil }
    self.write = nil
    return write
  }

  /// Sets why the last write failed; nil if it succeeded.
  mutating func setFailure(_ failure: String?) { self.failure = failure }

  /// Discards the write in flight, for a new or lost link.
  mutating func reset() { (write, failure) = (nil, nil) }

  /// Treats the next message as the first one on the link, which is always off.
  mutating func startOver() { lastSent = .min }
}
