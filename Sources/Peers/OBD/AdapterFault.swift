// What can be wrong with a simulated adapter. Facts: the troubles that owners of real adapters report.

import Protocols

public typealias AdapterFault = Fault<AdapterTrouble>

/// The faults of an adapter; WHEN counts the car's replies since it began its drive, of an adapter that was plugged in by then.
public enum AdapterTrouble: String, FaultKind {
  case latency, split
  case lostPrompt = "lost-prompt"
  case garbage
  case noData = "no-data"
  case stopped
  case canError = "can-error"
  case lvReset = "lv-reset"
  case disconnect, hang, babble, echo
  case noCount = "no-count"
  case clone

  public static let struck = "replies"

  public var usual: (moment: FaultMoment, time: Nanoseconds?) {
    switch self {
    case .latency: (.always, 30 * .millisecond)
    case .split: (.always, 2 * .millisecond)
    case .echo, .noCount, .clone: (.always, nil)
    default: (.every(10), nil)
    }
  }

  public var takesTime: Bool { self == .latency || self == .split || self == .hang }

  public var form: String {
    switch self {
    case .latency, .split: "\(rawValue)[:MS]"
    default: usual.moment == .always ? rawValue : takesTime ? "\(rawValue)[:WHEN[:MS]]" : "\(rawValue)[:WHEN]"
    }
  }

  /// What it does.
  public var help: String {
    switch self {
    case .latency: "every reply of the car comes MS (30) later"
    case .split: "replies come in bits of 1 to 20 bytes, up to MS (2) apart"
    case .lostPrompt: "a reply ends without its prompt"
    case .garbage: "NUL, 0xFF and other noise bytes stand inside a reply"
    case .noData: "NO DATA instead of the reply"
    case .stopped: "STOPPED instead of the reply"
    case .canError: "CAN ERROR instead of the reply"
    case .lvReset: "LV RESET instead of the reply, and all settings are lost"
    case .disconnect: "half a reply, then the link is gone"
    case .hang: "the adapter is deaf and dumb for MS, or for ever"
    case .babble: "random bytes without end and without a prompt"
    case .echo: "ATE0 is acknowledged, but the echo stays"
    case .noCount: "a response-count digit is answered with ?"
    case .clone: "ATS0, ATH1, ATCRA and STI are answered with ?"
    }
  }
}
