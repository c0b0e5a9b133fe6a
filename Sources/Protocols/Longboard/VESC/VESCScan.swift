// A scan of the CAN bus for other VESCs: one request that takes seconds, with a progress report once per second.

struct VESCScan: Sendable, Equatable {
  /// The timeout of a scan, during which the VESC tries the IDs one after the other.
  static let timeout: Nanoseconds = 5 * .second

  private enum State: Sendable, Equatable {
    case queued
    /// The scan was requested at `since`; `reported` is the time of the last progress report, in seconds since then.
    case running(since: Instant, reported: Int)
  }

  /// The command that waits for the result; nil if its caller has disconnected.
  private(set) var commandID: CommandID?
  private var state = State.queued

  init(commandID: CommandID) { self.commandID = commandID }

  /// When the next progress report is due.
  var progressDue: Instant? {
    guard commandID != nil, case .running(let since, let reported) = state else { return nil }
    return since &+ Int64(reported + 1) * .second
  }

  mutating func callerDisconnected() { commandID = nil }

  mutating func start(at now: Instant) { state = .running(since: now, reported: 0) }

  mutating func reportProgress(at now: Instant, _ effects: inout Effects) {
    guard let commandID, case .running(let since, _) = state else { return }
    let seconds = Int((now &- since) / .second)
    state = .running(since: since, reported: seconds)
    let fraction = Double(seconds) / Double(Self.timeout / .second)
    effects.append(.progress(commandID, Report(text: "scanning the CAN bus: \(seconds) s", progress: fraction)))
  }

  /// The report of the CAN IDs that responded.
  static func report(_ payload: ArraySlice<UInt8>) -> Report {
    let rows = payload.prefix(255).map { [String($0)] }
    return Report(text: rows.isEmpty ? "no other VESC on the CAN bus" : nil, columns: ["can-id"], rows: rows)
  }
}
