// The machine and the simulated board in virtual time, joined by a link that takes no time unless it is told to. It holds
// the machine to its contract: one send outstanding, known properties, and as built never a byte before the last is answered.

import Peers
import Testing

@testable import Protocols

struct ELCommRig {
  var machine: ELCommMachine
  var board: ArduinoBoard
  var now: Instant = 0
  /// The link takes a send this much later; nil: never.
  var linkDelay: Nanoseconds? = 0
  /// What is stored comes back as stored.
  var diskWorks = true
  /// Nothing of the board arrives.
  var isBoardMute = false
  /// What the board says waits somewhere on its way.
  var isStalled = false
  private(set) var isUp = false
  private(set) var sends: [(at: Instant, bytes: [UInt8])] = []
  private(set) var arrivals: [Instant] = []
  private(set) var values: [String: Reading.Content] = [:]
  private(set) var status = ""
  private(set) var statuses: [String] = []
  private(set) var fault: String?
  private(set) var faults: [String] = []
  private(set) var disk: [String: [UInt8]] = [:]
  private(set) var stores = 0
  private(set) var results: [CommandID: [Result<Report, CommandError>]] = [:]
  private(set) var progress: [CommandID: Int] = [:]
  private(set) var hasStopped = false
  private(set) var resets: [String] = []
  private(set) var wills: [LastWill?] = []
  private var pending: [(at: Instant, id: SendID)] = []
  private var effects = Effects()

  init(_ options: [String: Value] = [:], dialect: ArduinoBoard.Dialect = .asBuilt, faults: String..., isInstant: Bool = false) throws {
    machine = try ELCommMachine(Setup(options: options))
    board = ArduinoBoard(dialect, isInstant: isInstant, faults: try faults.map { try BoardFault($0) })
  }

  /// Starts both with a link between them, and runs for this long.
  mutating func start(restored: [String: [UInt8]] = [:], for time: Nanoseconds = 0) {
    disk = restored
    give(.started(restored: restored, wall: WallTime(microseconds: 0)))
    connect()
    run(for: time)
  }

  mutating func connect() {
    isUp = true
    pending = []
    tell(.linkChanged(.main, .up(maximumSend: 20)))
    give(.linkChanged(.main, .up(maximumSend: 20)))
  }

  mutating func disconnect() {
    isUp = false
    pending = []
    tell(.linkChanged(.main, .down("gone")))
    give(.linkChanged(.main, .down("gone")))
  }

  /// A daemon that was killed, and the next one with what the disk has.
  mutating func restart(_ options: [String: Value] = [:], for time: Nanoseconds = 0) throws {
    tell(.linkChanged(.main, .down("gone")))
    machine = try ELCommMachine(Setup(options: options))
    values = [:]
    sends = []
    start(restored: disk, for: time)
  }

  /// A daemon that was killed, and after this time one that knows nothing of it. What the board says meanwhile waits on its
  /// way, or is lost as on a Bluetooth module that nobody is connected to.
  mutating func startFresh(after time: Nanoseconds, isBuffered: Bool, for rest: Nanoseconds) throws {
    machine = try ELCommMachine(Setup())
    isStalled = true
    if !isBuffered { disconnect() }
    run(for: time)
    isStalled = false
    (values, sends, pending, disk) = ([:], [], [], [:])
    give(.started(restored: [:], wall: WallTime(microseconds: 0)))
    if isBuffered { give(.linkChanged(.main, .up(maximumSend: 20))) } else { connect() }
    run(for: rest)
  }

  /// The daemon is gone; the link stays open.
  mutating func kill() {
    isStalled = true
    if let idle = try? ELCommMachine(Setup()) { machine = idle }
    pending = []
  }

  /// Bytes that come to the board from elsewhere.
  mutating func tellBoard(_ text: String) { tell(.received(.main, Array(text.utf8))) }

  // MARK: The machine

  mutating func give(_ input: Input) {
    effects.removeAll()
    machine.handle(input, at: now, &effects)
    for reading in effects.readings { take(reading) }
    for effect in effects.list { take(effect) }
  }

