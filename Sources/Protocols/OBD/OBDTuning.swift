// Tuning of the adapter's timeout: the fast request is sent without its frame count (which would avoid the wait) a number of times with
// each setting, the safest first. Settings that lose a response are rejected; of the others the first that is nearly as fast as the fastest
// is stored with the adapter's name.

/// The settings and their results.
struct Tuning: Sendable {
  struct Trial: Sendable {
    let timing: ReplyTiming
    var roundTrips: [Nanoseconds] = []
    var failures = 0

    var isOver: Bool { roundTrips.count + failures >= Tuning.polls || failures >= Tuning.maxFailures }
    var median: Nanoseconds { roundTrips.isEmpty ? .max : roundTrips.sorted()[roundTrips.count / 2] }
    var longest: Nanoseconds { roundTrips.max() ?? .max }
  }

  fileprivate static let polls = 24
  fileprivate static let maxFailures = 2
  /// The first polls of a setting may still use the previous timing.
  private static let skipped = 2
  /// From the safest to the fastest: 205, 102, 49 and 25 ms at most.
  private static let timings: [ReplyTiming] = [
    .initial, ReplyTiming(adaptive: 2, timeout: 0x32), ReplyTiming(adaptive: 2, timeout: 0x19), ReplyTiming(adaptive: 0, timeout: 0x19),
    ReplyTiming(adaptive: 0, timeout: 0x0C), ReplyTiming(adaptive: 0, timeout: 0x06),
  ]

  let id: CommandID
  /// The setting before.
  let before: ReplyTiming
  private(set) var trials: [Trial] = []
  private var rest: [ReplyTiming]
  private var toSkip = skipped

  init(_ id: CommandID, before: ReplyTiming) {
    (self.id, self.before) = (id, before)
    rest = ([before] + Self.timings.filter { $0 != before }).reversed()
    next()
  }

  /// The current setting; nil: all were tried.
  var timing: ReplyTiming? { trials.last.flatMap { $0.isOver ? nil : $0.timing } }

  private mutating func next() {
    if let timing = rest.popLast() { trials.append(Trial(timing: timing)) }
    toSkip = Self.skipped
  }

  /// Takes the round trip of a poll (nil: no response). Returns true when a setting is done.
  mutating func add(_ roundTrip: Nanoseconds?) -> Bool {
    guard !trials.isEmpty else { return true }
    if roundTrip != nil, toSkip > 0 { toSkip -= 1; return false }
    if let roundTrip { trials[trials.count - 1].roundTrips.append(roundTrip) } else { trials[trials.count - 1].failures += 1 }
    guard trials[trials.count - 1].isOver else { return false }
    next()
    return true
  }

  var progress: Double { Double(trials.count - 1) / Double(trials.count + rest.count) }

  /// The first setting without a loss within 10 % of the fastest.
  var best: ReplyTiming {
    let whole = trials.filter { $0.failures == 0 && $0.roundTrips.count >= Self.polls }
    let quickest = whole.map(\.median).min() ?? 0
    let order = Self.timings
    let good = whole.filter { $0.median <= quickest + quickest / 10 }
    return good.min { (order.firstIndex(of: $0.timing) ?? 0) < (order.firstIndex(of: $1.timing) ?? 0) }?.timing ?? .initial
  }

  var report: Report {
    let best = best
    let milliseconds = { (time: Nanoseconds) in time == .max ? "" : Value.text(Double(time / 10_000) / 100) }
    let rows = trials.map { trial in
      [
        trial.timing.text, milliseconds(trial.median), milliseconds(trial.longest),
        "\(trial.roundTrips.count) of \(trial.roundTrips.count + trial.failures)",
        [trial.timing == before ? "before" : "", trial.timing == best ? "now" : ""].filter { !$0.isEmpty }.joined(separator: ", "),
      ]
    }
    let (old, new) = (trials.first { $0.timing == before }?.median ?? .max, trials.first { $0.timing == best }?.median ?? .max)
    return Report(
      text:
        "a response without a frame count took \(milliseconds(old)) ms before (\(before.text)) and takes \(milliseconds(new)) ms now (\(best.text))",
      columns: ["setting", "median ms", "max ms", "answered", ""], rows: rows)
  }
}

extension OBDMachine {
  private static let key = "timing"

  /// Starts tuning for a caller.
  mutating func tune(_ id: CommandID, _ effects: inout Effects) {
    switch state {
    case .down(let reason), .resting(_, let reason): return effects.append(.complete(id, .failure(.notConnected(reason))))
    default: break
    }
    guard errors.isSettled, !isProbing, !timings.isPagePatient, !request.isDiscovery else {
      return effects.append(
        .complete(id, .failure(.refused(code: "not-polling", "the vehicle does not respond; switch it on"))))
    }
    guard tuning == nil else {
      return effects.append(.complete(id, .failure(.refused(code: "busy", "tuning is already running; wait until it is done"))))
    }
    tuning = Tuning(id, before: timings.usual)
    followTuning(&effects)
  }

  /// The setting under test, without a frame count.
  private mutating func followTuning(_ effects: inout Effects) {
    guard let tuning else { return }
    if let timing = tuning.timing {
      timings.usual = timing
      effects.append(.progress(tuning.id, Report(text: "trying \(timing.text)", progress: tuning.progress)))
    } else {
      timings.usual = tuning.best
      keepTiming(&effects)
      effects.append(.complete(tuning.id, .success(tuning.report)))
      self.tuning = nil
    }
    writePollBytes()
  }

  /// Takes the round trip of a poll; nil: no response.
  mutating func tuningPolled(_ roundTrip: Nanoseconds?, _ effects: inout Effects) {
    if tuning?.add(roundTrip) ?? false { followTuning(&effects) }
  }

  /// Ends tuning with an error.
  mutating func endTuning(_ error: CommandError?, _ effects: inout Effects) {
    guard let tuning else { return }
    timings.usual = tuning.before
    self.tuning = nil
    writePollBytes()
    if let error { effects.append(.complete(tuning.id, .failure(error))) }
  }

  private mutating func keepTiming(_ effects: inout Effects) {
    keptTiming = timings.usual == .initial ? "" : "\(timings.usual.adaptive) \(timings.usual.timeout) \(traits.name ?? "")"
    effects.append(.store(key: Self.key, Array(keptTiming.utf8)))
  }

  /// The stored timing is valid for an adapter of this name, which setup has just read.
  mutating func recallTiming() {
    let parts = keptTiming.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, let adaptive = Int(parts[0]), (0...2).contains(adaptive), let timeout = UInt8(parts[1]), timeout > 0,
      parts[2] == traits.name ?? ""
    else { return timings.usual = .initial }
    timings.usual = ReplyTiming(adaptive: adaptive, timeout: timeout)
  }
}
