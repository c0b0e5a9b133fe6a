// The machine and the simulated car at the two ends of a link, in virtual time: every write is one read of the car, as on a
// quiet network, and the camera's server stands beside it.

import Peers

@testable import Protocols

struct CarRoad {
  var machine: CarMachine
  var car: AutoTTCar
  var now: Instant = 0
  private(set) var values: [String: Reading.Content] = [:]
  private(set) var results: [CommandID: [Result<Report, CommandError>]] = [:]
  private(set) var lost: [String] = []
  private(set) var notes: [String] = []
  private(set) var word = ""
  private(set) var fault: String?
  private(set) var will: LastWill?
  private(set) var hasStopped = false
  /// What is stored, and handed to the machine that is started.
  var disk: [String: [UInt8]] = [:]
  /// What the car told: frames it obeyed, exceptions, motors.
  private(set) var events: [(at: Instant, text: String)] = []
  /// Tilts are not acknowledged any more.
  var isBehind = false
  private var isUp = false
  /// The link is to the car's program, and not to one that waits behind another client.
  private var isServed = false
  /// What the network holds back; nil: nothing is lost on the way.
  private var hole: [(LinkName, [UInt8])]?
  private var toMachine: [Input] = []
  private var machineEffects = Effects()
  private var toCar: [Input] = []
  private var lastCommand: CommandID = 0

  init(
    _ dialect: AutoTTCar.Dialect = .asBuilt, _ options: [String: Value] = [:], without: Set<CarFlaw> = [], faults: [CarFault] = []
  ) {
    let given: [String: Value] = ["dialect": .string(dialect.rawValue), "status-interval": .float(0)]
    machine = CarMachine(Setup(options: given.merging(options) { $1 }, links: [.main: "tcp:car:12345"]))
    car = AutoTTCar(dialect, without: without, faults: faults)
  }

  /// Connected, and driven ahead for a second; in a mode that was chosen first, where one is given.
  static func driving(_ dialect: AutoTTCar.Dialect = .asBuilt, mode: Int? = nil, _ options: [String: Value] = [:]) -> CarRoad {
    var road = CarRoad(dialect, options)
    road.start()
    if let mode {
      _ = road.set("mode", .string(String(mode)))
      road.run(for: 4 * .second)
    }
    road.give(.leaseBegan(deadline: 300 * .millisecond))
    road.drive(for: .second)
    return road
  }

  mutating func start() {
    give(.started(restored: disk, wall: WallTime(microseconds: 0)))
    toCar.append(.started(restored: [:], wall: WallTime(microseconds: 0)))
    connect()
    run(for: 2 * .second)
  }

  /// A connection; the car accepts one in the life of its program.
  mutating func connect() {
    (isUp, isServed) = (true, car.isWaiting)
    if isServed { toCar.append(.linkChanged(.main, .up(maximumSend: nil))) }
    give(.linkChanged(.main, .up(maximumSend: nil)))
  }

  /// Nothing reaches the car; the kernel takes it all the same, and delivers it afterwards.
  mutating func openHole() { hole = [] }
  mutating func closeHole() {
    for (link, bytes) in hole ?? [] { toCar.append(.received(link, bytes)) }
    hole = nil
    settle()
  }

  mutating func give(_ input: Input) {
    toMachine.append(input)
    settle()
  }

  /// Everything that follows at once.
  private mutating func settle() {
    while !toMachine.isEmpty || !toCar.isEmpty {
      if !toMachine.isEmpty {
        machineEffects.removeAll()
        machine.handle(toMachine.removeFirst(), at: now, &machineEffects)
        let effects = machineEffects
        for reading in effects.readings { values[machine.schema.properties[reading.property].name] = reading.content }
        for effect in effects.list { machineWants(effect) }
      } else {
        var effects = Effects()
        car.handle(toCar.removeFirst(), at: now, &effects)
        for effect in effects.list { carWants(effect) }
      }
    }
  }

  private mutating func machineWants(_ effect: Effect) {
    switch effect {
    case .send(let link, let bytes, let id, _): write(link, bytes, id)
    case .sendUnlessBehind(let link, let bytes, let id, _):
      if isBehind {
        toMachine.append(.sent(id, failure: "the other side has not acknowledged the last 3000 bytes"))
      } else {
        write(link, bytes, id)
      }
    case .openLink(let link, _):
      toCar.append(.linkChanged(link, .up(maximumSend: nil)))
      toMachine.append(.linkChanged(link, .up(maximumSend: nil)))
    case .closeLink(let link):
      toCar.append(.linkChanged(link, .down("closed")))
      toMachine.append(.linkChanged(link, .down("closed by the device")))
    case .complete(let id, let result): results[id, default: []].append(result)
    case .leaseLost(let reason): lost.append(reason)
    case .note(let text): notes.append(text)
    case .status(let word): self.word = word
    case .fault(let words): fault = words
    case .lastWill(_, let will): self.will = will
    case .resetLink(_, let reason): cut(reason)
    case .stopped: hasStopped = true
    case .store(let key, let bytes):
      disk[key] = bytes.isEmpty ? nil : bytes
      toMachine.append(.stored(key: key, failure: nil))
    default: break
    }
  }

