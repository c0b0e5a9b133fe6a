// The state of the dialogue with a VESC: which requests its firmware supports, as detected, and which one is next. A VESC does not
// respond to unknown requests.

struct VESCConversation: Sendable {
  /// Whether the firmware supports a request.
  enum Trial: Equatable, Sendable {
    case open(misses: Int)
    case known
    case lacking
  }

  /// The VESC has responded.
  var isSettled = false
  /// The firmware version was requested, and was received or is not available.
  var isIdentified = false
  /// Consecutive requests without a response.
  var timeouts = 0
  /// Only invalid data is received.
  var hearsNoise = false
  private(set) var selection = Trial.open(misses: 0)
  private(set) var setup = Trial.open(misses: 0)
  private var identifications = 0
  /// The last request got no response: one that every firmware supports is next, to distinguish the two reasons.
  private var isInDoubt = false
  private var setupDue: Instant = .min
  private var valuesDue: Instant = .min

  /// The request for a slot; slowly changing values are requested once per interval.
  mutating func nextPoll(at now: Instant, interval: Nanoseconds) -> VESCCommand {
    if isInDoubt {
      isInDoubt = false
      return .values
    }
    if !isIdentified {
      identifications += 1
      isIdentified = identifications >= 2
      return .firmware
    }
    let fast: VESCCommand = selection != .lacking ? .selectSetup : setup != .lacking ? .setup : .values
    if fast == .selectSetup, setup != .lacking, now >= setupDue, setupDue <= valuesDue {
      setupDue = now &+ interval
      return .setup
    }
    if fast != .values, now >= valuesDue {
      valuesDue = now &+ interval
      return .values
    }
    return fast
  }

  mutating func answered(_ command: VESCCommand) {
    isSettled = true
    timeouts = 0
    hearsNoise = false
    isInDoubt = false
    selection = Self.judged(selection, isAnswered: command == .selectSetup)
    setup = Self.judged(setup, isAnswered: command == .setup)
  }

  mutating func missed(_ command: VESCCommand) {
    timeouts += 1
    isInDoubt = command != .values
    if command == .selectSetup { selection = Self.missed(selection) }
    if command == .setup { setup = Self.missed(setup) }
  }

  /// Two timeouts while another request succeeded: the firmware does not support it.
  private static func judged(_ trial: Trial, isAnswered: Bool) -> Trial {
    if isAnswered { return .known }
    if case .open(let misses) = trial, misses >= 2 { return .lacking }
    return trial
  }

  private static func missed(_ trial: Trial) -> Trial {
    if case .open(let misses) = trial { return .open(misses: misses + 1) }
    return trial
  }
}
