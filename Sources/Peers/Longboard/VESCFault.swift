// What can be wrong with a simulated VESC.

import Protocols

/// The faults of a VESC.
public enum VESCFaultKind: String, FaultKind {
  case noise
  case wrongCRC = "wrong-crc"
  case cut, silence, coalesce, prints, reset, gibberish

  public static let countedItems = "answers"

  public var usual: (moment: FaultMoment, time: Nanoseconds?) { (.every(10), nil) }

  public var takesTime: Bool { self == .silence }

  /// What it does.
  public var help: String {
    switch self {
    case .noise: "a few random bytes, starts of packets among them, before an answer"
    case .wrongCRC: "an answer's check sum is wrong"
    case .cut: "half an answer, and no more of it"
    case .silence: "the VESC is deaf and dumb for MS, or for ever"
    case .coalesce: "an answer comes together with the next one"
    case .prints: "a text that nobody asked for comes before an answer"
    case .reset: "the VESC starts again: counters and limits are as they were"
    case .gibberish: "random bytes instead of an answer, as with a wrong baud rate"
    }
  }
}
