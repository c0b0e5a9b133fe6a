// The receivers of one gpsd, and which of them is used: the configured one, or the first one with a fix, for as long as it has one.

struct ReceiverChoice: Sendable {
  private struct Receiver {
    var path: String
    /// The time of its last fix, as reported.
    var time: String?
    /// When its last position expires; nil if it has none.
    var expiry: Instant?
    /// When it last sent a report, with or without a fix.
    var lastReport: Instant?
  }

  /// The path of the configured receiver, or nil for any.
  private let configured: String?
  private let maxAge: Nanoseconds
  private var receivers: [Receiver] = []
  /// The path of the receiver that is used; nil if none has reported.
  private(set) var current: String?

  /// The maximum number of receivers; gpsd's own limit is 6.
  private static let maxCount = 16

  init(_ settings: PositionSettings) { (configured, maxAge) = (settings.receiver, settings.maxAge) }

  var paths: [String] { receivers.map(\.path) }
  /// Whether there is a receiver that may be used.
  var hasUsable: Bool { receivers.contains { isUsable($0.path) } }

  private func isUsable(_ path: String) -> Bool { configured == nil || configured == path }

  /// Replaces the list of receivers. A receiver that was already in the list keeps its state. Returns true if the current one is missing.
  mutating func replace(_ paths: [String]) -> Bool {
    receivers.removeAll { !paths.contains($0.path) }
    for path in paths { _ = add(path) }
    guard let path = current, !paths.contains(path) else { return false }
    current = nil
    return true
  }

  /// Adds a receiver; returns false if it is already in the list, or the list is full.
  mutating func add(_ path: String) -> Bool {
    guard receivers.count < Self.maxCount, !receivers.contains(where: { $0.path == path }) else { return false }
    receivers.append(Receiver(path: path))
    return true
  }

  /// Removes a receiver; returns true if it was the current one.
  mutating func remove(_ path: String) -> Bool {
    receivers.removeAll { $0.path == path }
    guard current == path else { return false }
    current = nil
    return true
  }

  /// The path of the receiver that sent a report. If the report contains none, the only receiver sent it.
  private func path(_ reported: String?) -> String { reported ?? (receivers.count == 1 ? receivers[0].path : "") }

  /// Whether a SKY report is from the current receiver.
  func isCurrent(_ reported: String?) -> Bool { path(reported) == current }

  /// Records a fix, and selects the receiver to use. If the fix is from this receiver, returns when its last position expires (`.min` if it
  /// has none), otherwise nil. A receiver that reports the same time again has no new position, so the expiry does not change.
  mutating func record(_ fix: GPSDFix, at now: Instant) -> Instant? {
    let path = path(fix.receiver)
    guard isUsable(path) else { return nil }
    _ = add(path)
    guard let index = receivers.firstIndex(where: { $0.path == path }) else { return nil }
    if fix.mode == .none {
      receivers[index].expiry = nil
    } else if fix.hasPosition, fix.time == nil || fix.time != receivers[index].time {
      (receivers[index].time, receivers[index].expiry) = (fix.time, now &+ maxAge)
    }
    receivers[index].lastReport = now
    let expiry = receivers[index].expiry ?? .min
    if let used = receivers.first(where: { $0.path == current }) {
      let isSilent = used.lastReport.map { now &- $0 >= maxAge } ?? true
      if isSilent || expiry > now && used.expiry ?? .min <= now { current = path }
    } else {
      current = path
    }
    return current == path ? expiry : nil
  }
}
