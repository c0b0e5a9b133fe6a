// What an adapter has still to print, and when each piece is due. One send at a time leaves it; what is due at one instant
// leaves together. It knows nothing of what the bytes say.
// Facts: 8N1 takes ten bit times a byte.

import Protocols

/// The printing side of an adapter.
struct SendQueue: Sendable {
  private var pieces: [(due: Instant, bytes: [UInt8])] = []
  private var lastID: SendID = 0
  private let byteTime: Nanoseconds
  /// A send is with the link, which has not taken it yet.
  private(set) var isSending = false
  /// When the last byte so far has left.
  private(set) var end = Instant.min
  /// Bytes that wait.
  private(set) var waiting = 0

  /// A line of this speed in bits a second; nil: bytes take no time.
  init(baud: Int?) {
    byteTime = baud.map { 10 * .second / Nanoseconds(max(1, $0)) } ?? 0
  }

  /// When there is something to send, unless the link must take something first.
  var nextDue: Instant? { isSending ? nil : pieces.first?.due }
  var isEmpty: Bool { pieces.isEmpty }

  /// How long a line of this length takes.
  func duration(of count: Int) -> Nanoseconds { byteTime &* Nanoseconds(count) }

  /// Queues bytes that are known at this instant.
  mutating func add(_ bytes: [UInt8], at instant: Instant) {
    guard !bytes.isEmpty else { return }
    end = max(instant, end) &+ duration(of: bytes.count)
    pieces.append((end, bytes))
    waiting += bytes.count
  }

  /// Forgets what has not been sent.
  mutating func clear(at now: Instant) {
    pieces.removeAll()
    waiting = 0
    end = now
  }

  /// Sends what is due, if the link is free.
  mutating func flush(at now: Instant, _ effects: inout Effects) {
    guard !isSending, let first = pieces.first, first.due <= now else { return }
    let due = pieces.prefix { $0.due <= now }
    let bytes = due.count == 1 ? first.bytes : due.flatMap(\.bytes)
    pieces.removeFirst(due.count)
    waiting -= bytes.count
    lastID &+= 1
    isSending = true
    effects.send(.main, bytes, lastID)
  }

  /// The link took, or lost, the send it had.
  mutating func sent(_ id: SendID) {
    if id == lastID { isSending = false }
  }

  /// The link is another one: whatever was under way is gone.
  mutating func reset(at now: Instant) {
    clear(at: now)
    isSending = false
    lastID &+= 1
  }
}
