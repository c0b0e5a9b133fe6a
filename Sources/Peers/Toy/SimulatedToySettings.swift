// The settings of a simulated toy, and the colors of its LED. Source: microprocessor.ino of neils95/Trivio (colors).

import Protocols

/// The settings of a simulated toy and its environment.
public struct SimulatedToySettings: Sendable {
  /// The endpoint of the phone, `tcp:HOST:PORT`.
  public var phone: String
  /// The endpoint of the web server, `tcp:HOST:PORT`.
  public var server: String
  /// HOST:PORT on which a documented toy listens for the phone, or nil for an original toy, which connects to the phone.
  public var listensAt: String?
  /// The times of button presses after the start.
  public var presses: [Nanoseconds] = [0]
  /// The interval of throws, or nil for none.
  public var throwEvery: Nanoseconds?
  /// The user number of a toy whose card has none; empty for none.
  public var user = ""
  /// The network in range, or nil if the toy can join any network.
  public var network: SimulatedWiFiNetwork?
  /// The time until the network accepts or rejects the toy.
  public var joinsAfter: Nanoseconds = 3 * .second
  /// Whether the toy has joined its network after the start, without a setup.
  public var isJoined = false
  /// The battery level in %.
  public var battery = 100
  public var faults: [ToyFault] = []
  public var timing = ToyTiming.real
  public var seed: UInt64 = 1

  /// Creates the settings of an original toy.
  public init(phone: String, server: String) { (self.phone, self.server) = (phone, server) }
}

/// The colors of the LED.
public enum ToyLED: String, Sendable {
  case off, orange, white, pink, green, purple, blue, red

  var meaning: String {
    switch self {
    case .off: "no power"
    case .orange: "starting"
    case .white: "setup mode"
    case .pink: "joining the network"
    case .green: "online"
    case .purple: "offline"
    case .blue: "server request"
    case .red: "battery low"
    }
  }
}