  private mutating func take(_ reading: Reading) {
    let property = machine.schema.properties[reading.property]
    values[property.name] = reading.content
    if case .value(let value) = reading.content { #expect((try? property.rule.accept(value)) == value, "\(property.name): \(value)") }
  }

  private mutating func take(_ effect: Effect) {
    switch effect {
    case .send(_, let bytes, let id, _):
      #expect(isUp, "a send over no link")
      #expect(pending.isEmpty, "one send at a time")
      sends.append((now, bytes))
      guard let linkDelay, let id else { return pending.append((.max, id ?? 0)) }
      pending.append((now + linkDelay, id))
      tell(.received(.main, bytes))
    case .complete(let id, let result): results[id, default: []].append(result)
    case .progress(let id, _): progress[id, default: 0] += 1
    case .status(let word):
      status = word
      statuses.append(word)
    case .fault(let words):
      fault = words
      if let words { faults.append(words) }
    case .store(let key, let bytes):
      stores += 1
      if diskWorks { disk[key] = bytes.isEmpty ? nil : bytes }
      let failure = diskWorks ? nil : "no space"
      let saved = effects
      give(.stored(key: key, failure: failure))
      effects = saved
    case .resetLink(_, let reason):
      resets.append(reason)
      isUp = false
      pending = []
    case .stopped: hasStopped = true
    case .lastWill(_, let will): wills.append(will)
    default: break
    }
  }

  // MARK: The board

  private mutating func tell(_ input: Input) {
    var inputs = [input]
    while !inputs.isEmpty {
      var effects = Effects()
      board.handle(inputs.removeFirst(), at: now, &effects)
      for effect in effects.list {
        switch effect {
        case .send(_, let bytes, let id?, _):
          if isUp, !isBoardMute { coming.append(bytes) }
          inputs.append(.sent(id, failure: nil))
        case .resetLink: isHangingUp = true
        default: break
        }
      }
    }
  }

  private var coming: [[UInt8]] = []
  private var isHangingUp = false

  mutating func hear(_ text: String) { give(.received(.main, Array(text.utf8))) }

  /// Lets virtual time pass.
  mutating func run(for time: Nanoseconds) {
    let end = now + time
    var turns = 0
    while step(before: end) {
      turns += 1
      guard turns < 200_000 else { Issue.record("time stands still at \(now)"); break }
    }
    now = end
  }

  private mutating func step(before end: Instant) -> Bool {
    if !coming.isEmpty, !isStalled {
      let bytes = coming.removeFirst()
      arrivals.append(now)
      if isUp { give(.received(.main, bytes)) }
      return true
    }
    if isHangingUp {
      isHangingUp = false
      disconnect()
      return true
    }
    let taken = pending.first?.at ?? .max
    let wake = machine.nextWake ?? .max
    let boardWake = board.nextWake ?? .max
    let next = min(taken, wake, boardWake)
    guard next <= end else { return false }
    now = max(now, next)
    if taken == next {
      give(.sent(pending.removeFirst().id, failure: nil))
    } else if boardWake == next {
      tell(.wake)
    } else {
      give(.wake)
    }
    return true
  }

  /// The link has let go of what it was given.
  mutating func forgetSends() { pending = [] }

  // MARK: What a person sees

  func number(_ name: String) -> Double? { if case .value(let value)? = values[name] { value.number } else { nil } }
  func text(_ name: String) -> String? { if case .value(let value)? = values[name] { value.text } else { nil } }
  func absence(_ name: String) -> String? { if case .absent(let reason)? = values[name] { reason } else { nil } }

  var sent: String { sends.map { String(decoding: $0.bytes, as: UTF8.self) }.joined() }

  func property(_ name: String) -> Int { machine.schema.properties.firstIndex { $0.name == name } ?? -1 }
  mutating func set(_ name: String, _ value: Value, id: CommandID = 1) { give(.perform(id, .set(property: property(name), value))) }
  mutating func buzz(_ arguments: [String: Value] = [:], id: CommandID = 1) { give(.perform(id, .run(action: 0, arguments: arguments))) }

  func isDone(_ id: CommandID = 1) -> Bool {
    if results[id]?.count == 1, case .success? = results[id]?.first { true } else { false }
  }

  func refusal(_ id: CommandID = 1) -> CommandError? {
    if results[id]?.count == 1, case .failure(let error)? = results[id]?.first { error } else { nil }
  }
}
