// How the machine finds out which dialect a board speaks, where the configuration does not say. A message alone tells
// nothing: it may be the first of a board that begins, or the answer of a board as built to a byte of an earlier daemon, or
// to a notice that an HM-10 printed into its line. So the machine waits until the board is quiet, sends two characters in one
// write, and counts: a board as built answers each of them in a pass of its own, a documented one takes them as one number.
// Facts: ProjectTORQ.ino (one byte a pass, at most 185 ms long; a 64-byte buffer); the seed for `documented`.

extension ELCommMachine {
  /// Two characters that are out.
  struct Probe {
    /// When the link took them.
    var sent: Instant
    /// Runs of bytes that were no message, before it.
    let badRuns: Int
    var messages = 0
  }

  /// Longer than two passes of a board as built without its VESC, shorter than a documented board waits for its answer.
  static let probeTime: Nanoseconds = 500 * .millisecond
  /// A board as built with more to answer does so within this.
  private static let quiet: Nanoseconds = 500 * .millisecond
  /// What a board as built can owe: a full buffer. One that sends more without being asked is no such board.
  private static let maxOwed = 64
  /// Unanswered probes in a row after which the board is silent.
  private static let maxProbes = 4

  /// Nothing is sent until the board is quiet.
  mutating func drain(at now: Instant) {
    unasked = 0
    state = .draining(until: now &+ Self.quiet)
  }

  mutating func heardDetecting(at now: Instant, _ effects: inout Effects) {
    if case .probing(var probe) = state {
      probe.messages += 1
      return state = .probing(probe)
    }
    unasked += 1
    if unasked > Self.maxOwed { find(.documented, at: now, &effects) } else { state = .draining(until: now &+ Self.quiet) }
  }

  /// Sends buzzer off as a documented board's number, as two characters, none of which is on for a board as built.
  mutating func probe(at now: Instant, _ effects: inout Effects) {
    send(settings.probe, wish: nil, at: now, &effects)
    state = .probing(Probe(sent: now, badRuns: decoder.badRuns))
  }

  /// The time of a probe is over.
  mutating func judge(_ last: Probe, at now: Instant, _ effects: inout Effects) {
    flush(&effects)
    guard last.messages > 0 else {
      missed(at: now, &effects)
      if isSilent(after: Self.maxProbes, at: now) {
        fallSilent(at: now, &effects)
        misses = 0
      }
      isProbeOpen = true
      return probe(at: now, &effects)
    }
    // The answers may be those of an earlier probe.
    if isProbeOpen {
      isProbeOpen = false
      return drain(at: now)
    }
    // A damaged message is an answer as well.
    let answers = last.messages + decoder.badRuns &- last.badRuns
    let told = answers > 1 ? Dialect.asBuilt : .documented
    if told == guess { return find(told, at: now, &effects) }
    guess = told
    if now &- lastHeard < Self.quiet / 2 { drain(at: now) } else { probe(at: now, &effects) }
  }

  private mutating func find(_ found: Dialect, at now: Instant, _ effects: inout Effects) {
    dialect = found
    effects.publish(ELCommSignal.dialect.rawValue, .string(found.rawValue))
    keeping.keep(dialect: found, &effects)
    // Off comes first, whatever is wanted.
    lastSpoke = .min
    switch found {
    case .asBuilt: ask(owing: 0, at: now, &effects)
    case .documented: state = .attending(until: now &+ Self.boardTimeout, owesAnswer: true)
    }
  }

  /// The board is silent. It may be another one by now, unless somebody waits for the buzzer; true where it is detected again.
  mutating func detectAgain(at now: Instant, _ effects: inout Effects) -> Bool {
    fallSilent(at: now, &effects)
    guard settings.dialect == nil, !buzzer.isOn, sending == nil else { return false }
    (misses, guess, isProbeOpen) = (0, dialect, true)
    drain(at: now)
    return true
  }
}
