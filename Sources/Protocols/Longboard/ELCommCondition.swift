// In what condition the board and the dialogue with it are: the device's word, what is wrong in a person's words, and what
// becomes of the values when the board falls silent or what comes makes no sense.

extension ELCommMachine {
  /// How long bytes may come without a message among them.
  private static let garbleLimit: Nanoseconds = 2 * .second

  /// In what condition board and dialogue are: the device's word, and what is wrong.
  enum Condition: Sendable, Equatable {
    case waiting, detecting, live
    /// The board has latched off.
    case off
    /// The board is there, its VESC is not; for long enough to tell a person.
    case noVESC(isLasting: Bool)
    case silent(String)
    case degraded(String)

    var word: String {
      switch self {
      case .waiting: "waiting"
      case .detecting: "detecting"
      case .live: "live"
      case .off: "off"
      case .noVESC: "no-vesc"
      case .silent: "silent"
      case .degraded: "degraded"
      }
    }

    var fault: String? {
      switch self {
      case .waiting, .detecting, .live, .noVESC(isLasting: false): nil
      case .off: ELCommMessage.Standing.latchedOff.words
      case .noVESC: "the VESC does not answer the board: switch it on, and check its wiring"
      case .silent(let words), .degraded(let words): words
      }
    }
  }

  mutating func turn(to new: Condition, _ effects: inout Effects) {
    let old = condition
    condition = new
    if old.word != new.word { effects.append(.status(new.word)) }
    if old.fault != new.fault { effects.append(.fault(new.fault)) }
  }

  mutating func withdraw(_ words: String, _ effects: inout Effects) {
    for signal in ELCommSignal.live { effects.withdraw(signal.rawValue, words) }
  }

  /// Bytes have come for a while and still do, and no message among them.
  func isGarbled(at now: Instant) -> Bool {
    decoder.badRuns != counters.badSince && now &- max(lastHeard, cameUpAt) >= Self.garbleLimit && now &- lastByteAt < Self.garbleLimit
  }

  /// The board has said nothing for too long: nothing that it said stands any longer.
  mutating func fallSilent(at now: Instant, _ effects: inout Effects) {
    let words: String
    if isGarbled(at: now) {
      words = "what comes is no message of the board: check the baud rate, 9600 for Torq's board, and the wiring"
      turn(to: .degraded(words), &effects)
    } else if let unsent {
      words = "nothing can be sent to the board: \(unsent)"
      turn(to: .silent(words), &effects)
    } else if settings.dialect == .documented {
      words = "the board says nothing: check its power; one that waits to be asked needs dialect = \"as-built\""
      turn(to: .silent(words), &effects)
    } else {
      words = "the board does not answer: check its power"
      turn(to: .silent(words), &effects)
    }
    withdraw(words, &effects)
    timing.forget()
  }
}
