// The obd machine and the simulated adapter with a whole car, connected in virtual time. Commands are recorded with their times.

@testable import Peers
@testable import Protocols

final class VehicleRig {
  private(set) var machine: OBDMachine
  private var adapter: ELM327Adapter
  private(set) var now: Instant = 0
  private(set) var asked: [(at: Instant, command: String)] = []
  private(set) var values: [String: Reading.Content] = [:]
  /// Every published value.
  private(set) var seen: [String: Set<String>] = [:]
  private(set) var published: [String: Int] = [:]
  private(set) var status = ""
  private(set) var fault: String?
  private(set) var faults: [String] = []
  private(set) var declared = 0
  private(set) var disk: [String: [UInt8]] = [:]
  private(set) var progress: [String] = []
  private(set) var results: [CommandID: Result<Report, CommandError>] = [:]
  private var lastID: CommandID = 0
  /// Prefixes of commands that this adapter does not support.
  private var unknown: Set<String> = []
  /// Prefixes of commands that it never replies to.
  private var mute: Set<String> = []
  /// Raw replies, by how the commands begin that get them.
  var spoilt: [String: String] = [:]
  private var unheard: [[UInt8]] = []
  /// The inputs of disk and clock for the next turn.
  private var answers: [Input] = []
  private var effects = Effects()

  init(
    _ car: any Car = ElectricCar(.eGMP), rate: Double = 20, vehicle: VehicleChoice = .auto, signals: [CustomSignal] = [],
    chip: ELM327Adapter.Personality = .elm327, faults: [String] = [], unknown: Set<String> = [], mute: Set<String> = [],
    overrides: [PropertyOverride] = [],
    care: CarCare? = CarCare(), latency: Nanoseconds = AdapterTiming.real.latency, disk: [String: [UInt8]] = [:]
  ) throws {
    machine = OBDMachine(rate: rate, vehicle: vehicle, signals: signals, overrides: PropertyOverrides(overrides), care: care)
    var timing = AdapterTiming.real
    timing.latency = latency
    adapter = ELM327Adapter(car: car, personality: chip, timing: timing, faults: try faults.map { try AdapterFault($0) })
    self.disk = disk
    self.unknown = unknown
    self.mute = mute
    feedAdapter(.started(restored: [:], wall: WallTime(microseconds: 0)))
    feed(.started(restored: disk, wall: WallTime(microseconds: 0)))
    feedAdapter(.linkChanged(.main, .up(maximumSend: nil)))
    feed(.linkChanged(.main, .up(maximumSend: nil)))
  }

  /// Breaks the link and brings it up again.
  func reconnect() {
    feedAdapter(.linkChanged(.main, .down("unplugged")))
    feed(.linkChanged(.main, .down("unplugged")))
    for name in machine.values.livelyProperties.map({ machine.schema.properties[$0].name }) { values[name] = nil }
    feedAdapter(.linkChanged(.main, .up(maximumSend: nil)))
    feed(.linkChanged(.main, .up(maximumSend: nil)))
  }

  private func feed(_ input: Input) {
    effects.removeAll()
    machine.handle(input, at: now, &effects)
    let effects = effects
    for reading in effects.readings {
      let name = machine.schema.properties[reading.property].name
      values[name] = reading.content
      if case .value(let value) = reading.content { seen[name, default: []].insert(value.text) }
      published[name, default: 0] += 1
    }
    for effect in effects.list {
      switch effect {
      case .send(_, let bytes, _, _):
        asked.append((now, String(decoding: bytes.dropLast(), as: UTF8.self)))
        if mute.contains(where: asked[asked.count - 1].command.hasPrefix) { continue }
        if let reply = spoilt.first(where: { asked[asked.count - 1].command.hasPrefix($0.key) })?.value {
          unheard.append(Array(reply.utf8))
          continue
        }
        if unknown.contains(where: asked[asked.count - 1].command.hasPrefix) {
          unheard.append(Array("?\r\r>".utf8))
        } else {
          feedAdapter(.received(.main, bytes))
        }
      case .status(let word): status = word
      case .fault(let words):
        fault = words
        if let words { faults.append(words) }
      case .declare: declared += 1
      case .store(let key, let bytes):
        disk[key] = bytes
        answers.append(.stored(key: key, failure: nil))
      case .requestTime: answers.append(.time(WallTime(microseconds: 1_709_210_096_000_000)))
      case .progress(_, let report): progress.append(report.text ?? "")
      case .complete(let id, let result): results[id] = result
      default: break
      }
    }
  }

  private func answerUnknown() {
    while !unheard.isEmpty { feed(.received(.main, unheard.removeFirst())) }
  }

  private func feedAdapter(_ input: Input) {
    var effects = Effects()
    adapter.handle(input, at: now, &effects)
    for case .send(_, let bytes, let id, _) in effects.list {
      if let id { feedAdapter(.sent(id, failure: nil)) }
      feed(.received(.main, bytes))
    }
  }

  func run(for time: Nanoseconds) {
    let end = now + time
    while true {
      while !answers.isEmpty { feed(answers.removeFirst()) }
      let wakes = (machine: machine.nextWake ?? .max, adapter: adapter.nextWake ?? .max)
      let next = min(wakes.machine, wakes.adapter)
      guard next <= end else { break }
      now = max(now, next)
      if wakes.adapter <= wakes.machine { feedAdapter(.wake) } else { feed(.wake) }
      answerUnknown()
    }
    now = end
  }

  func act(_ name: String, _ arguments: [String: Value] = [:], for time: Nanoseconds = 5 * .second) -> Result<Report, CommandError>? {
    lastID += 1
    let index = machine.schema.actions.firstIndex { $0.name == name } ?? -1
    feed(.perform(lastID, .run(action: index, arguments: arguments)))
    run(for: time)
    return results[lastID]
  }

  func number(_ name: String) -> Double? { if case .value(let value)? = values[name] { value.number } else { nil } }
  func text(_ name: String) -> String? { if case .value(let value)? = values[name] { value.text } else { nil } }
  func absence(_ name: String) -> String? { if case .absent(let reason)? = values[name] { reason } else { nil } }

  /// The number of requests in the last nanoseconds, with or without a frame count.
  func count(_ request: String, last span: Nanoseconds) -> Int {
    asked.count { $0.at >= now - span && ($0.command == request || $0.command.count == request.count + 1 && $0.command.hasPrefix(request)) }
  }
}

extension CustomSignal {
  /// A signal of type float.
  init(
    _ name: String, _ request: SignalRequest, header: CANIdentifier? = nil, reply: CANIdentifier? = nil, _ expression: Expression,
    unit: String? = nil, period: Nanoseconds = .second, help: String
  ) {
    let property = Property(name, .float, unit: unit, lifetime: Self.lifetime(period), help: help)
    self.init(DataRow(property, .formula(expression), outside: .outOfRange), request, header: header, reply: reply, period: period)
  }
}
