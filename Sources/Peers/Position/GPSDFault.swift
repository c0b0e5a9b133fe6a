// The faults of a simulated gpsd and of its receivers.
// Source: gpsd_json(5) and gpsd's list of bugs; observed with gpsd 3.22.

import Protocols

public typealias GPSDFault = Fault<GPSDFaultKind>

/// The faults of gpsd.
public enum GPSDFaultKind: String, FaultKind {
  case noFix = "no-fix"
  case frozen, silence, unplug, hang, restart
  case split, cut, garbage, long, nan, sparse, early, error
  case twoD = "2d"
  case old, second
  case noReceiver = "no-receiver"
  case ssh, nmea, mute

  public static let countedItems = "fixes"

  public var defaults: (trigger: FaultTrigger, duration: Nanoseconds?) {
    switch self {
    case .twoD, .old, .second, .noReceiver, .ssh, .nmea, .mute: (.always, nil)
    default: (.every(10), nil)
    }
  }

  public var takesDuration: Bool {
    switch self {
    case .noFix, .frozen, .silence, .unplug, .hang: true
    default: false
    }
  }

  /// The description of the fault.
  public var help: String {
    switch self {
    case .noFix: "the receiver has no fix for MS, or forever"
    case .frozen: "the receiver repeats its last fix for MS, or forever"
    case .silence: "the receiver reports nothing for MS, or forever"
    case .unplug: "the receiver is unplugged for MS, or forever"
    case .hang: "gpsd does nothing for MS, or forever"
    case .restart: "gpsd restarts: the connection closes"
    case .split: "send a report in two pieces, 15 ms apart"
    case .cut: "send only half of a report, without its end"
    case .garbage: "send a line that is not JSON before a report"
    case .long: "send a line of 100 kB before a report"
    case .nan: "report numbers as nan, as old versions did"
    case .sparse: "report the coordinates only"
    case .early: "report the mode before the coordinates"
    case .error: "send an ERROR line"
    case .twoD: "the receiver has no altitude"
    case .old: "report like gpsd 3.9: alt, epx and epy, but no satellite counts"
    case .second: "a second receiver, which has no fix, reports first"
    case .noReceiver: "gpsd has no receiver"
    case .ssh: "be an SSH server instead of gpsd"
    case .nmea: "be an NMEA 0183 server instead of gpsd"
    case .mute: "be a server that sends nothing"
    }
  }
}
