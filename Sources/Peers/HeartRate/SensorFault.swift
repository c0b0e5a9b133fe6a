// The faults of a simulated wearable sensor. Several of them add optional fields to its messages.

import Protocols

public typealias SensorFault = Fault<SensorFaultKind>

/// The faults of a wearable sensor.
public enum SensorFaultKind: String, FaultKind {
  case noContact = "no-contact"
  case wide, intervals, energy, truncated, overlong, silence, drop

  public static let countedItems = "messages"

  public var defaults: (trigger: FaultTrigger, duration: Nanoseconds?) {
    switch self {
    case .wide, .intervals: (.always, nil)
    default: (.every(10), nil)
    }
  }

  public var takesDuration: Bool { self == .silence }

  /// Whether only a heart rate strap has the fault.
  public var isStrapOnly: Bool {
    switch self {
    case .noContact, .wide, .intervals, .energy: true
    default: false
    }
  }

  /// The description of the fault.
  public var help: String {
    switch self {
    case .noContact: "the strap does not touch the skin"
    case .wide: "the heart rate is a 16-bit value"
    case .intervals: "messages contain three RR intervals"
    case .energy: "messages contain the energy expended"
    case .truncated: "a message is truncated"
    case .overlong: "a message has an extra byte"
    case .silence: "the sensor sends nothing for MS, or forever"
    case .drop: "the connection drops"
    }
  }
}
