// The machine and the simulated mirror, connected by a link that acknowledges at once unless a test changes that. Checks that one write
// is in flight at a time, and that each is secret.

import MachineTesting
import Testing

@testable import Peers
@testable import Protocols

typealias MirrorRig = Host<MirrorMachine, MirrorLink>

struct MirrorLink: LinkedSurroundings {
  var mirror: ESP32Mirror
  /// The results of the next writes; `answer` is used when the list is empty.
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
    guard let (at, id, bytes, failure) = pending.first, at <= now else { return give(.wake, at: now) }
    pending.removeFirst()
    let inputs = failure == nil ? give(.received(.main, bytes), at: now) : []
    return inputs + (isUp ? [.sent(id, failure: failure)] : [])
  }

  mutating func started(at now: Instant) -> [Input] { change(.up(maximumSend: 512), at: now) }

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    switch effect {
    case .send(_, let bytes, let id, let secret):
      if !isUp || !pending.isEmpty || !secret || id == nil {
        Issue.record("a write without a link, a second write in flight, or a write that is not secret")
      }
      sends.append((now, Self.reading(bytes, isPlain)))
      let answer = answers.isEmpty ? answer : answers.removeFirst()
      pending.append((answer == .none ? .max : now + linkDelay, id ?? 0, bytes, answer == .refused ? "ATT error 0x0e" : nil))
    case .observe(let reference): observing.append(reference)
    case .resetLink(_, let reason): return change(.down(reason), at: now)
    default: return nil
    }
    return []
  }

  /// Changes the state of the link at both ends.
  mutating func change(_ state: LinkState, at now: Instant) -> [Input] {
    if case .up = state { isUp = true } else { isUp = false }
    pending = []
    return give(.linkChanged(.main, state), at: now) + [.linkChanged(.main, state)]
  }

  /// Passes an input to the mirror, which closes the link if it restarts.
  private mutating func give(_ input: Input, at now: Instant) -> [Input] {
    var effects = Effects()
    mirror.handle(input, at: now, &effects)
    let restarts = effects.list.contains { if case .resetLink = $0 { true } else { false } }
    return restarts && isUp ? change(.down("the mirror restarts"), at: now) : []
  }

  /// The text of a write, decrypted as by the mirror.
  static func reading(_ bytes: [UInt8], _ isPlain: Bool = false) -> String {
    if isPlain { return ESP32Receiver.latin1(bytes) }
    switch MirrorDecryption.read(bytes) {
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

  /// Creates a rig that is configured for health and weather.
  static func collecting(_ more: [String: Value] = [:], phase: Nanoseconds = 0) throws -> MirrorRig {
    let options: [String: Value] = [
      "username": .string("Ada"), "weather": .string("sky"),
      "health": .list(["band.heart-rate", "phone.active-energy", "phone.steps", "phone.distance"]),
    ]
    return try MirrorRig(options.merging(more) { $1 }, phase: phase)
  }

  static var allOn: [String: [UInt8]] { Dictionary(uniqueKeysWithValues: MirrorProperty.switches.map { ($0.name, Array("on".utf8)) }) }

  /// Replaces the machine as after a kill of the daemon, with the stored state.
  mutating func restart(_ options: [String: Value] = ["username": .string("Ada")], for time: Nanoseconds = 0) throws {
    _ = surroundings.change(.down("gone"), at: now)
    replace(try MirrorMachine(Self.setup(options)))
    forget()
    start(for: time)
  }

  mutating func forget() { surroundings.sends = [] }

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
