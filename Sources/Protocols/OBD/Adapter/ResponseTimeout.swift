// The adapter's timeout for responses: the default one, the one of an ECU that reports response pending, or a tuned one, which is stored with
// the adapter's name and valid for adapters of that name only.

struct ResponseTimeout: Sendable {
  static let key = "timing"
  /// Prompt responses until the long timeout is no longer needed.
  private static let maxPromptResponses = 5

  /// The timing for the ECU of the fast request.
  private(set) var usual = ReplyTiming.initial
  /// The ECU of the fast request reports response pending: the long timeout is used.
  private(set) var isLong = false
  /// Consecutive responses that did not need the long timeout.
  private var promptResponses = 0
  private var tuning: TimeoutTuning?
  private var stored = ""

  var isTuning: Bool { tuning != nil }
  /// The fast request may carry a frame count, which avoids the wait.
  var countsFrames: Bool { !isLong && !isTuning }

  mutating func restore(_ bytes: [UInt8]?) { stored = String(decoding: bytes ?? [], as: UTF8.self) }

  mutating func linkCameUp() { isLong = false }

  /// The stored timing is valid for an adapter of this name, which setup has just read.
  mutating func recall(for adapter: String?) {
    let parts = stored.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, let adaptive = Int(parts[0]), (0...2).contains(adaptive), let timeout = UInt8(parts[1]), timeout > 0,
      parts[2] == adapter ?? ""
    else { return usual = .initial }
    usual = ReplyTiming(adaptive: adaptive, timeout: timeout)
  }

  /// Returns to the default: a tuned timeout may be too short for other ECUs. Returns false if it is in use, or being tuned.
  mutating func useDefault() -> Bool {
    guard tuning == nil, usual != .initial else { return false }
    usual = .initial
    return true
  }

  /// All candidates were tried: the tuned timeout may have been too short for them.
  mutating func alternate(for adapter: String?) {
    if usual == .initial { recall(for: adapter) } else { usual = .initial }
  }

  /// Responses repeatedly come after the adapter's timeout.
  mutating func lengthen() {
    if !isLong { (isLong, promptResponses) = (true, 0) }
  }

  /// An ECU that responds promptly for a while no longer needs the long timeout.
  mutating func answered(isPrompt: Bool) {
    guard isLong else { return }
    promptResponses = isPrompt ? promptResponses + 1 : 0
    if promptResponses >= Self.maxPromptResponses { isLong = false }
  }

  // MARK: Tuning

  /// Starts tuning for a caller.
  mutating func tune(_ id: CommandID, for adapter: String?, _ effects: inout Effects) {
    guard tuning == nil else {
      return effects.append(.complete(id, .failure(.refused(code: .busy, "tuning is already running; wait until it is done"))))
    }
    tuning = TimeoutTuning(id, before: usual)
    followTuning(for: adapter, &effects)
  }

  /// The setting under test, without a frame count.
  private mutating func followTuning(for adapter: String?, _ effects: inout Effects) {
    guard let tuning else { return }
    if let timing = tuning.timing {
      usual = timing
      effects.append(.progress(tuning.id, Report(text: "trying \(timing.text)", progress: tuning.progress)))
    } else {
      usual = tuning.best
      stored = usual == .initial ? "" : "\(usual.adaptive) \(usual.timeout) \(adapter ?? "")"
      effects.append(.store(key: Self.key, Array(stored.utf8)))
      effects.append(.complete(tuning.id, .success(tuning.report)))
      self.tuning = nil
    }
  }

  /// Takes the round trip of a poll; nil: no response.
  mutating func polled(_ roundTrip: Nanoseconds?, for adapter: String?, _ effects: inout Effects) {
    if tuning?.add(roundTrip) ?? false { followTuning(for: adapter, &effects) }
  }

  /// The caller has disconnected.
  mutating func cancelTuning(_ id: CommandID) {
    guard let tuning, tuning.id == id else { return }
    (usual, self.tuning) = (tuning.before, nil)
  }

  /// Ends tuning with an error.
  mutating func endTuning(_ error: CommandError, _ effects: inout Effects) {
    guard let tuning else { return }
    cancelTuning(tuning.id)
    effects.append(.complete(tuning.id, .failure(error)))
  }
}
