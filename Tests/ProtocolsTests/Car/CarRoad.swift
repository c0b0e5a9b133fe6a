// The machine and the simulated car at the two ends of a link, in virtual time: every write is one read of the car, as on a
// quiet network, and the camera's server stands beside it.

import MachineTesting
import Peers

@testable import Protocols

typealias CarRoad = Host<CarMachine, CarNetwork>

struct CarNetwork: LinkedSurroundings {
  var car: AutoTTCar
  /// What the car told: frames it obeyed, exceptions, motors.
  private(set) var told: [(at: Instant, text: String)] = []
  /// Tilts are not acknowledged any more.
  var isBehind = false
  private(set) var isUp = false
  /// The link is to the car's program, and not to one that waits behind another client.
  private var isServed = false
  /// What the network holds back; nil: nothing is lost on the way.
  private var hole: [(LinkName, [UInt8])]?

  init(_ car: AutoTTCar) { self.car = car }

  var motors: String { car.motors.text }
  var exceptions: [String] { told.map(\.text).filter { $0.hasPrefix("exception") } }
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
    case .sendUnlessBacklogged(_, _, let id, _) where isBehind:
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
    if hole != nil {
      hole?.append((link, bytes))
      return sent
    }
    return sent + (link != .main || isServed ? giveCar(.received(link, bytes), at: now) : [])
  }

  /// Nothing reaches the car; the kernel takes it all the same, and delivers it afterwards.
  mutating func openHole() { hole = [] }
  mutating func closeHole(at now: Instant) -> [Input] {
    defer { hole = nil }
    return (hole ?? []).flatMap { giveCar(.received($0, $1), at: now) }
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
        case .event(_, let text): told.append((now, text))
        case .resetLink(.main, let reason): result += change(.down(reason), at: now)
        case .resetLink(let link, let reason): result += changeCamera(link, .down(reason), at: now)
        default: break
        }
      }
    }
    return result
  }
}

extension CarRoad {
  init(
    _ dialect: AutoTTCar.Dialect = .asBuilt, _ options: [String: Value] = [:], without: Set<CarFlaw> = [], faults: [CarFault] = []
  ) {
    let given: [String: Value] = ["dialect": .string(dialect.rawValue), "status-interval": .float(0)]
    let machine = CarMachine(Setup(options: given.merging(options) { $1 }, links: [.main: "tcp:car:12345"]))
    self.init(machine, CarNetwork(AutoTTCar(dialect, without: without, faults: faults)))
  }

  /// Connected, and driven ahead for a second; in a mode that was chosen first, where one is given.
  static func driving(_ dialect: AutoTTCar.Dialect = .asBuilt, mode: Int? = nil, _ options: [String: Value] = [:]) -> CarRoad {
    var road = CarRoad(dialect, options)
    road.start(for: 2 * .second)
    if let mode {
      road.set("mode", .string(String(mode)))
      road.run(for: 4 * .second)
    }
    road.give(.leaseBegan(deadline: 300 * .millisecond))
    road.drive(0.4, 0, for: .second)
    return road
  }

  mutating func closeHole() { around.closeHole(at: now).forEach { give($0) } }

  /// Only the car's time passes; the daemon is dead, or does nothing. What its will says, is said.
  mutating func runWithoutDaemon(saying messages: [LastWill.Message], for time: Nanoseconds) {
    for message in messages {
      passWithoutDaemon(until: now + message.pause)
      _ = around.giveCar(.received(.main, message.bytes), at: now)
    }
    passWithoutDaemon(until: now + time)
  }

  private mutating func passWithoutDaemon(until end: Instant) {
    while let wake = around.car.nextWake, wake <= end {
      now = max(now, wake)
      _ = around.giveCar(.wake, at: now)
    }
    now = max(now, end)
  }
}
