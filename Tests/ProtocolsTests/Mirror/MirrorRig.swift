// The machine and the simulated mirror in virtual time, joined by a link that acknowledges at once unless it is told otherwise.
// It holds the machine to its contract: one write outstanding, known properties, one end of every command, no value before a name.

import Testing

@testable import Peers
@testable import Protocols

struct MirrorRig {
  static let key = Array("0123456789ABCDEF".utf8)
  static let iv = Array("FEDCBA9876543210".utf8)

  var machine: MirrorMachine
  var mirror: ESP32Mirror
  var now: Instant = 0
  /// What becomes of the next writes; acknowledged when there is nothing.
  enum Answer { case acknowledged, refused, none }
  var answers: [Answer] = []
  var answer = Answer.acknowledged
  /// The mirror takes this long to acknowledge.
  var linkDelay: Nanoseconds = 0
  var diskWorks = true
  /// The wall's clock at the instant 0.
  var epoch: Int64 = 0
  private(set) var isUp = false
  private(set) var sends: [(at: Instant, text: String)] = []
  private(set) var values: [String: Reading.Content] = [:]
  private(set) var status = ""
  private(set) var fault: String?
  private(set) var notes: [String] = []
  private(set) var events: [String] = []
  var disk: [String: [UInt8]] = [:]
  private(set) var results: [CommandID: [Result<Report, CommandError>]] = [:]
  private(set) var observing: [String] = []
  private(set) var said: [String] = []
  private(set) var stopped: Instant?
  private(set) var resets: [String] = []
  private var pending: [(at: Instant, id: SendID, bytes: [UInt8], failure: String?)] = []
  private var effects = Effects()
  private let isPlain: Bool

  init(_ options: [String: Value] = ["username": .string("Ada")], phase: Nanoseconds = 0, faults: String...) throws {
    isPlain = options["profile"] == .string("plain")
    machine = try MirrorMachine(MirrorRig.setup(options))
    mirror = ESP32Mirror(
      isPlain ? .plain : .stock(key: MirrorRig.key, iv: MirrorRig.iv), origin: -phase, faults: try faults.map { try MirrorFault($0) })
  }

  static func setup(_ options: [String: Value]) -> Setup {
    let secrets = [
      "key-file": SecretBytes(Array("ascii:".utf8) + key), "iv-file": SecretBytes(Array("ascii:".utf8) + iv),
    ]
    return Setup(options: options, secrets: options["profile"] == .string("plain") ? [:] : secrets)
  }

  /// A mirror that shows health and weather, everything permitted and switched on.
  static func collecting(_ more: [String: Value] = [:], phase: Nanoseconds = 0) throws -> MirrorRig {
    let options: [String: Value] = [
      "username": .string("Ada"), "weather": .string("sky"),
      "health": .list(["band.heart-rate", "phone.active-energy", "phone.steps", "phone.distance"]),
    ]
    return try MirrorRig(options.merging(more) { $1 }, phase: phase)
  }

  static let allOn = Dictionary(uniqueKeysWithValues: MirrorSwitch.allCases.map { ($0.rawValue, Array("on".utf8)) })

  mutating func start(restored: [String: [UInt8]] = [:], for time: Nanoseconds = 0) {
    disk = restored
    give(.started(restored: restored, wall: wall))
    connect()
    run(for: time)
  }

  mutating func connect() {
    (isUp, pending) = (true, [])
    tell(.linkChanged(.main, .up(maximumSend: 512)))
    give(.linkChanged(.main, .up(maximumSend: 512)))
  }

  mutating func disconnect(_ reason: String = "gone") {
    (isUp, pending) = (false, [])
    tell(.linkChanged(.main, .down(reason)))
    give(.linkChanged(.main, .down(reason)))
  }

  /// A daemon that was killed, and the next one with what the disk has.
  mutating func restart(_ options: [String: Value] = ["username": .string("Ada")], for time: Nanoseconds = 0) throws {
    tell(.linkChanged(.main, .down("gone")))
    machine = try MirrorMachine(MirrorRig.setup(options))
    (values, sends) = ([:], [])
    start(restored: disk, for: time)
  }

  // MARK: The machine

  private var wall: WallTime { WallTime(microseconds: epoch + now / .microsecond) }

  mutating func give(_ input: Input) {
    effects.removeAll()
    machine.handle(input, at: now, &effects)
    let (readings, list) = (effects.readings, effects.list)
    for reading in readings { take(reading) }
    for effect in list { take(effect) }
  }

  private mutating func take(_ reading: Reading) {
    let property = machine.schema.properties[reading.property]
    values[property.name] = reading.content
    if case .value(let value) = reading.content, (try? property.rule.accept(value)) != value {
      Issue.record("\(property.name): \(value)")
    }
  }

