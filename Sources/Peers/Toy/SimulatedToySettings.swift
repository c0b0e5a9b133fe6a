// Who a simulated toy is, what is around it, and the colours of its light. Only values.
// Facts: protocols of the toy, §A and §C (the colours).

import Protocols

/// Who a simulated toy is and what is around it.
public struct SimulatedToySettings: Sendable {
  /// Where the phone listens, and the web server: `tcp:HOST:PORT`.
  public var phone: String
  public var server: String
  /// HOST:PORT where a toy as documented listens for the phone; nil: as built, it connects to the phone.
  public var listensAt: String?
  /// When its button is pressed, from its start on.
  public var presses: [Nanoseconds] = [0]
  /// How often it is thrown; nil: never.
  public var throwEvery: Nanoseconds?
  /// Whose it is when its card does not say; empty: nobody's.
  public var user = ""
  /// The network that it can join; nil: any.
  public var network: SimulatedWiFiNetwork?
  /// How long a network takes to let it in, or to refuse.
  public var joinsAfter: Nanoseconds = 3 * .second
  /// It was set up before: it is in the network when it has started.
  public var isJoined = false
  /// Its battery in %.
  public var battery = 100
  public var faults: [ToyFault] = []
  public var timing = ToyTiming.real
  public var seed: UInt64 = 1

  /// A toy as it was built.
  public init(phone: String, server: String) { (self.phone, self.server) = (phone, server) }
}

/// The colours of its light.
public enum ToyLED: String, Sendable {
  case off, orange, white, pink, green, purple, blue, red

  var meaning: String {
    switch self {
    case .off: "no power"
    case .orange: "it starts"
    case .white: "setup mode"
    case .pink: "it joins the network"
    case .green: "online"
    case .purple: "offline"
    case .blue: "it talks to the server"
    case .red: "its battery is low"
    }
  }
}
