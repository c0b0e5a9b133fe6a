// The faults of a Trivia toy during setup.
// Source: microprocessor.ino of neils95/Trivio (repeated connections, the replies yes and no of an early firmware).

import Protocols

public typealias ToyFault = Fault<ToyFaultKind>

/// The faults of a toy. WHEN is the number of connections that the fault affects.
public enum ToyFaultKind: String, FaultKind {
  case redial, early, mute, split, newline, yes, no, silent, reset

  public static let countedItems = "connections"

  public var defaults: (trigger: FaultTrigger, duration: Nanoseconds?) {
    switch self {
    case .redial: (.every(3), nil)
    case .early, .mute: (.every(1), nil)
    default: (.always, nil)
    }
  }

  public var takesDuration: Bool { false }

  /// The description of the fault.
  public var help: String {
    switch self {
    case .redial: "close right after the toy's ok, and reconnect (default 3)"
    case .early: "close after the phone's ok, before the toy's, and reconnect (default 1)"
    case .mute: "connect, and send nothing until the phone closes (default 1)"
    case .split: "send ok in two segments, 100 ms apart"
    case .newline: "send ok with a line feed"
    case .yes: "send yes after the credentials, like an early firmware"
    case .no: "send no after the credentials"
    case .silent: "do not close after the credentials"
    case .reset: "reset the connection after the credentials"
    }
  }
}