  private mutating func take(_ effect: Effect) {
    switch effect {
    case .send(_, let bytes, let id, let secret):
      if !isUp || !pending.isEmpty || !secret || id == nil { Issue.record("a write over no link, a second one, or one that is recorded") }
      let text = MirrorRig.reading(bytes, isPlain)
      sends.append((now, text))
      let answer = answers.isEmpty ? answer : answers.removeFirst()
      pending.append((answer == .none ? .max : now + linkDelay, id ?? 0, bytes, answer == .refused ? "ATT error 0x0e" : nil))
    case .complete(let id, let result): results[id, default: []].append(result)
    case .status(let word): status = word
    case .fault(let words): fault = words
    case .note(let words): notes.append(words)
    case .event(_, let words): events.append(words)
    case .observe(let reference): observing.append(reference)
    case .requestTime: give(.time(wall))
    case .store(let key, let bytes):
      if diskWorks { disk[key] = bytes.isEmpty ? nil : bytes }
      give(.stored(key: key, failure: diskWorks ? nil : "no space"))
    case .resetLink(_, let reason):
      resets.append(reason)
      disconnect(reason)
    case .stopped: stopped = now
    default: break
    }
  }

  /// What a write says, read with the cipher's other direction as the mirror does.
  static func reading(_ bytes: [UInt8], _ isPlain: Bool = false) -> String {
    if isPlain { return ESP32Receiver.latin1(bytes) }
    switch MirrorEar.read(bytes) {
    case .some(let text): return text
    case nil: return "?"
    }
  }

  // MARK: The mirror

  private mutating func tell(_ input: Input) {
    var effects = Effects()
    mirror.handle(input, at: now, &effects)
    var hangsUp = false
    for effect in effects.list {
      switch effect {
      case .event(_, let text): said.append(text)
      case .resetLink: hangsUp = true
      default: break
      }
    }
    if hangsUp, isUp { disconnect("the mirror starts again") }
  }

  /// Lets virtual time pass.
  mutating func run(for time: Nanoseconds) {
    let end = now + time
    var turns = 0
    while step(before: end) {
      turns += 1
      guard turns < 100_000 else {
        Issue.record("time stands still at \(now)")
        break
      }
    }
    now = end
  }

  private mutating func step(before end: Instant) -> Bool {
    let taken = pending.first?.at ?? .max
    let wake = machine.nextWake ?? .max
    let mirrorWake = mirror.nextWake ?? .max
    let next = min(taken, wake, mirrorWake)
    guard next <= end else { return false }
    now = max(now, next)
    if taken == next {
      let (_, id, bytes, failure) = pending.removeFirst()
      if failure == nil { tell(.received(.main, bytes)) }
      if isUp { give(.sent(id, failure: failure)) }
    } else if mirrorWake == next {
      tell(.wake)
    } else {
      give(.wake)
    }
    return true
  }

  // MARK: What a person sees and does

  var texts: [String] { sends.map(\.text) }
  mutating func forget() { sends = [] }

  func text(_ name: String) -> String? { if case .value(let value)? = values[name] { value.text } else { nil } }
  func absence(_ name: String) -> String? { if case .absent(let reason)? = values[name] { reason } else { nil } }

  mutating func set(_ name: String, _ value: Value, id: CommandID = 1) {
    let position = machine.schema.properties.firstIndex { $0.name == name } ?? -1
    give(.perform(id, .set(property: position, value)))
  }

  mutating func sendNow(id: CommandID = 1) { give(.perform(id, .run(action: 0, arguments: [:]))) }
  mutating func observe(_ reference: String, _ value: Value) { give(.observed(reference: reference, .value(value))) }

  mutating func observeAll() {
    observe("band.heart-rate", .float(72.4))
    observe("phone.active-energy", .float(310.25))
    observe("phone.steps", .float(4321))
    observe("phone.distance", .float(3.122))
    observe("sky.temperature", .float(20.3))
    observe("sky.humidity", .int(43))
    observe("sky.condition", .string("Partly cloudy"))
    observe("sky.uv-index", .float(4.85))
  }

  /// How a command ended; nil while it has not.
  func outcome(_ id: CommandID = 1) -> Result<Report, CommandError>? {
    if let count = results[id]?.count, count != 1 { Issue.record("command \(id) ended \(count) times") }
    return results[id]?.first
  }

  func report(_ id: CommandID = 1) -> Report? { try? outcome(id)?.get() }
  func refusal(_ id: CommandID = 1) -> CommandError? { if case .failure(let error)? = outcome(id) { error } else { nil } }
  func code(_ id: CommandID = 1) -> String? { if case .refused(let code, _)? = refusal(id) { code } else { nil } }
}
