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
      case .off: ELCommMessage.Standing.latchedOff.message
      case .noVESC: "the VESC does not respond to the board: switch it on, and check its wiring"
      case .silent(let message), .degraded(let message): message
      }
    }
  }

  mutating func turn(to new: Condition, _ effects: inout Effects) {
    let old = condition
    condition = new
    if old.word != new.word { effects.append(.status(new.word)) }
    if old.fault != new.fault { effects.append(.fault(new.fault)) }
  }

  mutating func withdraw(_ message: String, _ effects: inout Effects) {
    for signal in ELCommSignal.live { effects.withdraw(signal.rawValue, message) }
  }

  /// Data has arrived for a while, and still does, without a message.
  func isGarbled(at now: Instant) -> Bool {
    decoder.badRuns != counters.badSince && now &- max(lastHeard, cameUpAt) >= Self.garbleLimit && now &- lastByteAt < Self.garbleLimit
  }

  /// The board has not responded for too long: its values are withdrawn.
  mutating func fallSilent(at now: Instant, _ effects: inout Effects) {
    let message: String
    if isGarbled(at: now) {
      message = "invalid data from the board: check the baud rate (9600 for Torq's board) and the wiring"
      turn(to: .degraded(message), &effects)
    } else if let unsent {
      message = "cannot send to the board: \(unsent)"
      turn(to: .silent(message), &effects)
    } else if settings.dialect == .documented {
      message = "the board sends nothing: check its power; if it waits for requests, set dialect = \"as-built\""
      turn(to: .silent(message), &effects)
    } else {
      message = "the board does not respond: check its power"
      turn(to: .silent(message), &effects)
    }
    withdraw(message, &effects)
    timing.forget()
  }
}
