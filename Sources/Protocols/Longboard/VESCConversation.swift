// What is known of the VESC at the other end since it began to answer: which questions its firmware knows, found out by
// asking, and which of them is to be asked next. A VESC leaves what it does not know without an answer.

struct VESCConversation: Sendable {
  /// Whether a question is known to this firmware.
  enum Trial: Equatable, Sendable {
    case open(misses: Int)
    case known
    case lacking
  }

  /// The VESC has answered.
  var isSettled = false
  /// What it is has been asked for, and was answered or cannot be.
  var isIdentified = false
  /// Questions in a row without an answer.
  var timeouts = 0
  /// What comes is bytes and no frames.
  var hearsNoise = false
  private(set) var selection = Trial.open(misses: 0)
  private(set) var setup = Trial.open(misses: 0)
  private var identifications = 0
  /// The last question was not answered: one that every firmware knows comes next, to tell the two reasons apart.
  private var isInDoubt = false
  private var setupDue: Instant = .min
  private var valuesDue: Instant = .min

  /// What goes out at a slot; what changes slowly is asked for once an interval.
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

  /// Twice unanswered, while another was answered: the firmware does not know it.
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
