// Tuning of the adapter's timeout. The fast request (the request that is polled at `rate`) is sent `pollsPerTrial` times with each setting:
// the previous setting comes first, then the others from the safest to the fastest. The request has no frame count (the `2` of `0101 2`,
// see FrameCount.swift), because with one the adapter would not wait for its timeout. Settings that lose a response are rejected. Of the
// others, the safest one that is nearly as fast as the fastest is stored with the adapter's name.

/// The settings and their results.
struct TimeoutTuning: Sendable {
  /// The polls with one setting.
  struct Trial: Sendable {
    let timing: ReplyTiming
    private(set) var roundTrips: [Nanoseconds] = []
    private(set) var failures = 0

    init(_ timing: ReplyTiming) { self.timing = timing }

    /// Records the round trip of a poll, or nil if it had no response.
    mutating func add(_ roundTrip: Nanoseconds?) {
      if let roundTrip { roundTrips.append(roundTrip) } else { failures += 1 }
    }

    var isOver: Bool { roundTrips.count + failures >= TimeoutTuning.pollsPerTrial || failures >= TimeoutTuning.maxFailures }
    var median: Nanoseconds { roundTrips.isEmpty ? .max : roundTrips.sorted()[roundTrips.count / 2] }
    var longest: Nanoseconds { roundTrips.max() ?? .max }
  }

  fileprivate static let pollsPerTrial = 24
  fileprivate static let maxFailures = 2
  /// The first polls of a setting may still use the previous timing.
  private static let skippedPolls = 2
  /// The settings from the safest to the fastest. Their timeouts are 205, 205, 102, 102, 49 and 25 ms.
  private static let timings: [ReplyTiming] = [
    .initial, ReplyTiming(adaptive: 2, timeout: 0x32), ReplyTiming(adaptive: 2, timeout: 0x19), ReplyTiming(adaptive: 0, timeout: 0x19),
    ReplyTiming(adaptive: 0, timeout: 0x0C), ReplyTiming(adaptive: 0, timeout: 0x06),
  ]

  let id: CommandID
  /// The setting before the tuning.
  let previous: ReplyTiming
  private(set) var trials: [Trial] = []
  private var untried: [ReplyTiming]
  private var pollsToSkip = skippedPolls

  init(_ id: CommandID, previous: ReplyTiming) {
    (self.id, self.previous) = (id, previous)
    untried = ([previous] + Self.timings.filter { $0 != previous }).reversed()
    beginTrial()
  }

  /// The setting under test, or nil if all settings were tried.
  var timing: ReplyTiming? { trials.last.flatMap { $0.isOver ? nil : $0.timing } }

  /// Begins the trial of the next setting, if one is left.
  private mutating func beginTrial() {
    if let timing = untried.popLast() { trials.append(Trial(timing)) }
    pollsToSkip = Self.skippedPolls
  }

  /// Records the round trip of a poll, or nil if it had no response. Returns true when all polls with the setting under test are done.
  mutating func add(_ roundTrip: Nanoseconds?) -> Bool {
    guard !trials.isEmpty else { return true }
    if roundTrip != nil, pollsToSkip > 0 { pollsToSkip -= 1; return false }
    trials[trials.count - 1].add(roundTrip)
    guard trials[trials.count - 1].isOver else { return false }
    beginTrial()
    return true
  }

  /// The completed fraction of the tuning, 0 to 1.
  var progress: Double { Double(trials.count - 1) / Double(trials.count + untried.count) }

  /// The safest of the settings that lost no response and are within 10 % of the fastest.
  var best: ReplyTiming {
    let lossless = trials.filter { $0.failures == 0 && $0.roundTrips.count >= Self.pollsPerTrial }
    let minMedian = lossless.map(\.median).min() ?? 0
    let order = Self.timings
    let nearlyFastest = lossless.filter { $0.median <= minMedian + minMedian / 10 }
    return nearlyFastest.min { (order.firstIndex(of: $0.timing) ?? 0) < (order.firstIndex(of: $1.timing) ?? 0) }?.timing ?? .initial
  }

  var report: Report {
    let best = best
    let milliseconds = { (time: Nanoseconds) in time == .max ? "" : Value.text(Double(time / 10_000) / 100) }
    let rows = trials.map { trial in
      [
        trial.timing.text, milliseconds(trial.median), milliseconds(trial.longest),
        "\(trial.roundTrips.count) of \(trial.roundTrips.count + trial.failures)",
        [trial.timing == previous ? "before" : "", trial.timing == best ? "now" : ""].filter { !$0.isEmpty }.joined(separator: ", "),
      ]
    }
    let median = { (timing: ReplyTiming) -> String in
      let time = trials.first { $0.timing == timing }?.median ?? .max
      return time == .max ? "no response with \(timing.text)" : "\(milliseconds(time)) ms with \(timing.text)"
    }
    return Report(
      text: "median round trip without a frame count: \(median(previous)) before, \(median(best)) now",
      columns: ["setting", "median ms", "max ms", "answered", ""], rows: rows)
  }
}
