// What can be wrong with a simulated car: trouble that is added, and what is wrong with every car as built and can be taken
// away. Facts: autott.md §6 to §8 and §11.

import Protocols

public typealias CarFault = Fault<CarFaultKind>

/// Trouble that is added; WHEN counts the car's reads.
public enum CarFaultKind: String, FaultKind {
  case lag, held, mute, comma, ansi
  case longModes = "long-modes"
  case endless, split, coalesce, warn, flat
  case oddStatus = "odd-status"
  case oddGyro = "odd-gyro"
  case messageMarks = "message-marks"

  public static let countedItems = "reads"

  public var usual: (moment: FaultMoment, time: Nanoseconds?) { self == .lag ? (.every(100), 500 * .millisecond) : (.always, nil) }

  public var takesTime: Bool { self == .lag }

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