  private mutating func write(_ link: LinkName, _ bytes: [UInt8], _ id: SendID?) {
    if hole != nil { hole?.append((link, bytes)) } else if link != .main || isServed { toCar.append(.received(link, bytes)) }
    if let id { toMachine.append(.sent(id, failure: nil)) }
  }

  private mutating func carWants(_ effect: Effect) {
    switch effect {
    case .send(let link, let bytes, let id, _):
      toMachine.append(.received(link, bytes))
      if let id { toCar.append(.sent(id, failure: nil)) }
    case .event(_, let text): events.append((now, text))
    case .resetLink(.main, let reason): cut(reason)
    case .resetLink(let link, let reason):
      toCar.append(.linkChanged(link, .down("closed")))
      toMachine.append(.linkChanged(link, .down(reason)))
    default: break
    }
  }

  /// The link is gone for both of them.
  mutating func cut(_ reason: String = "the cable is out") {
    guard isUp else { return }
    isUp = false
    if isServed { toCar.append(.linkChanged(.main, .down(reason))) }
    toMachine.append(.linkChanged(.main, .down(reason)))
    settle()
  }

  mutating func run(for time: Nanoseconds) {
    let end = now + time
    settle()
    while let next = [machine.nextWake, car.nextWake].compactMap(\.self).min(), next <= end {
      now = max(now, next)
      if let wake = machine.nextWake, wake <= now { toMachine.append(.wake) } else { toCar.append(.wake) }
      settle()
    }
    now = end
  }

  /// Only the car's time passes; the daemon is dead, or does nothing. What its will says, is said.
  mutating func runWithoutDaemon(saying messages: [LastWill.Message], for time: Nanoseconds) {
    for message in messages {
      passWithoutDaemon(until: now + message.pause)
      giveCar(.received(.main, message.bytes))
    }
    passWithoutDaemon(until: now + time)
  }

  private mutating func passWithoutDaemon(until end: Instant) {
    while let wake = car.nextWake, wake <= end {
      now = max(now, wake)
      giveCar(.wake)
    }
    now = max(now, end)
  }

  private mutating func giveCar(_ input: Input) {
    var inputs = [input]
    while !inputs.isEmpty {
      var effects = Effects()
      car.handle(inputs.removeFirst(), at: now, &effects)
      for effect in effects.list {
        if case .event(_, let text) = effect { events.append((now, text)) }
        if case .send(_, _, let id?, _) = effect { inputs.append(.sent(id, failure: nil)) }
      }
    }
  }

  mutating func drive(_ roll: Double = 0.4, _ pitch: Double = 0, for time: Nanoseconds) {
    for _ in 0..<(time * 60 / .second) {
      _ = act(.tilt, ["roll": .float(roll), "pitch": .float(pitch)])
      run(for: .second / 60)
    }
  }

  mutating func act(_ action: CarAction, _ arguments: [String: Value] = [:]) -> CommandID {
    lastCommand += 1
    give(.perform(lastCommand, .run(action: action.rawValue, arguments: arguments)))
    return lastCommand
  }

  mutating func set(_ name: String, _ value: Value) -> CommandID {
    lastCommand += 1
    if let property = machine.schema.properties.firstIndex(where: { $0.name == name }) {
      give(.perform(lastCommand, .set(property: property, value)))
    }
    return lastCommand
  }

  // MARK: What there is to see

  var motors: String { car.motors.text }
  func text(_ name: String) -> String? { if case .value(let value)? = values[name] { value.text } else { nil } }
  func number(_ name: String) -> Double? { if case .value(let value)? = values[name] { value.number } else { nil } }
  func absence(_ name: String) -> String? { if case .absent(let reason)? = values[name] { reason } else { nil } }
  func complaint(_ id: CommandID) -> String? {
    switch results[id]?.first {
    case .failure(.refused(_, let words)), .failure(.notConnected(let words)): words
    default: nil
    }
  }
  func succeeded(_ id: CommandID) -> Bool {
    guard results[id]?.count == 1, case .success? = results[id]?.first else { return false }
    return true
  }
  var exceptions: [String] { events.map(\.text).filter { $0.hasPrefix("exception") } }
}
