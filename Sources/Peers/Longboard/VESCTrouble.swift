// What can be wrong with a simulated VESC, as a person asks for it: NAME, NAME:WHEN or NAME:WHEN:MS. This file reads and
// describes faults; the VESC commits them. A specification that is not understood is an error.

import Protocols

/// One fault, and when it strikes.
public struct VESCTrouble: Sendable, Equatable {
  /// The faults there are.
  public enum Kind: String, CaseIterable, Sendable {
    case noise
    case wrongCRC = "wrong-crc"
    case cut, silence, coalesce, prints, reset, gibberish
  }

  public var kind: Kind
  /// It strikes every so many answers; nil: once, at `after`.
  public var every: Int?
  /// Since the start of the ride.
  public var after: Nanoseconds?
  /// How long it lasts; nil: for ever.
  public var time: Nanoseconds?

  /// A fault that strikes every so many answers.
  public init(_ kind: Kind, every: Int = 10, time: Nanoseconds? = nil) {
    (self.kind, self.every, self.time) = (kind, every, time)
  }

  /// A fault that strikes once.
  public init(_ kind: Kind, after: Nanoseconds, time: Nanoseconds? = nil) {
    (self.kind, self.after, self.time) = (kind, after, time)
  }

  /// Reads `noise`, `wrong-crc:5`, `silence:@30:2000`, `reset:@10`.
  public init(_ text: String) throws(ValueError) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard let kind = Kind(rawValue: parts[0]) else {
      throw ValueError("unknown fault \"\(parts[0])\": choose one of \(Kind.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    self.init(kind)
    guard parts.count <= (kind == .silence ? 3 : 2) else { throw ValueError("\"\(text)\" is too long: write it as \(kind.form)") }
    if parts.count > 1 {
      if parts[1].hasPrefix("@"), let seconds = Int64(parts[1].dropFirst()), (1...86_400).contains(seconds) {
        (every, after) = (nil, seconds * .second)
      } else if let count = Int(parts[1]), count > 0 {
        every = count
      } else {
        throw ValueError("\"\(parts[1])\" is neither a count of answers (10) nor a moment in seconds (@30): write it as \(kind.form)")
      }
    }
    if parts.count > 2 {
      guard let milliseconds = Int64(parts[2]), (1...3_600_000).contains(milliseconds) else {
        throw ValueError("\"\(parts[2])\" is not a time in milliseconds (1 to 3600000): write it as \(kind.form)")
      }
      time = milliseconds * .millisecond
    }
  }

  /// Form and meaning of every fault, for a help text.
  public static let table: [(form: String, help: String)] = Kind.allCases.map { ($0.form, $0.help) }
}

extension VESCTrouble.Kind {
  /// How it is written.
  public var form: String { self == .silence ? "silence[:WHEN[:MS]]" : "\(rawValue)[:WHEN]" }

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
