// The session with the car: the greeting, a car that does not respond because another client holds it, and the shutdown sequence.
// Source: autott.md §7; the car attaches its receivers half a second after it accepts, and serves one client at a time.

struct CarSession: Sendable {
  /// Each case carries only what is valid in it.
  enum State: Equatable {
    /// No link, or one that is to be reset.
    case down(String)
    /// The link is up, and the first message of the car is not due yet.
    case greeting(until: Instant)
    /// The link is up, but the car does not respond.
    case silent
    case ready
    /// The daemon stops; the shutdown sequence must end by then.
    case ending(until: Instant)
  }

  /// What has expired.
  enum Expiry { case nothing, greeting, ending }

  static let silence =
    "connected, but no response: another client holds the car, or the last session ended without Disconnect; it may still be driving; "
    + "close the other client, or restart the car's program"
  static let closing = "the link is being closed"
  /// The timeout of the car's first message: its program starts slowly.
  private static let greetingTimeout: Nanoseconds = 5 * .second
  /// The device waits 1.5 s for the shutdown sequence.
  private static let endTimeout: Nanoseconds = 1_200 * .millisecond

  private(set) var state = State.down("the link is not up yet")

  var isUp: Bool { if case .down = state { false } else { true } }
  var isEnding: Bool { if case .ending = state { true } else { false } }
  var isReady: Bool { state == .ready }

  /// When the state expires; nil: never.
  var deadline: Instant? {
    switch state {
    case .greeting(let until), .ending(let until): until
    case .down, .silent, .ready: nil
    }
  }

  /// Why no command can be sent now; nil: it can.
  var unavailability: String? {
    switch state {
    case .down(let reason): reason
    case .ending: Self.closing
    case .greeting: "the car has not responded yet"
    case .silent: Self.silence
    case .ready: nil
    }
  }

  // MARK: Events

  mutating func linkUp(at now: Instant, _ effects: inout Effects) {
    state = .greeting(until: now &+ Self.greetingTimeout)
    effects.publish(.connected, .bool(false))
  }

  /// The car has sent a message: returns whether it is the first one over this link.
  mutating func responded(_ effects: inout Effects) -> Bool {
    switch state {
    case .greeting, .silent:
      state = .ready
      effects.publish(.connected, .bool(true))
      return true
    case .down, .ready, .ending: return false
    }
  }

  mutating func expire(at now: Instant, _ effects: inout Effects) -> Expiry {
    guard let deadline, now >= deadline else { return .nothing }
    switch state {
    case .greeting:
      state = .silent
      effects.publish(.connected, .bool(false))
      return .greeting
    case .ending: return .ending
    case .down, .silent, .ready: return .nothing
    }
  }

  /// The shutdown sequence begins.
  mutating func end(at now: Instant) { state = .ending(until: now &+ Self.endTimeout) }

  /// The link is lost, or must not be used any more.
  mutating func linkDown(_ reason: String) { state = .down(reason) }
}
