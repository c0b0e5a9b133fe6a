// A simulated Trivia toy, a client of a phone (TriviaToySetup) and a web server (TriviaToyPlay), with the defects of its firmware.
// Source: microprocessor.ino and ESP8266.cpp of neils95/Trivio. A documented toy listens for the phone instead of connecting to it.
// The link `phone` is opened in setup mode, and the link `server` for each request.

import Protocols

/// A simulated toy.
public struct TriviaToy: Machine {
  enum Phase: Sendable {
    case off
    case booting(until: Instant)
    /// The main loop, possibly with a server request.
    case playing(ToyExchange)
    /// Waiting to connect to the phone again.
    case waitingToReconnect(until: Instant)
    /// Connecting to the phone.
    case connecting(until: Instant)
    /// A documented toy: listening without a connection.
    case waitingForPhone
    /// Waiting for the first packet of the phone, `ok`.
    case waitingForOK(until: Instant)
    /// Sending `ok`, or the first half of it; `rest` is the other half.
    case answering(rest: [UInt8])
    /// Between the two halves of `ok` (fault `split`).
    case pausing(until: Instant, rest: [UInt8])
    /// After `ok`: input is lost.
    case busy(until: Instant)
    case waitingForCredentials(until: Instant)
    /// Connected, but sending nothing (fault `mute`).
    case mute
    /// Sending the final reply of an early firmware.
    case sendingFinalReply(ReceivedCredentials)
    /// Joining the network.
    case joining(ReceivedCredentials, until: Instant, succeeds: Bool)
  }

  static let phone: LinkName = "phone"
  static let server: LinkName = "server"

  public let schema = Schema()
  let settings: SimulatedToySettings
  var timing: ToyTiming { settings.timing }
  var phase = Phase.off
  var card = ToyCard([:], user: "")
  var random: SeededRandom
  /// The user that the card had at the start.
  public internal(set) var user = ""
  /// Whether the toy is in a network.
  public internal(set) var isOnline = false
  var origin: Instant = 0
  /// The times of future button presses.
  var presses: [Instant] = []
  var nextThrow: Instant?
  /// When the main loop retries failed requests.
  var nextRetry: Instant = 0
  /// The number of connections to the phone since the button was pressed.
  var connections = 0
  /// The number of those connections with a wrong first packet.
  var mismatches = 0
  /// The faults with a start time that have occurred.
  var triggered: Set<ToyFaultKind> = []
  var lastSend: SendID = 0
  private var reportedLED = ToyLED.off

  /// Creates a toy that is off; `started` switches it on.
  public init(_ settings: SimulatedToySettings) {
    self.settings = settings
    random = SeededRandom(seed: settings.seed)
  }

  /// The color of the LED. While the main loop is idle, a low battery takes precedence over the network state.
  public var led: ToyLED {
    switch phase {
    case .off: .off
    case .booting: .orange
    case .playing(.none): settings.battery <= 15 ? .red : isOnline ? .green : .purple
    case .playing: .blue
    case .sendingFinalReply, .joining: .pink
    default: .white
    }
  }

  public var nextWake: Instant? {
    switch phase {
    case .booting(let until), .waitingToReconnect(let until), .connecting(let until), .waitingForOK(let until), .pausing(let until, _),
      .busy(let until), .waitingForCredentials(let until), .joining(_, let until, _):
      until
    case .playing(let exchange): nextWake(during: exchange)
    case .off, .waitingForPhone, .answering, .mute, .sendingFinalReply: nil
    }
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started(let restored, _): start(restored, at: now)
    case .linkChanged(Self.phone, let state): phoneChanged(state, at: now, &effects)
    case .linkChanged(Self.server, .up): serverConnected(at: now, &effects)
    case .received(Self.phone, let bytes): receiveFromPhone(bytes, at: now, &effects)
    case .received(Self.server, let bytes): receiveFromServer(bytes, at: now, &effects)
    case .sent(let id, _) where id == lastSend: sentToPhone(at: now, &effects)
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: .notSupported, "a simulated toy takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    showLED(&effects)
    while let due = nextWake, due <= now {
      step(at: now, &effects)
      showLED(&effects)
    }
  }

  private mutating func start(_ restored: [String: [UInt8]], at now: Instant) {
    origin = now
    card = ToyCard(restored, user: settings.user)
    user = card.user
    presses = settings.presses.sorted().map { now + $0 }
    phase = .booting(until: now + timing.boot)
  }

  /// Runs the step that is due. Each step ends in a phase with a later timer, or with none.
  private mutating func step(at now: Instant, _ effects: inout Effects) {
    switch phase {
    case .playing(let exchange): stepMainLoop(exchange, at: now, &effects)
    case .booting:
      isOnline = settings.isJoined || card.storedNetwork.map(canJoin) ?? false
      report("user", user.isEmpty ? "no user on the card" : "user \(user) on the card", &effects)
      enterMainLoop(at: now)
      checkButton(at: now, &effects)
    default: stepSetup(at: now, &effects)
    }
  }

  /// Enters the main loop.
  mutating func enterMainLoop(at now: Instant) {
    phase = .playing(.none)
    nextRetry = now + timing.loopPeriod
    nextThrow = settings.throwEvery.map { now + $0 }
  }

  func canJoin(_ credentials: ReceivedCredentials) -> Bool {
    credentials.areValid && settings.network?.accepts(credentials) != false && settings.joinsAfter <= timing.join
  }

  func report(_ name: String, _ text: String, _ effects: inout Effects) { effects.append(.event(name: name, text: text)) }

  private mutating func showLED(_ effects: inout Effects) {
    guard led != reportedLED else { return }
    reportedLED = led
    report("led", "LED \(led.rawValue): \(led.meaning)", &effects)
  }
}
