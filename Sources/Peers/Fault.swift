// Specifications of injected faults: NAME, NAME:WHEN or NAME:WHEN:MS, or NAME:CODE:WHEN for faults with a code.

import Protocols

/// The condition under which a fault affects a reply, message, read or connection of a simulated device.
public enum FaultTrigger: Sendable, Equatable {
  case always
  /// Every nth one; for a toy, the first n connections.
  case every(Int)
  /// The first one at least this time after the start; for a web server, all connections from that time on. The start is that of the
  /// program, or, for an RC car and gpsd, of the connection.
  case after(Nanoseconds)
}

/// The faults of one kind of simulated device.
public protocol FaultKind: RawRepresentable<String>, CaseIterable, Sendable, Equatable where AllCases == [Self] {
  /// The items that WHEN counts, for example `replies`.
  static var countedItems: String { get }
  /// The default trigger and duration. A fault that is always active takes no WHEN.
  var defaults: (trigger: FaultTrigger, duration: Nanoseconds?) { get }
  /// Whether the fault takes MS.
  var takesDuration: Bool { get }
  /// Whether the fault requires CODE, before WHEN.
  var takesCode: Bool { get }
  /// The syntax of the specification, for example `hang[:WHEN[:MS]]`.
  var syntax: String { get }
  /// The description in the help text.
  var help: String { get }
}

extension FaultKind {
  public var takesCode: Bool { false }

  public var syntax: String { defaults.trigger == .always ? rawValue : takesDuration ? "\(rawValue)[:WHEN[:MS]]" : "\(rawValue)[:WHEN]" }
}

/// One fault, with its trigger.
public struct Fault<SpecificKind: FaultKind>: Sendable, Equatable {
  public typealias Kind = SpecificKind

  public var kind: Kind
  public var trigger: FaultTrigger
  /// The duration of a fault that takes one, or nil for a fault without an end.
  public var duration: Nanoseconds?
  /// The code, for a fault that takes one: a PID or a negative response code.
  public var code: UInt8?

  /// Creates a fault.
  public init(_ kind: Kind, _ trigger: FaultTrigger = .always, duration: Nanoseconds? = nil, code: UInt8? = nil) {
    (self.kind, self.trigger, self.duration, self.code) = (kind, trigger, duration, code)
  }

  /// Parses `garbage:10`, `latency:30`, `hang:50:4000`, `lv-reset:@30`, `echo`.
  public init(_ text: String) throws(ValueError) {
    var parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)[...]
    let name = parts.popFirst() ?? ""
    guard let kind = Kind(rawValue: name) else {
      throw ValueError("unknown fault \"\(name)\": choose one of \(Kind.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    self.init(kind, kind.defaults.trigger, duration: kind.defaults.duration)
    if kind.takesCode { code = try Self.code(parts.popFirst() ?? "", of: kind) }
    if trigger != .always, let when = parts.popFirst() { trigger = try Self.trigger(when, of: kind) }
    if kind.takesDuration, let milliseconds = parts.popFirst() { duration = try Self.milliseconds(milliseconds, of: kind) }
    if let rest = parts.first { throw ValueError("\(name): unexpected \"\(rest)\": write \(kind.syntax)") }
  }

  private static func code(_ text: String, of kind: Kind) throws(ValueError) -> UInt8 {
    if text.utf8.count == 2, text.allSatisfy(\.isHexDigit), let code = UInt8(text, radix: 16) { return code }
    throw ValueError("\(kind.rawValue): invalid code \"\(text)\", expected two hex digits such as 22: write \(kind.syntax)")
  }

  private static func trigger(_ text: String, of kind: Kind) throws(ValueError) -> FaultTrigger {
    if text.hasPrefix("@"), let seconds = Int64(text.dropFirst()), (1...86_400).contains(seconds) { return .after(seconds * .second) }
    if let count = Int(text), count > 0 { return .every(count) }
    throw ValueError(
      "\(kind.rawValue): \"\(text)\" is neither a number of \(Kind.countedItems) (10) nor a time in seconds (@30): write \(kind.syntax)"
    )
  }

  private static func milliseconds(_ text: String, of kind: Kind) throws(ValueError) -> Nanoseconds {
    if let count = Int64(text), (1...3_600_000).contains(count) { return count * .millisecond }
    throw ValueError("\(kind.rawValue): \"\(text)\" is not a time in ms (1 to 3600000): write \(kind.syntax)")
  }

  /// The syntax and description of all faults, for the help text.
  public static var table: [(syntax: String, help: String)] { Kind.allCases.map { ($0.syntax, $0.help) } }
}

extension Fault {
  /// Returns the fault of this kind that affects the connection of client `number`, counted from 0, or nil if there is none. A fault with a
  /// start time affects all later clients.
  static func active(_ kind: Kind, of faults: [Fault], client number: UInt64, at now: Instant, since origin: Instant) -> Fault? {
    faults.first { fault in
      guard fault.kind == kind else { return false }
      switch fault.trigger {
      case .always: return true
      case .every(let count): return (number + 1).isMultiple(of: UInt64(count))
      case .after(let time): return now - origin >= time
      }
    }
  }
}
