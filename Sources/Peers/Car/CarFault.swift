// The faults of a simulated car, and the original's flaws, which can be removed. Source: task123/AutoTT and its app.

import Protocols

public typealias CarFault = Fault<CarFaultKind>

/// The faults of a car. WHEN counts the reads of the car.
public enum CarFaultKind: String, FaultKind {
  case lag, held, mute, comma, ansi
  case longModes = "long-modes"
  case endless, split, coalesce, warn, flat
  case oddStatus = "odd-status"
  case oddGyro = "odd-gyro"
  case delimitersInMessage = "message-delimiters"

  public static let countedItems = "reads"

  public var defaults: (trigger: FaultTrigger, duration: Nanoseconds?) { self == .lag ? (.every(100), 500 * .millisecond) : (.always, nil) }

  public var takesDuration: Bool { self == .lag }

  /// The description of the fault.
  public var help: String {
    switch self {
    case .lag: "stop reading for MS (500), then read everything at once"
    case .held: "another client uses the car: connections succeed, but no data arrives"
    case .mute: "never request tilt"
    case .comma: "use decimal commas in the status"
    case .ansi: "add terminal escape sequences around the CPU usage"
    case .longModes: "send a list of modes of more than 2000 bytes"
    case .endless: "send 1 MiB without a terminator after the greeting"
    case .split: "split each send of the car at a random position, 15 ms apart"
    case .coalesce: "combine two sends of the car"
    case .warn: "send a CPU temperature warning 2 s after a client connects, and every 40 s"
    case .flat: "simulate two nearly empty batteries"
    case .oddStatus: "send a status with missing colons, empty values and unknown labels"
    case .oddGyro: "send the tilt intervals nan, -1, 0 and 1e9 before the correct one"
    case .delimitersInMessage: "send a message that contains ; and one that contains #$#, 1 s after the greeting"
    }
  }
}

/// The flaws of every as-built car.
public enum CarFlaw: String, CaseIterable, Sendable {
  /// Split frames are lost, and so are frames after an exception in the same read.
  case reassembly
  /// The car reads nothing while its camera starts.
  case videoBlock = "video-block"
  /// Disconnect ends the program, which is then restarted.
  case restart
  /// The car does not accept another client after its client has closed the connection.
  case oneClient = "one-client"
  /// The car does not detect that its client has closed the connection.
  case ignoresClose = "ignores-close"

  /// The names of the flaws and the behavior without them, for the help text.
  public static let table: [(syntax: String, help: String)] = allCases.map { ($0.rawValue, $0.fixedBehavior) }

  private var fixedBehavior: String {
    switch self {
    case .reassembly: "split frames are reassembled, and an exception loses only its own frame"
    case .videoBlock: "the car keeps reading while its camera starts"
    case .restart: "Disconnect ends the session only: the next client is accepted immediately"
    case .oneClient: "the next client is accepted when the previous one has closed"
    case .ignoresClose: "the car detects that its client has closed, and acts as after Disconnect"
    }
  }
}
