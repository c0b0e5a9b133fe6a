// A keep-alive message at an interval that the car requests, until the car disables it. The car as built never requests it.
// Source: ConnectionTest in TCP.py and in the app's TCPConnection.m.

struct CarConnectionTest: Sendable {
  private static let intervals = 0.1...60.0
  private(set) var interval: Nanoseconds?
  private(set) var due: Instant?

  mutating func begin(seconds: Double, at now: Instant) {
    let bounded = min(max(seconds, Self.intervals.lowerBound), Self.intervals.upperBound)
    interval = Int64((bounded * 1e9).rounded())
    due = now
  }

  mutating func sent(at now: Instant) { due = interval.map { now &+ $0 } }
}

extension CarMachine {
  /// When the next keep-alive is due; nil: none, or one is queued already.
  var testDue: Instant? {
    guard queue.hasRoom, !queue.commands.contains(where: { $0.purpose == .connectionTest }) else { return nil }
    return test.due
  }

  mutating func testConnection(at now: Instant) {
    guard let due = testDue, now >= due else { return }
    test.sent(at: now)
    _ = queue.add(CarQueuedCommand(.connectionTest, [.connectionTest]))
  }

  mutating func hearTest(_ body: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard body.count <= 64, let seconds = CarNumber.read(String(decoding: body, as: UTF8.self)), seconds > 0 else {
      return note("ignored: keep-alive interval of \"\(CarText.clean(body[...], limit: 40))\" s", at: now, &effects)
    }
    test.begin(seconds: seconds, at: now)
  }
}
