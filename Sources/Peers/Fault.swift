// Specifications of injected faults: NAME, NAME:WHEN or NAME:WHEN:MS, or NAME:CODE:WHEN for faults with a code.

import Protocols

/// Which replies, messages or reads of the peer a fault affects.
public enum FaultMoment: Sendable, Equatable {
  case always
  case every(Int)
  /// Once: the first one after this time since the start.
  case after(Nanoseconds)
}

/// The faults of one kind of peer.
public protocol FaultKind: RawRepresentable<String>, CaseIterable, Sendable, Equatable where AllCases == [Self] {
  /// The items that WHEN counts, for example `replies`.
  static var countedItems: String { get }
  /// The default moment and duration. A fault that is always active takes no WHEN.
  var defaults: (moment: FaultMoment, time: Nanoseconds?) { get }
  /// Whether the fault takes MS.
  var takesTime: Bool { get }
  /// Whether the fault requires CODE, before WHEN.
  var takesCode: Bool { get }
  /// The syntax.
  var form: String { get }
  /// The description.
  var help: String { get }
}

extension FaultKind {
  public var takesCode: Bool { false }

  public var form: String { defaults.moment == .always ? rawValue : takesTime ? "\(rawValue)[:WHEN[:MS]]" : "\(rawValue)[:WHEN]" }
}

/// One fault, and when it is active.
public struct Fault<SpecificKind: FaultKind>: Sendable, Equatable {
  public typealias Kind = SpecificKind

  public var kind: Kind
  public var moment: FaultMoment
  /// The duration of a fault that has one; nil means forever.
  public var time: Nanoseconds?
  /// The code of a fault that has one.
  public var code: UInt8?

  /// Creates a fault.
  public init(_ kind: Kind, _ moment: FaultMoment = .always, time: Nanoseconds? = nil, code: UInt8? = nil) {
    (self.kind, self.moment, self.time, self.code) = (kind, moment, time, code)
  }

  /// Parses `garbage:10`, `latency:30`, `hang:50:4000`, `lv-reset:@30`, `echo`.
  public init(_ text: String) throws(ValueError) {
    var parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)[...]
    let name = parts.popFirst() ?? ""
    guard let kind = Kind(rawValue: name) else {
      throw ValueError("unknown fault \"\(name)\": choose one of \(Kind.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    self.init(kind, kind.defaults.moment, time: kind.defaults.time)
    if kind.takesCode { code = try Self.code(parts.popFirst() ?? "", of: kind) }
    if moment != .always, let when = parts.popFirst() { moment = try Self.moment(when, of: kind) }
    if kind.takesTime, let time = parts.popFirst() { self.time = try Self.milliseconds(time, of: kind) }
    if let rest = parts.first { throw ValueError("\(name): unexpected \"\(rest)\": write \(kind.form)") }
  }

  private static func code(_ text: String, of kind: Kind) throws(ValueError) -> UInt8 {
    if text.utf8.count == 2, text.allSatisfy(\.isHexDigit), let code = UInt8(text, radix: 16) { return code }
    throw ValueError("\(kind.rawValue): invalid code \"\(text)\", expected two hex digits such as 22: write \(kind.form)")
  }

  private static func moment(_ text: String, of kind: Kind) throws(ValueError) -> FaultMoment {
    if text.hasPrefix("@"), let seconds = Int64(text.dropFirst()), (1...86_400).contains(seconds) { return .after(seconds * .second) }
    if let count = Int(text), count > 0 { return .every(count) }
    throw ValueError(
      "\(kind.rawValue): \"\(text)\" is neither a number of \(Kind.countedItems) (10) nor a time in seconds (@30): write \(kind.form)"
    )
  }

  private static func milliseconds(_ text: String, of kind: Kind) throws(ValueError) -> Nanoseconds {
    if let count = Int64(text), (1...3_600_000).contains(count) { return count * .millisecond }
    throw ValueError("\(kind.rawValue): \"\(text)\" is not a time in ms (1 to 3600000): write \(kind.form)")
  }

  /// Syntax and description of all faults, for the help text.
  public static var table: [(form: String, help: String)] { Kind.allCases.map { ($0.form, $0.help) } }
}

extension Fault {
  /// The fault of this kind, if it is active for client `number`, counted from 0. A fault with a start time affects all later clients.
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
