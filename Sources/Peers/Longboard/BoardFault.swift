// What can be wrong with a simulated longboard, as a person asks for it: NAME, NAME:WHEN or NAME:WHEN:MS. This file reads
// and describes faults; the board commits them. It must never guess: what is not understood is an error.
// Facts: the sketch's weak points, HM-10 modules (pieces of 20 bytes, AT+NOTI1), SoftwareSerial's lost bytes.

import Protocols

/// One fault, and when it strikes.
public struct BoardFault: Sendable, Equatable {
  /// The faults there are.
  public enum Kind: String, CaseIterable, Sendable {
    case split, cut, coalesce, noise, silence, reset, disconnect, flood
    case offLatch = "off-latch"
    case noVESC = "no-vesc"
    case `extension`
    case wrongBaud = "wrong-baud"
  }

  public var kind: Kind
  /// Which of the board's messages it strikes.
  public var moment: AdapterFault.Moment
  /// How long, where the fault lasts.
  public var time: Nanoseconds?

  /// A fault that strikes then.
  public init(_ kind: Kind, _ moment: AdapterFault.Moment = .always, time: Nanoseconds? = nil) {
    self.kind = kind
    self.moment = moment
    self.time = time
  }

  /// Reads `cut:10`, `silence:50:4000`, `reset:@30`, `no-vesc`.
  public init(_ text: String) throws(ValueError) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard let kind = Kind(rawValue: parts[0]) else {
      throw ValueError("unknown fault \"\(parts[0])\": choose one of \(Kind.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    self.init(kind, kind.strikes ? .every(10) : .always)
    guard parts.count <= (kind.strikes ? 2 : 1) + (kind == .silence ? 1 : 0) else {
      throw ValueError("\(kind.rawValue) does not take \"\(parts.last ?? "")\": write it as \(kind.form)")
    }
    if parts.count > 1 {
      if parts[1].hasPrefix("@"), let seconds = Int64(parts[1].dropFirst()), (1...86_400).contains(seconds) {
        moment = .after(seconds * .second)
      } else if let count = Int(parts[1]), count > 0 {
        moment = .every(count)
      } else {
        throw ValueError("\(kind.rawValue): \"\(parts[1])\" is neither a count of messages (10) nor a moment in seconds (@30)")
      }
    }
    if parts.count > 2 {
      guard let count = Int64(parts[2]), (1...3_600_000).contains(count) else {
        throw ValueError("silence: \"\(parts[2])\" is not a time in milliseconds (1 to 3600000): write it as \(kind.form)")
      }
      time = count * .millisecond
    }
  }

  /// Form and meaning of every fault, for a help text.
  public static let table: [(form: String, help: String)] = Kind.allCases.map { ($0.form, $0.help) }
}

extension BoardFault.Kind {
  /// It strikes single messages, not all of the time.
  var strikes: Bool {
    switch self {
    case .split, .noVESC, .extension, .wrongBaud: false
    default: true
    }
  }

  /// How it is written.
  public var form: String { self == .silence ? "silence[:WHEN[:MS]]" : strikes ? "\(rawValue)[:WHEN]" : rawValue }

  /// What it does.
  public var help: String {
    switch self {
    case .split: "messages come in two pieces, cut anywhere, 15 ms apart"
    case .cut: "the end of a message is lost"
    case .coalesce: "a message is held back and comes together with the next"
    case .noise: "random bytes stand before a message"
    case .silence: "the board says nothing for MS, or for ever"
    case .reset: "the board starts again: distance 0, buzzer off, unlatched"
    case .disconnect: "half a message, then the link is gone"
    case .flood: "a message is sent two hundred times"
    case .offLatch: "the pack's voltage drops by 2 V: the board latches off until it is reset"
    case .noVESC: "the VESC never answers the board"
    case .extension: "a fifth and a sixth field follow: the pack's voltage, and ok"
    case .wrongBaud: "every byte comes as another"
    }
  }
}
