// A simulated ELM327 v1.5 between a host and a car, with optional faults. AdapterCommands runs the AT commands; AdapterReply and
// AdapterExchange produce the replies of the car.

import Protocols

/// A simulated ELM327 adapter with a car behind it.
public struct ELM327Adapter: Machine {
  /// The chip that the adapter identifies as.
  public enum Personality: String, CaseIterable, Sendable {
    case elm327
    /// An OBDLink, which supports ST commands such as STI and STPX.
    case stn
  }

  enum Phase: Equatable {
    case ready
    /// Any byte before this instant aborts the running command.
    case busy(until: Instant)
    /// Input is ignored before this instant.
    case unresponsive(until: Instant)
    /// Prints random bytes without end.
    case babbling
  }

  struct LowPower: Sendable {
    /// The time at which the warning is due, or nil once it has been printed.
    var warning: Instant?
    /// The time at which the adapter falls asleep. After that, any input restarts it.
    var asleepFrom: Instant

    init(warning: Instant, asleepFrom: Instant) { (self.warning, self.asleepFrom) = (warning, asleepFrom) }
  }

  public let schema = Schema()
  var car: any Car
  let name: String?
  let personality: Personality
  let timing: AdapterTiming
  let faults: [AdapterFault]
  var random: SeededRandom
  var settings = AdapterSettings()
  var sendQueue: SendQueue
  var phase = Phase.ready
  /// The protocol that survives a reset.
  var storedProtocol = SimulatedProtocol()
  /// The command that a lone CR repeats.
  var lastCommand: [UInt8] = []
  /// The number of requests to the car so far.
  var requestCount = 0
  /// The indices of faults with a start time that have occurred.
  var triggered: Set<Int> = []
  /// Frames that the fault `stale` holds back until the next request.
  var stale: [OBDFrame] = []
  /// Frames that arrive after the prompt.
  var late: [Arrival] = []
  /// Set by ATLP or STSLEEP.
  var lowPower: LowPower?
  /// STSLU: whether the adapter sleeps after 20 min without input. Only the setting is simulated.
  var sleepsWhenIdle = false
  /// Whether the link is reset once everything is sent.
  var closesLink = false
  /// The current line of input, without its CR.
  private var inputLine: [UInt8] = []
  var pluggedInAt: Instant = 0
  /// The number of connections so far.
  private var connections: Int

  private static let maxLineLength = 254
  private static let maxQueuedBytes = 65_536

  /// Creates an adapter. `baud` is the speed of its serial line, or nil for no limit; `seed` determines random faults; `connections` is the
  /// number of earlier connections.
  public init(
    car: any Car = ElectricCar(), name: String? = nil, personality: Personality = .elm327, timing: AdapterTiming = .real,
    baud: Int? = nil, faults: [AdapterFault] = [], seed: UInt64 = 1, connections: Int = 0
  ) {
    self.car = car
    self.name = name
    self.personality = personality
    self.timing = timing
    self.faults = faults
    random = SeededRandom(seed: seed)
    self.connections = connections
    sendQueue = SendQueue(baud: baud)
    settings = settingsAfterReset
  }

  /// The settings after a reset, including those that faults change.
  private var settingsAfterReset: AdapterSettings {
    var settings = AdapterSettings()
    settings.losesLineEnds = hasFault(.noLineEnds)
    settings.omitsChecksums = hasFault(.noChecksum)
    settings.padsWithoutHeaders = hasFault(.padsZeros)
    settings.alwaysDetectsProtocol = hasFault(.ignoresProtocol)
    return settings
  }

