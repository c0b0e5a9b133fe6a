// Dialect detection, if the configuration does not set one. A message alone does not identify the dialect: it may be the first one of
// a board that starts, or the response of a board as built to an earlier byte, or to output of an HM-10 module. So the machine waits
// until the board is quiet, sends two characters in one write, and counts the responses: a board as built responds to each of them, a
// documented one takes them as one number.
// Source: ProjectTORQ.ino (one byte per pass, at most 185 ms long; a 64-byte buffer); the seed for `documented`.

extension ELCommMachine {
  /// A probe of two characters.
  struct Probe {
    /// When the link accepted them.
    var sent: Instant
    /// The number of invalid runs before the probe.
    let badRuns: Int
    var messages = 0
  }

  /// Longer than two passes of a board as built without its VESC, shorter than the timeout of a documented board.
  static let probeTime: Nanoseconds = 500 * .millisecond
  /// A board as built with more responses sends the next one within this time.
  private static let quiet: Nanoseconds = 500 * .millisecond
  /// The maximum number of pending responses of a board as built: a full buffer. A board that sends more is documented.
  private static let maxOwed = 64
  /// Consecutive probes without a response after which the board counts as silent.
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

  /// Sends off as a documented board's number in two characters, neither of which is on for a board as built.
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
    // The responses may belong to an earlier probe.
    if isProbeOpen {
      isProbeOpen = false
      return drain(at: now)
    }
    // A damaged message is a response as well.
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
    // Off comes first, whatever is requested.
    lastSpoke = .min
    switch found {
    case .asBuilt: ask(owing: 0, at: now, &effects)
    case .documented: state = .attending(until: now &+ Self.boardTimeout, owesAnswer: true)
    }
  }

  /// The board is silent and may be replaced, unless a buzzer command waits; true if the dialect is detected again.
  mutating func detectAgain(at now: Instant, _ effects: inout Effects) -> Bool {
    fallSilent(at: now, &effects)
    guard settings.dialect == nil, !buzzer.isOn, sending == nil else { return false }
    (misses, guess, isProbeOpen) = (0, dialect, true)
    drain(at: now)
    return true
  }
}
