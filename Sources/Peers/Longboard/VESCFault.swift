// The faults of a simulated VESC.

import Protocols

/// The faults of a VESC.
public enum VESCFaultKind: String, FaultKind {
  case noise
  case wrongCRC = "wrong-crc"
  case cut, silence, coalesce, prints, reset, gibberish

  public static let countedItems = "replies"

  public var defaults: (trigger: FaultTrigger, duration: Nanoseconds?) { (.every(10), nil) }

  public var takesDuration: Bool { self == .silence }

  /// The description of the fault.
  public var help: String {
    switch self {
    case .noise: "send a few random bytes before a reply; some of them resemble the start of a packet"
    case .wrongCRC: "send a reply with a wrong checksum"
    case .cut: "send only half of a reply"
    case .silence: "stop responding for MS, or forever"
    case .coalesce: "combine a reply with the next one"
    case .prints: "send an unsolicited text packet before a reply"
    case .reset: "restart: counters and limits return to their initial values"
    case .gibberish: "send random bytes instead of a reply, as with a wrong baud rate"
    }
  }
}
