// The Trivia toy seen from its two servers: the phone that sets it up, and the web server with the facts. This file owns what
// it is made of and what its light shows; TriviaToySetup the handshake with the phone, TriviaToyPlay throws and what follows from them.
// It must never be better than the firmware: it does not notice that the other side has closed, and it hears one packet.
// Facts: protocols of the toy, §A and §C; §D for `documented`; the library of its Wi-Fi chip (it waits for packets alone).
//
//   phone     openLink, or listen where it is as documented; closeLink; resetLink for a connection that is cut off
//   server    openLink and closeLink, once for each request

import Protocols

/// A simulated toy.
public struct TriviaToy: Machine {
  enum Phase: Sendable {
    case off
    case booting(until: Instant)
    /// The main loop, maybe with a connection to the server.
    case playing(ToyExchange)
    case resting(until: Instant)
    case dialling(until: Instant)
    /// As documented: it listens, and nobody is there.
    case waitingForPhone
    case waitingForOK(until: Instant)
    /// Its `ok` is being sent, or the second half of it waits.
    case answering(rest: [UInt8])
    case pausing(until: Instant, rest: [UInt8])
    case busy(until: Instant)
    case waitingForCredentials(until: Instant)
    case mute
    /// The answer of an early firmware is being sent.
    case parting(ReceivedCredentials)
    case joining(ReceivedCredentials, until: Instant, succeeds: Bool)
  }

  static let phone: LinkName = "phone"
  static let server: LinkName = "server"

  public let schema = Schema()
  let settings: SimulatedToySettings
  var timing: ToyTiming { settings.timing }
  var phase = Phase.off
  var card = ToyCard([:], user: "")
  var noise: Noise
  /// The user that it speaks for: the card's of when it started.
  public internal(set) var user = ""
  /// It is in a network.
  public internal(set) var isOnline = false
  var origin: Instant = 0
  var presses: [Instant] = []
  var nextThrow: Instant?
  /// When the main loop tries again what failed.
  var nextPass: Instant = 0
  var connections = 0
  var mismatches = 0
  var triggered: Set<ToyFaultKind> = []
  var lastSend: SendID = 0
  private var reportedLED = ToyLED.off

  /// A toy without power; `started` switches it on.
  public init(_ settings: SimulatedToySettings) {
    self.settings = settings
    noise = Noise(seed: settings.seed)
  }

  /// What its light shows. A low battery takes the place of what the main loop shows.
  public var led: ToyLED {
    switch phase {
    case .off: .off
    case .booting: .orange
    case .playing(.none): settings.battery <= 15 ? .red : isOnline ? .green : .purple
    case .playing: .blue
    case .parting, .joining: .pink
    default: .white
    }
  }

  public var nextWake: Instant? {
    switch phase {
    case .booting(let until), .resting(let until), .dialling(let until), .waitingForOK(let until), .pausing(let until, _),
      .busy(let until), .waitingForCredentials(let until), .joining(_, let until, _):
      until
    case .playing(let exchange): nextWake(during: exchange)
    case .off, .waitingForPhone, .answering, .mute, .parting: nil
    }
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started(let restored, _): start(restored, at: now)
    case .linkChanged(Self.phone, let state): phoneChanged(state, at: now, &effects)
    case .linkChanged(Self.server, .up): serverIsThere(at: now, &effects)
    case .received(Self.phone, let bytes): hear(bytes, at: now, &effects)
    case .received(Self.server, let bytes): read(bytes, at: now, &effects)
    case .sent(let id, _) where id == lastSend: phoneHasHeard(at: now, &effects)
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: "no-action", "a simulated toy takes no commands"))))
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

  /// What is due now; every step ends in a phase whose moment is later, or in none.
  private mutating func step(at now: Instant, _ effects: inout Effects) {
    switch phase {
    case .playing(let exchange): stepMainLoop(exchange, at: now, &effects)
    case .booting:
      isOnline = settings.isJoined || card.remembered.map(canJoin) ?? false
      tell("user", user.isEmpty ? "its card names no user" : "its card says user \(user)", &effects)
      enterMainLoop(at: now)
      lookAtButton(at: now, &effects)
    default: stepSetup(at: now, &effects)
    }
  }

  /// The main loop begins, or begins again.
  mutating func enterMainLoop(at now: Instant) {
    phase = .playing(.none)
    nextPass = now + timing.pass
    nextThrow = settings.throwEvery.map { now + $0 }
  }

  func canJoin(_ credentials: ReceivedCredentials) -> Bool {
    credentials.isPossible && settings.network?.takes(credentials) != false && settings.joinsAfter <= timing.join
  }

  func tell(_ name: String, _ text: String, _ effects: inout Effects) { effects.append(.event(name: name, text: text)) }

  private mutating func showLED(_ effects: inout Effects) {
    guard led != reportedLED else { return }
    reportedLED = led
    tell("led", "LED \(led.rawValue): \(led.meaning)", &effects)
  }
}
