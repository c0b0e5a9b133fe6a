// The condition of the board and the dialogue: the device's state, the fault, and the absence of values when the board does not
// respond or sends invalid data.

extension ELCommMachine {
  /// How long invalid data is tolerated.
  private static let garbleLimit: Nanoseconds = 2 * .second

  /// The condition: the device's state and fault.
  enum Condition: Sendable, Equatable {
    case waiting, detecting, live
    /// The board has latched off.
    case off
    /// The board responds, but its VESC has not for a while.
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
      case .noVESC: "the VESC does not respond to the board: switch it on, and check its wiring"
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

  /// Data has arrived for a while, and still does, without a message.
  func isGarbled(at now: Instant) -> Bool {
    decoder.badRuns != counters.badSince && now &- max(lastHeard, cameUpAt) >= Self.garbleLimit && now &- lastByteAt < Self.garbleLimit
  }

  /// The board has not responded for too long: its values are withdrawn.
  mutating func fallSilent(at now: Instant, _ effects: inout Effects) {
    let words: String
    if isGarbled(at: now) {
      words = "invalid data from the board: check the baud rate (9600 for Torq's board) and the wiring"
      turn(to: .degraded(words), &effects)
    } else if let unsent {
      words = "cannot send to the board: \(unsent)"
      turn(to: .silent(words), &effects)
    } else if settings.dialect == .documented {
      words = "the board sends nothing: check its power; if it waits for requests, set dialect = \"as-built\""
      turn(to: .silent(words), &effects)
    } else {
      words = "the board does not respond: check its power"
      turn(to: .silent(words), &effects)
    }
    withdraw(words, &effects)
    timing.forget()
  }
}
