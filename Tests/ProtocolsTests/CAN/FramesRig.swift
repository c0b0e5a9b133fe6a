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

  init(_ adapter: SLCANAdapter) { link = PeerLink(adapter) }

  var nextWake: Instant? { link.nextWake }
  mutating func wake(at now: Instant) -> [Input] { link.wake(at: now) }
  mutating func change(_ state: LinkState, at now: Instant) -> [Input] { link.change(state, at: now) }

  mutating func started(at now: Instant) -> [Input] {
    link.give(.started(restored: [:], wall: WallTime(microseconds: 0)), at: now) + change(.up(maximumSend: nil), at: now)
  }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    if case .resetLink = effect { return [] }
    guard case .send(_, let bytes, _, _) = effect else { return nil }
    sentLines += String(decoding: bytes, as: UTF8.self).split(separator: "\r").map { (now, String($0)) }
    return isConnected ? link.perform(effect, at: now) : []
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
