// The adapter's timeout for responses: the default, a long one for an ECU that reports "response pending" (7F xx 78), or a tuned one. The
// tuned timeout is stored with the adapter's name and is valid for adapters of that name only.

struct ResponseTimeout: Sendable {
  static let key = "timing"
  /// The long timeout ends after this many consecutive responses that were not preceded by "response pending".
  private static let responsesUntilShort = 5

  /// The timing for the ECU of the fast request (the request that is polled at the device's rate) while the long timeout is not used.
  private(set) var timing = ReplyTiming.initial
  /// Whether the long timeout is used, because the ECU of the fast request reports "response pending".
  private(set) var isLong = false
  /// The number of consecutive responses that were not preceded by "response pending".
  private var responsesWithoutPending = 0
  private var tuning: TimeoutTuning?
  /// The tuned timing as stored, with the adapter's name; empty if there is none.
  private var stored = ""

  var isTuning: Bool { tuning != nil }
  /// Whether the fast request may carry a frame count, so that the adapter need not wait for its timeout.
  var allowsFrameCount: Bool { !isLong && !isTuning }

  mutating func restore(_ bytes: [UInt8]?) { stored = String(decoding: bytes ?? [], as: UTF8.self) }

  mutating func linkCameUp() { isLong = false }

  /// Uses the stored timing if it belongs to an adapter of this name, otherwise the default.
  mutating func useStored(for adapter: String?) {
    let parts = stored.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, let adaptive = Int(parts[0]), (0...2).contains(adaptive), let timeout = UInt8(parts[1]), timeout > 0,
      parts[2] == adapter ?? ""
    else { return timing = .initial }
    timing = ReplyTiming(adaptive: adaptive, timeout: timeout)
  }

  /// Uses the default timing, because a tuned one may be too short for other ECUs. Returns false if the default is already in use, or if
  /// tuning is running.
  mutating func useDefault() -> Bool {
    guard tuning == nil, timing != .initial else { return false }
    timing = .initial
    return true
  }

  /// Switches between the default and the tuned timeout after all protocol candidates have failed: the tuned one may have been too short.
  mutating func alternate(for adapter: String?) {
    if timing == .initial { useStored(for: adapter) } else { timing = .initial }
  }

  /// Uses the long timeout, because responses repeatedly come after the adapter's timeout.
  mutating func lengthen() {
    if !isLong { (isLong, responsesWithoutPending) = (true, 0) }
  }

  /// Counts a response. Several responses in a row that were not preceded by "response pending" end the long timeout.
  mutating func recordResponse(withoutPending: Bool) {
    guard isLong else { return }
    responsesWithoutPending = withoutPending ? responsesWithoutPending + 1 : 0
    if responsesWithoutPending >= Self.responsesUntilShort { isLong = false }
  }

  // MARK: Tuning

  /// Starts tuning for a client.
  mutating func tune(_ id: CommandID, for adapter: String?, _ effects: inout Effects) {
    guard tuning == nil else {
      return effects.append(.complete(id, .failure(.refused(code: .busy, "tuning is already running; wait until it is done"))))
    }
    tuning = TimeoutTuning(id, previous: timing)
    continueTuning(for: adapter, &effects)
  }

  /// Uses the next setting under test, or stores the best one and ends tuning.
  private mutating func continueTuning(for adapter: String?, _ effects: inout Effects) {
    guard let tuning else { return }
    if let timing = tuning.timing {
      self.timing = timing
      effects.append(.progress(tuning.id, Report(text: "trying \(timing.text)", progress: tuning.progress)))
    } else {
      timing = tuning.best
      stored = timing == .initial ? "" : "\(timing.adaptive) \(timing.timeout) \(adapter ?? "")"
      effects.append(.store(key: Self.key, Array(stored.utf8)))
      effects.append(.complete(tuning.id, .success(tuning.report)))
      self.tuning = nil
    }
  }

  /// Records the round trip of a poll, or nil if it had no response. Has no effect unless tuning is running.
  mutating func recordPoll(_ roundTrip: Nanoseconds?, for adapter: String?, _ effects: inout Effects) {
    if tuning?.add(roundTrip) ?? false { continueTuning(for: adapter, &effects) }
  }

  /// Ends tuning because its client has disconnected.
  mutating func cancelTuning(_ id: CommandID) {
    guard let tuning, tuning.id == id else { return }
    (timing, self.tuning) = (tuning.previous, nil)
  }

  /// Ends tuning with an error.
  mutating func endTuning(_ error: CommandError, _ effects: inout Effects) {
    guard let tuning else { return }
    cancelTuning(tuning.id)
    effects.append(.complete(tuning.id, .failure(error)))
  }
}
