// What can be wrong with a simulated longboard.
// Facts: the sketch's weak points, HM-10 modules (pieces of 20 bytes, AT+NOTI1), SoftwareSerial's lost bytes.

import Protocols

public typealias BoardFault = Fault<BoardFaultKind>

/// The faults of a longboard.
public enum BoardFaultKind: String, FaultKind {
  case split, cut, coalesce, noise, silence, reset, disconnect, flood
  case offLatch = "off-latch"
  case noVESC = "no-vesc"
  case `extension`
  case wrongBaud = "wrong-baud"

  public static let countedItems = "messages"

  public var usual: (moment: FaultMoment, time: Nanoseconds?) {
    switch self {
    case .split, .noVESC, .extension, .wrongBaud: (.always, nil)
    default: (.every(10), nil)
    }
  }

  public var takesTime: Bool { self == .silence }

  /// What it does.
  public var help: String {
    switch self {
    case .split: "messages come in two pieces, cut anywhere, 15 ms apart"
    case .cut: "the end of a message is lost"
    case .coalesce: "a message is held back and comes together with the next"
    case .noise: "random bytes stand before a message"
    case .silence: "the board says nothing for MS, or for ever"
    case .reset: "the board starts again: distance 0, buzzer off, unlatched"
    case .disconnect: "half a message, then the link is gone"
    case .flood: "a message is sent two hundred times"
    case .offLatch: "the pack's voltage drops by 2 V: the board latches off until it is reset"
    case .noVESC: "the VESC never answers the board"
    case .extension: "a fifth and a sixth field follow: the pack's voltage, and ok"
    case .wrongBaud: "every byte comes as another"
    }
  }
}
