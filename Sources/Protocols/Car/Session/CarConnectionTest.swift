// A keep-alive message at an interval that the car requests, until the car disables it. An as-built car never requests it.
// Source: ConnectionTest in TCP.py and in the app's TCPConnection.m.

struct CarConnectionTest: Sendable {
  /// The accepted intervals, in seconds.
  private static let intervals = 0.1...60.0
  private var interval: Nanoseconds?
  /// When the next message is due; nil unless the car has requested keep-alives.
  private(set) var due: Instant?

  /// Starts sending a message every `seconds`, or stops if `seconds` is nil.
  mutating func setInterval(seconds: Double?, at now: Instant) {
    guard let seconds else { return self = CarConnectionTest() }
    let bounded = min(max(seconds, Self.intervals.lowerBound), Self.intervals.upperBound)
    interval = Int64((bounded * 1e9).rounded())
    due = now
  }

  /// Schedules the next message after one was queued.
  mutating func messageQueued(at now: Instant) { due = interval.map { now &+ $0 } }
}
