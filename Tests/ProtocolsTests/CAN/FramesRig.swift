// The obd machine over frames and the simulated CAN adapter with a whole car, connected in virtual time.

import MachineTesting
import Testing

@testable import Peers
@testable import Protocols

typealias FramesRig = Host<VehicleMachine<FramesSession>, SLCANLink>

struct SLCANLink: LinkedSurroundings {
  private var link: PeerLink<SLCANAdapter>
  /// The lines that the machine has sent, with their times.
  private(set) var sentLines: [(at: Instant, line: String)] = []
  /// Whether the adapter receives what is sent.
  var isConnected = true
  /// The time that bytes take to the adapter, and from it.
  var delay: Nanoseconds = 0
  /// Whether the adapter acknowledges the frames that it sends.
  var acknowledges = true
  private var toAdapter: [(due: Instant, effect: Effect)] = []
  private var toMachine: [(due: Instant, input: Input)] = []

  init(_ adapter: SLCANAdapter) { link = PeerLink(adapter) }

  var nextWake: Instant? { [link.nextWake, toAdapter.first?.due, toMachine.first?.due].compactMap { $0 }.min() }

  mutating func wake(at now: Instant) -> [Input] {
    if let due = link.nextWake, due <= now { deliver(link.wake(at: now), at: now) }
    while let first = toAdapter.first, first.due <= now {
      toAdapter.removeFirst()
      deliver(link.perform(first.effect, at: now) ?? [], at: now)
    }
    let due = toMachine.prefix { $0.due <= now }
    toMachine.removeFirst(due.count)
    return due.map(\.input)
  }

  private mutating func deliver(_ inputs: [Input], at now: Instant) {
    toMachine += inputs.map { (now + delay, withoutAcknowledgements($0)) }
  }

  private func withoutAcknowledgements(_ input: Input) -> Input {
    guard !acknowledges, case .received(let link, let bytes) = input else { return input }
    return .received(link, Array(String(decoding: bytes, as: UTF8.self).replacing("z\r", with: "").utf8))
  }

  mutating func change(_ state: LinkState, at now: Instant) -> [Input] { link.change(state, at: now) }

  mutating func started(at now: Instant) -> [Input] {
    link.give(.started(restored: [:], wall: WallTime(microseconds: 0)), at: now) + change(.up(maximumSend: nil), at: now)
  }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    if case .resetLink = effect { return [] }
    guard case .send(_, let bytes, _, _) = effect else { return nil }
    sentLines += String(decoding: bytes, as: UTF8.self).split(separator: "\r").map { (now, String($0)) }
    guard isConnected else { return [] }
    if delay > 0 { toAdapter.append((now + delay, effect)) }
    return delay > 0 ? [] : link.perform(effect, at: now).map { $0.map(withoutAcknowledgements) }
  }

  /// The frames that were sent.
  var sentFrames: [(at: Instant, line: String)] { sentLines.filter { $0.line.hasPrefix("t") || $0.line.hasPrefix("T") } }
}

extension FramesRig {
  var sentLinesCount: Int { surroundings.sentLines.count }
  /// The sent lines that begin with this text.
  func sent(_ prefix: String) -> [(at: Instant, line: String)] { surroundings.sentLines.filter { $0.line.hasPrefix(prefix) } }

  init(
    _ car: any Car = ElectricCar(.eGMP), rate: Double = 20, vehicle: VehicleChoice = .auto, signals: [CustomSignal] = [],
    faults: [String] = [],
    bitRate: Int? = 500_000, maxLoad: Double = 0.3, isInstant: Bool = false, allowRaw: Bool = false,
    pauseConditions: PauseConditions? = PauseConditions(),
    voltageProperty: String? = nil, disk: [String: [UInt8]] = [:]
  ) throws {
    let machine = VehicleMachine(
      FramesSession(.slcan(bitRate: bitRate), maxLoad: maxLoad), rate: rate, allowRaw: allowRaw, vehicle: vehicle, signals: signals,
      pauseConditions: pauseConditions, voltageProperty: voltageProperty)
    self.init(machine, SLCANLink(SLCANAdapter(car: car, isInstant: isInstant, faults: try faults.map { try CANFault($0) })))
    start(restored: disk)
  }

  /// The report of an action that succeeds.
  mutating func report(_ name: String, _ arguments: [String: Value] = [:], for time: Nanoseconds = 5 * .second) throws -> Report {
    let id = run(name, arguments)
    run(for: time)
    let outcome = outcome(id)
    return try #require(outcome).get()
  }
}
