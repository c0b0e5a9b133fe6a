// The obd machine and the simulated adapter with a whole car, connected in virtual time. Commands are recorded with their times.

import MachineTesting
import Testing

@testable import Peers
@testable import Protocols

typealias VehicleRig = Host<OBDMachine, AdapterLink>

struct AdapterLink: LinkedSurroundings {
  private var link: PeerLink<ELM327Adapter>
  private(set) var sentCommands: [(at: Instant, command: String)] = []
  /// Prefixes of commands that this adapter does not support.
  private let unknown: Set<String>
  /// Prefixes of commands that it never replies to.
  private let mute: Set<String>
  /// Raw replies instead of those of the adapter, by the prefix of the command.
  var overriddenReplies: [String: String] = [:]

  init(_ adapter: ELM327Adapter, unknown: Set<String>, mute: Set<String>) {
    (link, self.unknown, self.mute) = (PeerLink(adapter), unknown, mute)
  }

  var nextWake: Instant? { link.nextWake }
  mutating func wake(at now: Instant) -> [Input] { link.wake(at: now) }
  mutating func change(_ state: LinkState, at now: Instant) -> [Input] { link.change(state, at: now) }

  mutating func started(at now: Instant) -> [Input] {
    link.give(.started(restored: [:], wall: WallTime(microseconds: 0)), at: now) + change(.up(maximumSend: nil), at: now)
  }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    if case .resetLink = effect { return [] }
    guard case .send(_, let bytes, _, _) = effect else { return nil }
    let command = String(decoding: bytes.dropLast(), as: UTF8.self)
    sentCommands.append((now, command))
    if mute.contains(where: command.hasPrefix) { return [] }
    let reply =
      overriddenReplies.first { command.hasPrefix($0.key) }?.value ?? (unknown.contains(where: command.hasPrefix) ? "?\r\r>" : nil)
    return reply.map { [.received(.main, Array($0.utf8))] } ?? link.perform(effect, at: now)
  }
}

extension VehicleRig {
  init(
    _ car: any Car = ElectricCar(.eGMP), rate: Double = 20, vehicle: VehicleChoice = .auto, signals: [CustomSignal] = [],
    chip: ELM327Adapter.Personality = .elm327, faults: [String] = [], unknown: Set<String> = [], mute: Set<String> = [],
    overrides: [PropertyOverride] = [],
    pauseConditions: PauseConditions? = PauseConditions(), latency: Nanoseconds = AdapterTiming.real.latency, disk: [String: [UInt8]] = [:]
  ) throws {
    let machine = OBDMachine(
      rate: rate, vehicle: vehicle, signals: signals, overrides: PropertyOverrides(overrides), pauseConditions: pauseConditions)
    var timing = AdapterTiming.real
    timing.latency = latency
    let adapter = ELM327Adapter(car: car, personality: chip, timing: timing, faults: try faults.map { try AdapterFault($0) })
    self.init(machine, AdapterLink(adapter, unknown: unknown, mute: mute))
    start(restored: disk)
  }

  /// Breaks the link and brings it up again.
  mutating func reconnect() {
    disconnect("unplugged")
    forget(machine.router.values.freshPositions)
    connect()
  }

  mutating func act(
    _ name: String, _ arguments: [String: Value] = [:], for time: Nanoseconds = 5 * .second
  ) -> Result<Report, CommandError>? {
    let id = run(name, arguments)
    run(for: time)
    return outcome(id)
  }

  /// The report of an action that succeeds.
  mutating func report(_ name: String, _ arguments: [String: Value] = [:], for time: Nanoseconds = 5 * .second) throws -> Report {
    let outcome = act(name, arguments, for: time)
    return try #require(outcome).get()
  }

  /// The number of requests in the last nanoseconds, with or without a frame count.
  func count(_ request: String, last span: Nanoseconds) -> Int {
    surroundings.sentCommands.count {
      $0.at >= now - span && ($0.command == request || $0.command.count == request.count + 1 && $0.command.hasPrefix(request))
    }
  }
}

extension CustomSignal {
  /// A signal of type float.
  init(
    _ name: String, _ request: SignalRequest, header: CANIdentifier? = nil, reply: CANIdentifier? = nil,
    addressBytes: ISOTPAddressing = .normal, _ expression: Expression, unit: String? = nil, period: Nanoseconds = .second, help: String
  ) {
    let property = Property(name, .float, unit: unit, lifetime: Self.lifetime(period), help: help)
    self.init(
      DataRow(property, .formula(expression), outOfRangeReason: .outOfRange), request, header: header, reply: reply, addressBytes,
      period: period)
  }
}
