// The machine and the simulated mirror, joined by a link that acknowledges at once unless a test says otherwise. One write at a time,
// each of them secret.

import MachineTesting
import Testing

@testable import Peers
@testable import Protocols

typealias MirrorRig = Host<MirrorMachine, MirrorLink>

struct MirrorLink: LinkedSurroundings {
  var mirror: ESP32Mirror
  /// What becomes of the next writes; acknowledged when there is nothing.
  enum Answer { case acknowledged, refused, none }
  var answers: [Answer] = []
  var answer = Answer.acknowledged
  /// The time until the mirror acknowledges a write.
  var linkDelay: Nanoseconds = 0
  private(set) var isUp = false
  fileprivate(set) var sends: [(at: Instant, text: String)] = []
  private(set) var observing: [String] = []
  private var pending: [(at: Instant, id: SendID, bytes: [UInt8], failure: String?)] = []
  private let isPlain: Bool

  init(_ mirror: ESP32Mirror, isPlain: Bool) { (self.mirror, self.isPlain) = (mirror, isPlain) }

  var texts: [String] { sends.map(\.text) }
  var nextWake: Instant? { [pending.first?.at, mirror.nextWake].compactMap(\.self).min() }

  mutating func wake(at now: Instant) -> [Input] {
    guard let (at, id, bytes, failure) = pending.first, at <= now else { return tell(.wake, at: now) }
    pending.removeFirst()
    let inputs = failure == nil ? tell(.received(.main, bytes), at: now) : []
    return inputs + (isUp ? [.sent(id, failure: failure)] : [])
  }

  mutating func started(at now: Instant) -> [Input] { change(.up(maximumSend: 512), at: now) }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    switch effect {
    case .send(_, let bytes, let id, let secret):
      if !isUp || !pending.isEmpty || !secret || id == nil { Issue.record("a write over no link, a second one, or one that is recorded") }
      sends.append((now, Self.reading(bytes, isPlain)))
      let answer = answers.isEmpty ? answer : answers.removeFirst()
      pending.append((answer == .none ? .max : now + linkDelay, id ?? 0, bytes, answer == .refused ? "ATT error 0x0e" : nil))
    case .observe(let reference): observing.append(reference)
    case .resetLink(_, let reason): return change(.down(reason), at: now)
    default: return nil
    }
    return []
  }

  /// The link comes up or goes down at both ends.
  mutating func change(_ state: LinkState, at now: Instant) -> [Input] {
    if case .up = state { isUp = true } else { isUp = false }
    pending = []
    return tell(.linkChanged(.main, state), at: now) + [.linkChanged(.main, state)]
  }

  /// The mirror takes an input; one that starts again closes the link.
  private mutating func tell(_ input: Input, at now: Instant) -> [Input] {
    var effects = Effects()
    mirror.handle(input, at: now, &effects)
    let hangsUp = effects.list.contains { if case .resetLink = $0 { true } else { false } }
    return hangsUp && isUp ? change(.down("the mirror starts again"), at: now) : []
  }

  /// What a write says, read with the cipher's other direction as the mirror does.
  static func reading(_ bytes: [UInt8], _ isPlain: Bool = false) -> String {
    if isPlain { return ESP32Receiver.latin1(bytes) }
    switch MirrorEar.read(bytes) {
    case .some(let text): return text
    case nil: return "?"
    }
  }
}

extension MirrorRig {
  static var key: [UInt8] { Array("0123456789ABCDEF".utf8) }
  static var iv: [UInt8] { Array("FEDCBA9876543210".utf8) }

  init(_ options: [String: Value] = ["username": .string("Ada")], phase: Nanoseconds = 0, faults: String...) throws {
    let isPlain = options["profile"] == .string("plain")
    let mirror = ESP32Mirror(
      isPlain ? .plain : .stock(key: Self.key, iv: Self.iv), origin: -phase, faults: try faults.map { try MirrorFault($0) })
    self.init(try MirrorMachine(Self.setup(options)), MirrorLink(mirror, isPlain: isPlain))
  }

  static func setup(_ options: [String: Value]) -> Setup {
    let secrets = [
      "key-file": SecretBytes(Array("ascii:".utf8) + key), "iv-file": SecretBytes(Array("ascii:".utf8) + iv),
    ]
    return Setup(options: options, secrets: options["profile"] == .string("plain") ? [:] : secrets)
  }

  /// A mirror that is configured for health and weather.
  static func collecting(_ more: [String: Value] = [:], phase: Nanoseconds = 0) throws -> MirrorRig {
    let options: [String: Value] = [
      "username": .string("Ada"), "weather": .string("sky"),
      "health": .list(["band.heart-rate", "phone.active-energy", "phone.steps", "phone.distance"]),
    ]
    return try MirrorRig(options.merging(more) { $1 }, phase: phase)
  }

  static var allOn: [String: [UInt8]] { Dictionary(uniqueKeysWithValues: MirrorSignal.switches.map { ($0.name, Array("on".utf8)) }) }

  /// Replaces the machine as after a kill of the daemon, with the stored state.
  mutating func restart(_ options: [String: Value] = ["username": .string("Ada")], for time: Nanoseconds = 0) throws {
    _ = around.change(.down("gone"), at: now)
    replace(try MirrorMachine(Self.setup(options)))
    forget()
    start(for: time)
  }

  mutating func forget() { around.sends = [] }

  mutating func sendNow(id: CommandID? = nil) { perform(.run(action: 0, arguments: [:]), id: id) }
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
}
