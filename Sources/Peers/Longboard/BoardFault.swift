// The faults of a simulated longboard.
// Source: weaknesses of ProjectTORQ.ino, HM-10 modules (pieces of 20 bytes, AT+NOTI1), lost bytes of SoftwareSerial.

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

  public var defaults: (trigger: FaultTrigger, duration: Nanoseconds?) {
    switch self {
    case .split, .noVESC, .extension, .wrongBaud: (.always, nil)
    default: (.every(10), nil)
    }
  }

  public var takesDuration: Bool { self == .silence }

  /// The description of the fault.
  public var help: String {
    switch self {
    case .split: "split messages at a random position, 15 ms apart"
    case .cut: "truncate a message"
    case .coalesce: "combine a message with the next one"
    case .noise: "send random bytes before a message"
    case .silence: "send nothing for MS, or forever"
    case .reset: "restart: distance 0, buzzer off, latches cleared"
    case .disconnect: "close the link after half a message"
    case .flood: "send a message 200 times"
    case .offLatch: "drop the pack voltage by 2 V: the board latches off until a reset"
    case .noVESC: "the VESC does not reply to the board"
    case .extension: "append a fifth and a sixth field: the pack voltage, and ok"
    case .wrongBaud: "garble every byte"
    }
  }
}
