// A machine and a simulated VESC in virtual time. The VESC can be swapped while it runs.

import MachineTesting

@testable import Peers
@testable import Protocols

typealias VESCRig = Host<VESCMachine, VESCLink>

struct VESCLink: LinkedSurroundings {
  var vesc: VESC
  /// Whether the link accepts writes.
  var acceptsWrites = true
  /// Whether writes reach the VESC.
  var deliversWrites = true
  private(set) var isUp = false
  /// All messages that the machine sent.
  private(set) var sends: [(at: Instant, bytes: [UInt8])] = []
  private var isOutstanding = false
  private var incoming: [[UInt8]] = []

  init(_ vesc: VESC) { self.vesc = vesc }

  var nextWake: Instant? { incoming.isEmpty ? vesc.nextWake : .min }

  mutating func wake(at now: Instant) -> [Input] {
    if !incoming.isEmpty { return [.received(.main, incoming.removeFirst())] }
    give(.wake, at: now)
    return []
  }

  mutating func started(at now: Instant) -> [Input] { change(.up(maximumSend: nil), at: now) }
  mutating func passed(to now: Instant) { vesc.advance(to: now) }

  mutating func change(_ state: LinkState, at now: Instant) -> [Input] {
    if case .up = state { isUp = true } else { isUp = false }
    isOutstanding = false
    give(.linkChanged(.main, state), at: now)
    return [.linkChanged(.main, state)]
  }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    switch effect {
    case .send(_, let bytes, let id, _):
      precondition(isUp && !isOutstanding, "a write over a link that is down or busy")
      sends.append((now, bytes))
      if deliversWrites { give(.received(.main, bytes), at: now) }
      guard let id else { return [] }
      isOutstanding = !acceptsWrites
      return acceptsWrites ? [.sent(id, failure: nil)] : []
    case .resetLink(_, let reason):
      isUp = false
      return [.linkChanged(.main, .down(reason))]
    default: return nil
    }
  }

  /// The link accepts the write in flight.
  mutating func restoreWrites() { isOutstanding = false }

  private mutating func give(_ input: Input, at now: Instant) {
    var inputs = [input]
    while !inputs.isEmpty {
      var effects = Effects()
      vesc.handle(inputs.removeFirst(), at: now, &effects)
      for case .send(_, let bytes, let id, _) in effects.list {
        if deliversWrites { incoming.append(bytes) }
        if let id { inputs.append(.sent(id, failure: nil)) }
      }
    }
  }
}

extension VESCRig {
  static let modes = [
    Setup.Subsection("eco", ["current": .float(50), "speed": .float(15)]), Setup.Subsection("sport", ["current": .float(90)]),
  ]

  init(
    _ model: VESCModel = .v600, _ options: [String: Value] = [:], modes: [Setup.Subsection] = [], phase: Double = 0,
    faults: [Fault<VESCFaultKind>] = [], at now: Instant = 0
  ) throws {
    let machine = try VESCMachine(Self.setup(options, modes: modes, phase: phase))
    self.init(machine, VESCLink(VESC(model, faults: faults, origin: now)), now: now)
  }

  static func setup(_ options: [String: Value] = [:], modes: [Setup.Subsection] = [], phase: Double = 0) -> Setup {
    Setup(options: ["protocol": .string("vesc")].merging(options) { $1 }, sections: modes.isEmpty ? [:] : ["mode": modes], phase: phase)
  }

  /// Starts another daemon with the same disk.
  mutating func restartDaemon(_ options: [String: Value] = [:], modes: [Setup.Subsection] = []) throws {
    replace(try VESCMachine(Self.setup(options, modes: modes)))
    start()
  }

  func receivedCount(_ command: VESCCommand) -> Int { surroundings.vesc.receivedCommands[command.rawValue] ?? 0 }
}
