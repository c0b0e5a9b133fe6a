// The machine and the simulated car at the two ends of a link, in virtual time: every write is one read of the car, as on a
// quiet network, and the camera's server stands beside it.

import MachineTesting
import Peers

@testable import Protocols

typealias CarSimulation = Host<CarMachine, CarNetwork>

struct CarNetwork: LinkedSurroundings {
  var car: AutoTTCar
  /// The reports of the simulated car: executed frames, exceptions, motors.
  private(set) var reports: [(at: Instant, text: String)] = []
  /// Whether tilts are no longer acknowledged.
  var rejectsTilts = false
  private(set) var isUp = false
  /// Whether the car's program serves this link, and not another client.
  private var isServed = false
  /// The segments that the network delays; nil: it delays none.
  private var delayed: [(LinkName, [UInt8])]?

  init(_ car: AutoTTCar) { self.car = car }

  var motors: String { car.motors.text }
  var exceptions: [String] { reports.map(\.text).filter { $0.hasPrefix("exception") } }
  var nextWake: Instant? { car.nextWake }

  mutating func wake(at now: Instant) -> [Input] { giveCar(.wake, at: now) }

  mutating func started(at now: Instant) -> [Input] {
    giveCar(.started(restored: [:], wall: WallTime(microseconds: 0)), at: now) + change(.up(maximumSend: nil), at: now)
  }

  /// The car accepts one connection in the life of its program.
  mutating func change(_ state: LinkState, at now: Instant) -> [Input] {
    if case .up = state {
      (isUp, isServed) = (true, car.isWaiting)
    } else {
      guard isUp else { return [] }
      isUp = false
    }
    return [.linkChanged(.main, state)] + (isServed ? giveCar(.linkChanged(.main, state), at: now) : [])
  }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    switch effect {
    case .send(let link, let bytes, let id, _): return write(link, bytes, id, at: now)
    case .sendUnlessBacklogged(_, _, let id, _) where rejectsTilts:
      return [.sent(id, failure: "the other side has not acknowledged the last 3000 bytes")]
    case .sendUnlessBacklogged(let link, let bytes, let id, _): return write(link, bytes, id, at: now)
    case .openLink(let link, _): return changeCamera(link, .up(maximumSend: nil), at: now)
    case .closeLink(let link): return changeCamera(link, .down("closed by the device"), at: now)
    case .resetLink(_, let reason): return change(.down(reason), at: now)
    default: return nil
    }
  }

  private mutating func changeCamera(_ link: LinkName, _ state: LinkState, at now: Instant) -> [Input] {
    [.linkChanged(link, state)] + giveCar(.linkChanged(link, state), at: now)
  }

  private mutating func write(_ link: LinkName, _ bytes: [UInt8], _ id: SendID?, at now: Instant) -> [Input] {
    let sent: [Input] = id.map { [.sent($0, failure: nil)] } ?? []
    if delayed != nil {
      delayed?.append((link, bytes))
      return sent
    }
    return sent + (link != .main || isServed ? giveCar(.received(link, bytes), at: now) : [])
  }

  /// Delays all segments to the car, which the kernel accepts nevertheless, until `deliverSegments`.
  mutating func delaySegments() { delayed = [] }
  mutating func deliverSegments(at now: Instant) -> [Input] {
    defer { delayed = nil }
    return (delayed ?? []).flatMap { giveCar(.received($0, $1), at: now) }
  }

  /// Gives an input to the car, and returns what the machine receives.
  mutating func giveCar(_ input: Input, at now: Instant) -> [Input] {
    var (inputs, result): ([Input], [Input]) = ([input], [])
    while !inputs.isEmpty {
      var effects = Effects()
      car.handle(inputs.removeFirst(), at: now, &effects)
      for effect in effects.list {
        switch effect {
        case .send(let link, let bytes, let id, _):
          result.append(.received(link, bytes))
          if let id { inputs.append(.sent(id, failure: nil)) }
        case .event(_, let text): reports.append((now, text))
        case .resetLink(.main, let reason): result += change(.down(reason), at: now)
        case .resetLink(let link, let reason): result += changeCamera(link, .down(reason), at: now)
        default: break
        }
      }
    }
    return result
  }
}

extension CarSimulation {
  init(
    _ dialect: AutoTTCar.Dialect = .asBuilt, _ options: [String: Value] = [:], without: Set<CarFlaw> = [], faults: [CarFault] = []
  ) {
    let given: [String: Value] = ["dialect": .string(dialect.rawValue), "status-interval": .float(0)]
    let machine = CarMachine(Setup(options: given.merging(options) { $1 }, links: [.main: "tcp:car:12345"]))
    self.init(machine, CarNetwork(AutoTTCar(dialect, without: without, faults: faults)))
  }

  /// A connected car that was driven ahead for a second, in this mode.
  static func driving(_ dialect: AutoTTCar.Dialect = .asBuilt, mode: Int? = nil, _ options: [String: Value] = [:]) -> CarSimulation {
    var simulation = CarSimulation(dialect, options)
    simulation.start(for: 2 * .second)
    if let mode {
      simulation.set("mode", .string(String(mode)))
      simulation.run(for: 4 * .second)
    }
    simulation.give(.leaseBegan(deadline: 300 * .millisecond))
    simulation.drive(0.4, 0, for: .second)
    return simulation
  }

  mutating func deliverSegments() { surroundings.deliverSegments(at: now).forEach { give($0) } }

  /// Runs the car without the daemon, which is dead or frozen, and sends these last-will frames.
  mutating func runWithoutDaemon(sending messages: [LastWill.Message], for time: Nanoseconds) {
    for message in messages {
      advanceWithoutDaemon(until: now + message.pause)
      _ = surroundings.giveCar(.received(.main, message.bytes), at: now)
    }
    advanceWithoutDaemon(until: now + time)
  }

  private mutating func advanceWithoutDaemon(until end: Instant) {
    while let wake = surroundings.car.nextWake, wake <= end {
      now = max(now, wake)
      _ = surroundings.giveCar(.wake, at: now)
    }
    now = max(now, end)
  }
}
