// The write in flight. A link has at most one. A link that does not accept the write in time is reset.

struct CarWrite: Sendable {
  enum Purpose: Sendable, Equatable {
    case stop(CarOutboundMessage), command(CarOutboundMessage), tilt(CarTilt), livenessCheck, disconnect
  }

  private static let timeout: Nanoseconds = .second

  private var current: (id: SendID, purpose: Purpose, sent: Instant)?
  private var lastID: SendID = 0

  var isIdle: Bool { current == nil }
  var deadline: Instant? { current.map { $0.sent &+ Self.timeout } }
  func isInFlight(_ id: SendID) -> Bool { current?.id == id }
  func isOverdue(at now: Instant) -> Bool { current.map { now &- $0.sent >= Self.timeout } ?? false }

  /// A new number for a write.
  mutating func drawID() -> SendID {
    lastID &+= 1
    return lastID
  }

  /// Starts a write, which is passed to the link; returns its number.
  mutating func begin(_ purpose: Purpose, at now: Instant) -> SendID {
    let id = drawID()
    current = (id, purpose, now)
    return id
  }

  /// Ends the write `id` and returns its purpose; nil if it is not the write in flight.
  mutating func end(_ id: SendID) -> Purpose? {
    guard let current, current.id == id else { return nil }
    self.current = nil
    return current.purpose
  }

  /// Discards the write in flight, because the link is lost.
  mutating func reset() { current = nil }
}
