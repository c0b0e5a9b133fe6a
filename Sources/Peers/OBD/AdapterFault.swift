// What can be wrong with a simulated adapter, as a person asks for it: NAME, NAME:WHEN or NAME:WHEN:MS. This file reads and
// describes faults; the adapter commits them. It must never guess: a specification that is not understood is an error.
// Facts: the troubles that owners of real adapters report.

import Protocols

/// One fault, and when it strikes.
public struct AdapterFault: Sendable, Equatable {
  /// The faults there are.
  public enum Kind: String, CaseIterable, Sendable {
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
  }

  /// Which of the car's replies it strikes.
  public enum Moment: Sendable, Equatable {
    case always
    case every(Int)
    /// Once: the first reply after this time since the car began its drive, of an adapter that was plugged in by then.
    case after(Nanoseconds)
  }

  public var kind: Kind
  public var moment: Moment
  /// A length of time, where the fault has one.
  public var time: Nanoseconds?

  /// A fault that strikes then.
  public init(_ kind: Kind, _ moment: Moment = .always, time: Nanoseconds? = nil) {
    self.kind = kind
    self.moment = moment
    self.time = time
  }

  /// Reads `garbage:10`, `latency:30`, `hang:50:4000`, `lv-reset:@30`, `echo`.
  public init(_ text: String) throws(ValueError) {
    var parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)[...]
    let name = parts.popFirst() ?? ""
    guard let kind = Kind(rawValue: name) else {
      throw ValueError("unknown fault \"\(name)\": choose one of \(Kind.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    self.init(kind, kind.strikes ? .every(10) : .always, time: kind == .split ? 2 * .millisecond : nil)
    if kind.strikes, let when = parts.popFirst() { moment = try AdapterFault.moment(when, of: kind) }
    if kind.takesTime, let time = parts.popFirst() { self.time = try AdapterFault.milliseconds(time, of: kind) }
    if let rest = parts.first { throw ValueError("\(name) does not take \"\(rest)\": write it as \(kind.form)") }
    if kind == .latency && time == nil { throw ValueError("latency needs its milliseconds: write it as latency:30") }
  }

  private static func moment(_ text: String, of kind: Kind) throws(ValueError) -> Moment {
    if text.hasPrefix("@"), let seconds = Int64(text.dropFirst()), (1...86_400).contains(seconds) { return .after(seconds * .second) }
    if let count = Int(text), count > 0 { return .every(count) }
    throw ValueError(
      "\(kind.rawValue): \"\(text)\" is neither a count of replies (10) nor a moment in seconds (@30): write it as \(kind.form)")
  }

  private static func milliseconds(_ text: String, of kind: Kind) throws(ValueError) -> Nanoseconds {
    if let count = Int64(text), (1...3_600_000).contains(count) { return count * .millisecond }
    throw ValueError("\(kind.rawValue): \"\(text)\" is not a time in milliseconds (1 to 3600000): write it as \(kind.form)")
  }

  /// Form and meaning of every fault, for a help text.
  public static let table: [(form: String, help: String)] = Kind.allCases.map { ($0.form, $0.help) }
}

extension AdapterFault.Kind {
  /// It strikes single replies, not all of the time.
  var strikes: Bool {
    switch self {
    case .latency, .split, .echo, .noCount, .clone: false
    default: true
    }
  }

  var takesTime: Bool { self == .latency || self == .split || self == .hang }

  /// How it is written.
  public var form: String {
    switch self {
    case .latency: "latency:MS"
    case .split: "split[:MS]"
    case .hang: "hang[:WHEN[:MS]]"
    default: strikes ? "\(rawValue)[:WHEN]" : rawValue
    }
  }

  /// What it does.
  public var help: String {
    switch self {
    case .latency: "every reply of the car comes MS later"
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
