// What can be wrong with a simulated worn sensor. Facts: straps that lie on a table, whose battery is low, or that tell more than
// the plainest do.

import Protocols

public typealias SensorFault = Fault<SensorFaultKind>

/// The faults of a worn sensor.
public enum SensorFaultKind: String, FaultKind {
  case noContact = "no-contact"
  case wide, intervals, energy, truncated, overlong, silence, drop

  public static let countedItems = "messages"

  public var usual: (moment: FaultMoment, time: Nanoseconds?) {
    switch self {
    case .wide, .intervals: (.always, nil)
    default: (.every(10), nil)
    }
  }

  public var takesTime: Bool { self == .silence }

  /// What it does.
  public var help: String {
    switch self {
    case .noContact: "the strap does not touch the skin"
    case .wide: "the heart rate has two bytes"
    case .intervals: "three RR intervals come at once"
    case .energy: "the energy spent is told"
    case .truncated: "the end of a message is lost"
    case .overlong: "a message has a byte too many"
    case .silence: "the sensor says nothing for MS, or for ever"
    case .drop: "the connection ends"
    }
  }
}
