// What can go wrong between a Trivia toy and the phone that sets it up.
// Facts: protocols of the toy, §A (redials, early firmware's yes and no, the network that vanishes) and §F.

import Protocols

public typealias ToyFault = Fault<ToyFaultKind>

/// The faults of a toy. Where a connection goes wrong, WHEN counts how many do before one goes well.
public enum ToyFaultKind: String, FaultKind {
  case redial, early, mute, split, newline, yes, no, silent, reset

  public static let countedItems = "connections"

  public var usual: (moment: FaultMoment, time: Nanoseconds?) {
    switch self {
    case .redial: (.every(3), nil)
    case .early, .mute: (.every(1), nil)
    default: (.always, nil)
    }
  }

  public var takesTime: Bool { false }

  /// What it does.
  public var help: String {
    switch self {
    case .redial: "it closes right after its ok, and connects again; three times if WHEN is left out"
    case .early: "it closes when the phone's ok has come, before its own, and connects again; once"
    case .mute: "it connects and says nothing until the phone closes; once"
    case .split: "its ok comes in two segments, 100 ms apart"
    case .newline: "it says ok with a line feed"
    case .yes: "it says yes after the credentials, as an early firmware did"
    case .no: "it says no after them"
    case .silent: "it never closes after them"
    case .reset: "it resets the connection after them"
    }
  }
}
