// The session with the car: the wait for its first message, the state in which the car serves another client and does not respond, and
// the shutdown sequence. The car attaches its receivers half a second after it accepts a connection, and serves one client at a time.
// Source: AutoTT, TCP.py and mainLoop.py.

struct CarSession: Sendable {
  enum State: Equatable {
    /// No link, or a link that is being reset; the reason is a message.
    case down(String)
    /// The link is up, and the car's first message is awaited until this time.
    case greeting(until: Instant)
    /// The link is up, but the car's first message has not arrived in time.
    case silent
    case ready
    /// The shutdown sequence (Stop, Stop, Disconnect) is being sent; it must end by this time.
    case closing(until: Instant)
  }

  /// The state that has expired.
  enum Expiry { case nothing, greeting, closing }

  static let silentMessage =
    "connected, but no response: another client is connected to the car, or the last session ended without Disconnect; the car may still "
    + "be driving; close the other client, or restart the car's program"
  static let closingMessage = "the link is being closed"
  /// The timeout of the car's first message. It is long, because the car's program starts slowly.
  private static let greetingTimeout: Nanoseconds = 5 * .second
  /// The timeout of the shutdown sequence; the daemon closes the device after 1.5 s.
  private static let shutdownTimeout: Nanoseconds = 1_200 * .millisecond

  private(set) var state = State.down("the link is not up yet")

  var isUp: Bool { if case .down = state { false } else { true } }
  var isClosing: Bool { if case .closing = state { true } else { false } }
  var isReady: Bool { state == .ready }

  /// When the state expires; nil if it does not expire.
  var deadline: Instant? {
    switch state {
    case .greeting(let until), .closing(let until): until
    case .down, .silent, .ready: nil
    }
  }

  /// Why no command can be sent now; nil if commands can be sent.
  var unavailability: String? {
    switch state {
    case .down(let reason): reason
    case .closing: Self.closingMessage
    case .greeting: "the car has not responded yet"
    case .silent: Self.silentMessage
    case .ready: nil
    }
  }

  // MARK: Events

  mutating func linkUp(at now: Instant, _ effects: inout Effects) {
    state = .greeting(until: now &+ Self.greetingTimeout)
    effects.publish(.connected, .bool(false))
  }

  /// Handles a message of the car; returns whether it is the first one over this link, which begins the session.
  mutating func messageReceived(_ effects: inout Effects) -> Bool {
    switch state {
    case .greeting, .silent:
      state = .ready
      effects.publish(.connected, .bool(true))
      return true
    case .down, .ready, .closing: return false
    }
  }

  mutating func expire(at now: Instant, _ effects: inout Effects) -> Expiry {
    guard let deadline, now >= deadline else { return .nothing }
    switch state {
    case .greeting:
      state = .silent
      effects.publish(.connected, .bool(false))
      return .greeting
    case .closing: return .closing
    case .down, .silent, .ready: return .nothing
    }
  }

  /// Begins the shutdown sequence.
  mutating func beginShutdown(at now: Instant) { state = .closing(until: now &+ Self.shutdownTimeout) }

  /// Ends the session, because the link is lost or must no longer be used.
  mutating func linkDown(_ reason: String) { state = .down(reason) }
}
