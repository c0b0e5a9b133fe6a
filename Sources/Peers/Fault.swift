// What can be wrong with a simulated peer, as a person asks for it: NAME, NAME:WHEN or NAME:WHEN:MS, where a
// fault needs a code NAME:CODE:WHEN. This file reads and describes faults; the peer commits them. It must never guess: a specification that is not understood is an error.

import Protocols

/// Which of the peer's replies, messages or reads a fault strikes.
public enum FaultMoment: Sendable, Equatable {
  case always
  case every(Int)
  /// Once: the first after this time since the peer began.
  case after(Nanoseconds)
}

/// The faults that one kind of peer has.
public protocol FaultKind: RawRepresentable<String>, CaseIterable, Sendable, Equatable where AllCases == [Self] {
  /// What its faults strike: `replies`, `messages`.
  static var countedItems: String { get }
  /// When it strikes and how long, where a person does not say. One that strikes always takes no WHEN.
  var usual: (moment: FaultMoment, time: Nanoseconds?) { get }
  /// It takes MS.
  var takesTime: Bool { get }
  /// It needs CODE, which stands before WHEN.
  var takesCode: Bool { get }
  /// How it is written.
  var form: String { get }
  /// What it does.
  var help: String { get }
}

extension FaultKind {
  public var takesCode: Bool { false }

  public var form: String { usual.moment == .always ? rawValue : takesTime ? "\(rawValue)[:WHEN[:MS]]" : "\(rawValue)[:WHEN]" }
}

/// One fault, and when it strikes.
public struct Fault<SpecificKind: FaultKind>: Sendable, Equatable {
  public typealias Kind = SpecificKind

  public var kind: Kind
  public var moment: FaultMoment
  /// A length of time, where the fault has one; nil: for ever.
  public var time: Nanoseconds?
  /// A number, where the fault has one.
  public var code: UInt8?

  /// A fault that strikes then.
  public init(_ kind: Kind, _ moment: FaultMoment = .always, time: Nanoseconds? = nil, code: UInt8? = nil) {
    (self.kind, self.moment, self.time, self.code) = (kind, moment, time, code)
  }

  /// Reads `garbage:10`, `latency:30`, `hang:50:4000`, `lv-reset:@30`, `echo`.
  public init(_ text: String) throws(ValueError) {
    var parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)[...]
    let name = parts.popFirst() ?? ""
    guard let kind = Kind(rawValue: name) else {
      throw ValueError("unknown fault \"\(name)\": choose one of \(Kind.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    self.init(kind, kind.usual.moment, time: kind.usual.time)
    if kind.takesCode { code = try Self.code(parts.popFirst() ?? "", of: kind) }
    if moment != .always, let when = parts.popFirst() { moment = try Self.moment(when, of: kind) }
    if kind.takesTime, let time = parts.popFirst() { self.time = try Self.milliseconds(time, of: kind) }
    if let rest = parts.first { throw ValueError("\(name) does not take \"\(rest)\": write it as \(kind.form)") }
  }

  private static func code(_ text: String, of kind: Kind) throws(ValueError) -> UInt8 {
    if text.utf8.count == 2, text.allSatisfy(\.isHexDigit), let code = UInt8(text, radix: 16) { return code }
    throw ValueError("\(kind.rawValue): \"\(text)\" is no code of two hex digits (22): write it as \(kind.form)")
  }

  private static func moment(_ text: String, of kind: Kind) throws(ValueError) -> FaultMoment {
    if text.hasPrefix("@"), let seconds = Int64(text.dropFirst()), (1...86_400).contains(seconds) { return .after(seconds * .second) }
    if let count = Int(text), count > 0 { return .every(count) }
    throw ValueError(
      "\(kind.rawValue): \"\(text)\" is neither a count of \(Kind.countedItems) (10) nor a moment in seconds (@30): write it as \(kind.form)"
    )
  }

  private static func milliseconds(_ text: String, of kind: Kind) throws(ValueError) -> Nanoseconds {
    if let count = Int64(text), (1...3_600_000).contains(count) { return count * .millisecond }
    throw ValueError("\(kind.rawValue): \"\(text)\" is not a time in milliseconds (1 to 3600000): write it as \(kind.form)")
  }

  /// Form and meaning of every fault, for a help text.
  public static var table: [(form: String, help: String)] { Kind.allCases.map { ($0.form, $0.help) } }
}

extension Fault {
  /// The fault of this kind, if it strikes the client of this number, counted from 0: each client is a new one, so what strikes from a
  /// moment on goes on striking.
  static func first(_ kind: Kind, of faults: [Fault], client number: UInt64, at now: Instant, since origin: Instant) -> Fault? {
    faults.first { fault in
      guard fault.kind == kind else { return false }
      switch fault.moment {
      case .always: return true
      case .every(let count): return (number + 1).isMultiple(of: UInt64(count))
      case .after(let time): return now - origin >= time
      }
    }
  }
}
