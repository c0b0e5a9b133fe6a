// The adapter between a host and the car: an ELM327 v1.5 as real ones behave, with faults on request. Its `main` link is the
// host's line seen from the other end. This file owns the line and the clock; AdapterCommands the AT commands, AdapterReply
// what comes back from the car. It must never know what its host makes of it.
// Facts: dialogue rules and timing of the ELM327 family.

import Protocols

/// A simulated ELM327 adapter with an electric car behind it.
public struct ELM327Adapter: Machine {
  /// Which chip it says it is.
  public enum Personality: String, CaseIterable, Sendable {
    case elm327
    /// An OBDLink: answers STI.
    case stn
  }

  enum Phase: Equatable {
    case ready
    /// Any byte before this instant aborts what is under way.
    case busy(until: Instant)
    /// Hears nothing before this instant.
    case deaf(until: Instant)
    /// Prints noise without end.
    case babbling
  }

  public let schema = Schema()
  let car: ElectricCar
  let name: String?
  let personality: Personality
  let timing: AdapterTiming
  let faults: [AdapterFault]
  var noise: Noise
  var settings = AdapterSettings()
  var outbox: AdapterOutbox
  var phase = Phase.ready
  /// The protocol that outlives a reset.
  var storedProtocol = BusProtocol()
  /// What a lone CR repeats.
  var lastCommand: [UInt8] = []
  /// Requests to the car so far.
  var requests = 0
  /// Faults of a single moment that have struck, by position.
  var struck: Set<Int> = []
  /// The link is closed when everything is sent.
  var hangsUp = false
  private var line: [UInt8] = []
  var pluggedIn: Instant = 0

  private static let longestLine = 254
  private static let mostWaiting = 65_536

  /// An adapter; `baud` gives its serial line a speed, `seed` chooses the noise of its faults.
  public init(
    car: ElectricCar = ElectricCar(), name: String? = nil, personality: Personality = .elm327, timing: AdapterTiming = .real,
    baud: Int? = nil, faults: [AdapterFault] = [], seed: UInt64 = 1
  ) {
    self.car = car
    self.name = name
    self.personality = personality
    self.timing = timing
    self.faults = faults
    noise = Noise(seed: seed)
    outbox = AdapterOutbox(baud: baud)
  }

  public var nextWake: Instant? { outbox.nextDue }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started: pluggedIn = now
    case .linkChanged(.main, .up): powerUp(at: now)
    case .linkChanged(.main, .down): unplug(at: now)
    case .received(.main, let bytes):
      for byte in bytes { hear(byte, at: now) }
    case .sent(let id, let failure):
      outbox.sent(id)
      if failure != nil { outbox.clear(at: now) }
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: "no-action", "a simulated adapter takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    if phase == .babbling, outbox.isEmpty { outbox.add(babble(), at: now + 10 * .millisecond) }
    outbox.flush(at: now, &effects)
    if hangsUp, outbox.isEmpty, !outbox.isSending {
      hangsUp = false
      effects.append(.resetLink(.main, reason: "the adapter was unplugged"))
    }
  }

  private mutating func powerUp(at now: Instant) {
    unplug(at: now)
    restoreDefaults()
    phase = .ready
  }

  private mutating func unplug(at now: Instant) {
    outbox.reset(at: now)
    line = []
    hangsUp = false
    phase = .deaf(until: .max)
  }

  mutating func restoreDefaults() {
    settings = AdapterSettings()
    settings.busProtocol = storedProtocol
    lastCommand = []
  }

  /// One byte from the host, as the chip takes it.
  private mutating func hear(_ byte: UInt8, at now: Instant) {
    switch phase {
    case .ready: break
    case .babbling: return
    case .deaf(let end) where now < end: return
    case .busy(let end) where now < end: return interrupt(at: now)
    case .deaf, .busy: phase = .ready
    }
    guard outbox.waiting < ELM327Adapter.mostWaiting else { return }
    switch byte {
    case 0x00, 0x0A: return
    case 0x0D:
      if settings.echo { outbox.add(settings.endOfLine, at: now) }
      let command = line
      line = []
      run(command, at: now, from: now + outbox.duration(of: command.count + 1))
    default:
      if settings.echo { outbox.add([byte], at: now) }
      guard byte > 0x20, line.count < ELM327Adapter.longestLine else { return }
      line.append((0x61...0x7A).contains(byte) ? byte - 0x20 : byte)
    }
  }

  /// The byte that interrupts is lost; those behind it begin a new command.
  private mutating func interrupt(at now: Instant) {
    outbox.clear(at: now)
    outbox.add(settings.line("STOPPED") + settings.prompt, at: now)
    phase = .ready
  }

  private mutating func run(_ command: [UInt8], at now: Instant, from start: Instant) {
    let command = command.isEmpty ? lastCommand : command
    lastCommand = command
    if command.isEmpty {
      outbox.add(settings.prompt, at: start)
    } else if command.starts(with: Array("AT".utf8)) {
      attention(String(decoding: command.dropFirst(2), as: UTF8.self), at: start)
    } else if command.starts(with: Array("ST".utf8)) {
      identify(String(decoding: command.dropFirst(2), as: UTF8.self), at: start)
    } else {
      request(command, at: now, from: start)
    }
    if case .ready = phase, outbox.end > now { phase = .busy(until: outbox.end) }
  }

  /// Whether this fault is there all of the time.
  func suffers(_ kind: AdapterFault.Kind) -> Bool { faults.contains { $0.kind == kind } }

  /// Prints a line and the prompt.
  mutating func say(_ text: String, at instant: Instant) {
    outbox.add(settings.line(text) + settings.prompt, at: instant)
  }
}
