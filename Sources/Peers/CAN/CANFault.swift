// The faults of a simulated CAN adapter and of the bus behind it.

import Protocols

public typealias CANFault = Fault<CANFaultKind>

/// The faults of a CAN adapter and its bus. WHEN counts the requests to the car. A fault with a start time occurs once, at the first request
/// from that time on.
public enum CANFaultKind: String, FaultKind {
  case lostFrame = "lost-frame"
  case wrongSequence = "wrong-sequence"
  case noFlowControl = "ignore-flow-control"
  case responsePending = "nrc-78"
  case negativeResponse = "nrc"
  case noResponse = "no-data"
  case blocksBroadcasts = "no-broadcasts"
  case busOff = "bus-off"
  case babble, garbage
  case silent

  public static let countedItems = "requests"

  public var defaults: (trigger: FaultTrigger, duration: Nanoseconds?) {
    switch self {
    case .responsePending: (.every(10), 300 * .millisecond)
    case .busOff: (.every(10), 2 * .second)
    case .noFlowControl, .blocksBroadcasts, .babble, .silent: (.always, nil)
    case .lostFrame, .wrongSequence, .negativeResponse, .noResponse, .garbage: (.every(10), nil)
    }
  }

  public var takesDuration: Bool { self == .responsePending || self == .busOff }
  public var takesCode: Bool { self == .negativeResponse }

  public var syntax: String {
    switch self {
    case .negativeResponse: "\(rawValue):CODE[:WHEN]"
    default: defaults.trigger == .always ? rawValue : takesDuration ? "\(rawValue)[:WHEN[:MS]]" : "\(rawValue)[:WHEN]"
    }
  }

  /// The description of the fault.
  public var help: String {
    switch self {
    case .lostFrame: "lose one frame of a response of several frames"
    case .wrongSequence: "exchange two frames of a response of several frames"
    case .noFlowControl: "send only the first frame of long responses: flow control does not reach the ECUs"
    case .responsePending: "reply with 78 (response pending) first and with the data MS (300) later"
    case .negativeResponse: "reply with a negative response, 7F SERVICE CODE; CODE has two hex digits"
    case .noResponse: "do not reply to a request"
    case .blocksBroadcasts: "block requests to all ECUs, as some gateways do"
    case .busOff: "reject all frames for MS (2000), or until the channel is opened again"
    case .babble: "fill the bus with frames of another node between the frames of the car"
    case .garbage: "insert random bytes into the lines of the adapter"
    case .silent: "never acknowledge a command, as some firmware does"
    }
  }
}
