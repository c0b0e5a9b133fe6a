// What can be wrong with a simulated car, as a person asks for it: trouble that is added (NAME, NAME:WHEN or NAME:WHEN:MS),
// and what is wrong with every car as built and can be taken away. This file reads and describes; the car commits.
// It must never guess: what is not understood is an error. Facts: autott.md §6 to §8 and §11.

import Protocols

/// Trouble that is added, and when it strikes.
public struct CarFault: Sendable, Equatable {
  /// The troubles there are.
  public enum Kind: String, CaseIterable, Sendable {
    case lag, held, mute, comma, ansi
    case longModes = "long-modes"
    case endless, split, coalesce, warn, flat
    case oddStatus = "odd-status"
    case oddGyro = "odd-gyro"
    case messageMarks = "message-marks"
  }

  public var kind: Kind
  /// Which of the car's reads it strikes.
  public var moment: AdapterFault.Moment
  /// How long, where it lasts.
  public var time: Nanoseconds?

  /// A trouble that strikes then.
  public init(_ kind: Kind, _ moment: AdapterFault.Moment = .always, time: Nanoseconds? = nil) {
    (self.kind, self.moment, self.time) = (kind, moment, time)
  }

  /// Reads `lag`, `lag:100`, `lag:@5:2000`, `mute`.
  public init(_ text: String) throws(ValueError) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard let kind = Kind(rawValue: parts[0]) else {
      throw ValueError("unknown fault \"\(parts[0])\": choose one of \(Kind.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    self.init(kind)
    if kind == .lag { (moment, time) = (.every(100), 500 * .millisecond) }
    guard parts.count <= (kind == .lag ? 3 : 1) else { throw ValueError("\"\(text)\" is too long: write it as \(kind.form)") }
    if parts.count > 1 {
      if parts[1].hasPrefix("@"), let seconds = Int64(parts[1].dropFirst()), (1...86_400).contains(seconds) {
        moment = .after(seconds * .second)
      } else if let count = Int(parts[1]), count > 0 {
        moment = .every(count)
      } else {
        throw ValueError("lag: \"\(parts[1])\" is neither a count of reads (100) nor a moment in seconds (@5)")
      }
    }
    if parts.count > 2 {
      guard let count = Int64(parts[2]), (1...3_600_000).contains(count) else {
        throw ValueError("lag: \"\(parts[2])\" is not a time in milliseconds (1 to 3600000): write it as \(kind.form)")
      }
      time = count * .millisecond
    }
  }

  /// Form and meaning of every fault, for a help text.
  public static let table: [(form: String, help: String)] = Kind.allCases.map { ($0.form, $0.help) }
}

extension CarFault.Kind {
  /// How it is written.
  public var form: String { self == .lag ? "lag[:WHEN[:MS]]" : rawValue }

  /// What it does.
  public var help: String {
    switch self {
    case .lag: "the car does not read for MS (500 if left out), then finds all at once"
    case .held: "somebody else holds the car: clients are connected, and nothing comes"
    case .mute: "the car never asks for tilt"
    case .comma: "decimal commas in the status"
    case .ansi: "escape sequences of a terminal around the CPU usage"
    case .longModes: "a list of modes longer than 2000 bytes"
    case .endless: "1 MB without an end mark, after the greeting"
    case .split: "what the car says comes in two pieces, cut anywhere, 15 ms apart"
    case .coalesce: "what the car says is held back and comes together with the next"
    case .warn: "a warning of the processor's temperature 2 s after a client came, and every 40 s from then on"
    case .flat: "both batteries are nearly empty"
    case .oddStatus: "a status with lines without colon, empty values, labels nobody knows"
    case .oddGyro: "intervals nan, -1, 0 and 1e9 before the right one"
    case .messageMarks: "a second after the greeting, a message with ; in it, and one with #$# in it"
    }
  }
}

/// What is wrong with every car as built, by the name under which it is taken away.
public enum CarFlaw: String, CaseIterable, Sendable {
  /// Frames that are cut, and what follows a handler's exception, are lost.
  case reassembly
  case videoBlock = "video-block"
  case restart
  case oneClient = "one-client"
  case deaf

  /// Name and meaning of taking it away, for a help text.
  public static let table: [(form: String, help: String)] = allCases.map { ($0.rawValue, $0.cure) }

  private var cure: String {
    switch self {
    case .reassembly: "cut frames are put together, and an exception costs its own frame alone"
    case .videoBlock: "the car reads on while its camera starts"
    case .restart: "Disconnect ends the session, not the program: the next client is let in at once"
    case .oneClient: "the next client is let in when the one before has closed"
    case .deaf: "the car notices when its client closes, and does as after Disconnect"
    }
  }
}