  public var nextWake: Instant? {
    guard let warning = lowPower?.warning else { return sendQueue.nextDue }
    return min(warning, sendQueue.nextDue ?? .max)
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started: pluggedInAt = now
    case .linkChanged(.main, .up): powerUp(at: now)
    case .linkChanged(.main, .down): unplug(at: now)
    case .received(.main, let bytes):
      for byte in bytes { receive(byte, at: now) }
    case .sent(let id, let failure):
      sendQueue.sent(id)
      if failure != nil { sendQueue.clear(at: now) }
    case .perform(let id, _):
      effects.append(.complete(id, .failure(.refused(code: .notSupported, "a simulated adapter takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    if let warning = lowPower?.warning, warning <= now {
      lowPower?.warning = nil
      sendQueue.add(settings.line("LP ALERT") + settings.prompt, at: now)
    }
    if phase == .babbling, sendQueue.isEmpty { sendQueue.add(randomBurst(), at: now + 10 * .millisecond) }
    sendQueue.flush(at: now, &effects)
    if closesLink, sendQueue.isEmpty, !sendQueue.isSending {
      closesLink = false
      effects.append(.resetLink(.main, reason: "the adapter was unplugged"))
    }
  }

  private mutating func powerUp(at now: Instant) {
    unplug(at: now)
    restoreDefaults()
    connections += 1
    phase = hasFault(.onceOnly) && connections > 1 ? .unresponsive(until: .max) : .ready
  }

  private mutating func unplug(at now: Instant) {
    sendQueue.reset(at: now)
    inputLine = []
    (stale, late, lowPower) = ([], [], nil)
    closesLink = false
    phase = .unresponsive(until: .max)
  }

  /// Resets all settings except the stored protocol.
  mutating func restoreDefaults() {
    settings = settingsAfterReset
    settings.obdProtocol = storedProtocol
    lastCommand = []
  }

  /// Handles one byte from the host.
  private mutating func receive(_ byte: UInt8, at now: Instant) {
    // The byte that wakes the adapter is lost.
    if let lowPower, now >= lowPower.asleepFrom { return restart(at: now + timing.warmStart) }
    switch phase {
    case .ready: break
    case .babbling: return
    case .unresponsive(let end) where now < end: return
    case .busy(let end) where now < end: return interrupt(at: now)
    case .unresponsive, .busy: phase = .ready
    }
    guard sendQueue.queuedBytes < ELM327Adapter.maxQueuedBytes else { return }
    switch byte {
    case 0x0A where hasFault(.oddLF): respond("?", at: now)
    case 0x00, 0x0A: return
    case 0x0D:
      if settings.echo { sendQueue.add(settings.endOfLine, at: now) }
      let command = inputLine
      inputLine = []
      run(command, at: now, from: now + sendQueue.duration(of: command.count + 1))
    default:
      if settings.echo { sendQueue.add([byte], at: now) }
      guard byte > 0x20, inputLine.count < ELM327Adapter.maxLineLength else { return }
      inputLine.append((0x61...0x7A).contains(byte) ? byte - 0x20 : byte)
    }
  }

  /// Aborts the running command. The interrupting byte is lost; later ones start a new command.
  private mutating func interrupt(at now: Instant) {
    sendQueue.clear(at: now)
    sendQueue.add(settings.line("STOPPED") + settings.prompt, at: now)
    phase = .ready
  }

  private mutating func run(_ command: [UInt8], at now: Instant, from start: Instant) {
    if command.isEmpty, hasFault(.noRepeat) { return respond("?", at: start) }
    let command = command.isEmpty ? lastCommand : command
    lastCommand = command
    if command.isEmpty {
      sendQueue.add(settings.prompt, at: start)
    } else if command.starts(with: Array("AT".utf8)) {
      runATCommand(String(decoding: command.dropFirst(2), as: UTF8.self), at: start)
    } else if command.starts(with: Array("ST".utf8)) {
      runSTCommand(String(decoding: command.dropFirst(2), as: UTF8.self), at: now, from: start)
    } else {
      runRequest(command, at: now, from: start)
    }
    if case .ready = phase, sendQueue.transmissionEnd > now { phase = .busy(until: sendQueue.transmissionEnd) }
  }

  /// Whether a fault of this kind is configured.
  func hasFault(_ kind: AdapterFault.Kind) -> Bool { faults.contains { $0.kind == kind } }

  /// Prints a line and the prompt.
  mutating func respond(_ text: String, at instant: Instant) {
    for piece in delayingPrompt((instant, settings.line(text) + settings.prompt)) { sendQueue.add(piece.bytes, at: piece.due) }
  }
}
