// Bytes to send, with the time when each piece is due. One send is in flight at a time; pieces that are due together are combined.
// A byte takes ten bit times (8N1).

import Protocols

/// The send queue of a simulated device.
struct SendQueue: Sendable {
  private var pieces: [(due: Instant, bytes: [UInt8])] = []
  private var lastID: SendID = 0
  private let byteTime: Nanoseconds
  /// Whether a send is in flight.
  private(set) var isSending = false
  /// The time at which the transmission of the last queued byte ends.
  private(set) var transmissionEnd = Instant.min
  /// The number of queued bytes.
  private(set) var queuedBytes = 0

  /// Creates a queue for a line with this baud rate; nil means unlimited.
  init(baud: Int?) {
    byteTime = baud.map { 10 * .second / Nanoseconds(max(1, $0)) } ?? 0
  }

  /// The time at which the next piece is due, or nil if there is none or a send is in flight.
  var nextDue: Instant? { isSending ? nil : pieces.first?.due }
  var isEmpty: Bool { pieces.isEmpty }

  /// The transmission time of `count` bytes.
  func duration(of count: Int) -> Nanoseconds { byteTime &* Nanoseconds(count) }

  /// Queues bytes whose transmission starts at `instant` or later.
  mutating func add(_ bytes: [UInt8], at instant: Instant) {
    guard !bytes.isEmpty else { return }
    transmissionEnd = max(instant, transmissionEnd) &+ duration(of: bytes.count)
    pieces.append((transmissionEnd, bytes))
    queuedBytes += bytes.count
  }

  /// Discards unsent bytes.
  mutating func clear(at now: Instant) {
    pieces.removeAll()
    queuedBytes = 0
    transmissionEnd = now
  }

  /// Sends the pieces that are due, unless a send is in flight.
  mutating func flush(at now: Instant, _ effects: inout Effects) {
    guard !isSending, let first = pieces.first, first.due <= now else { return }
    let due = pieces.prefix { $0.due <= now }
    let bytes = due.count == 1 ? first.bytes : due.flatMap(\.bytes)
    pieces.removeFirst(due.count)
    queuedBytes -= bytes.count
    lastID &+= 1
    isSending = true
    effects.send(.main, bytes, lastID)
  }

  /// Completes the send in flight, successful or not.
  mutating func sent(_ id: SendID) {
    if id == lastID { isSending = false }
  }

  /// Discards everything, including the send in flight, for a new link.
  mutating func reset(at now: Instant) {
    clear(at: now)
    isSending = false
    lastID &+= 1
  }
}
