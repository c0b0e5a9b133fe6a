// The published state and fault of the device.

struct ELCommStatus: Sendable {
  enum Condition: Sendable, Equatable {
    case waiting, detecting, live
    /// The board has switched itself off permanently.
    case off
    /// The board responds, but its VESC does not. `isLasting`: the VESC has not responded for a while.
    case noVESC(isLasting: Bool)
    case silent(String)
    case degraded(String)

    fileprivate var name: String {
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

    fileprivate var fault: String? {
      switch self {
      case .waiting, .detecting, .live, .noVESC(isLasting: false): nil
      case .off: ELCommMessage.BoardState.latchedOff.message
      case .noVESC: "the VESC does not respond to the board: switch it on, and check its wiring"
      case .silent(let message), .degraded(let message): message
      }
    }
  }

  private var condition = Condition.waiting

  func publish(_ effects: inout Effects) { effects.append(.status(condition.name)) }

  /// Publishes that the board does not respond; returns the reason. `isGarbled`: the board sends invalid data.
  mutating func boardStoppedResponding(isGarbled: Bool, _ writeFailure: String?, isDocumented: Bool, _ effects: inout Effects) -> String {
    let message: String
    if isGarbled {
      message = "invalid data from the board: check the baud rate (9600 for Torq's board) and the wiring"
    } else if let writeFailure {
      message = "cannot send to the board: \(writeFailure)"
    } else if isDocumented {
      message = "the board sends nothing: check its power; if it waits for requests, set dialect = \"as-built\""
    } else {
      message = "the board does not respond: check its power"
    }
    set(isGarbled ? .degraded(message) : .silent(message), &effects)
    return message
  }

  /// Sets the condition, and publishes it.
  mutating func set(_ new: Condition, _ effects: inout Effects) {
    condition = new
    effects.append(.status(new.name))
    effects.append(.fault(new.fault))
  }
}
