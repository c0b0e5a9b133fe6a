// A machine and a simulated VESC in virtual time, with a disk between runs. Either end can be swapped while it runs.

@testable import Peers
@testable import Protocols

struct VESCRig {
  var machine: VESCMachine
  var vesc: VESC
  var now: Instant
  /// The link takes writes.
  var takesWrites = true
  /// Writes arrive at the other end.
  var isWired = true
  private(set) var isUp = false
  private(set) var values: [String: Reading.Content] = [:]
  private(set) var status = ""
  private(set) var statuses: [String] = []
  private(set) var fault: String?
  private(set) var faults: [String] = []
  private(set) var events: [String] = []
  private(set) var resets: [String] = []
  private(set) var disk: [String: [UInt8]] = [:]
  private(set) var results: [CommandID: [Result<Report, CommandError>]] = [:]
  private(set) var progress: [Report] = []
  private(set) var lost: [String] = []
  private(set) var wills: [LastWill?] = []
  private(set) var hasStopped = false
  private(set) var idleWakes = 0
  private(set) var wakes = 0
  /// All that the machine sent.
  private(set) var sends: [(at: Instant, bytes: [UInt8])] = []
  private var outstanding = 0
  private var effects = Effects()

  static func setup(
    _ options: [String: Value] = [:], modes: [Setup.Subsection] = [], phase: Double = 0
  ) -> Setup {
    Setup(options: ["protocol": .string("vesc")].merging(options) { $1 }, sections: modes.isEmpty ? [:] : ["mode": modes], phase: phase)
  }

  static let modes = [
    Setup.Subsection("eco", ["current": .float(50), "speed": .float(15)]), Setup.Subsection("sport", ["current": .float(90)]),
  ]

  init(
    _ model: VESCModel = .v600, _ options: [String: Value] = [:], modes: [Setup.Subsection] = [], phase: Double = 0,
    faults: [Fault<VESCFaultKind>] = [], at now: Instant = 0
  ) throws {
    machine = try VESCMachine(Self.setup(options, modes: modes, phase: phase))
    vesc = VESC(model, faults: faults, origin: now)
    self.now = now
  }

  mutating func start(restored: [String: [UInt8]] = [:]) {
    disk = restored
    give(.started(restored: restored, wall: WallTime(microseconds: 0)))
    connect()
  }

  mutating func connect() {
    isUp = true
    outstanding = 0
    var quiet = Effects()
    vesc.handle(.linkChanged(.main, .up(maximumSend: nil)), at: now, &quiet)
    give(.linkChanged(.main, .up(maximumSend: nil)))
  }

  mutating func disconnect(_ reason: String = "the cable is out") {
    isUp = false
    var quiet = Effects()
    vesc.handle(.linkChanged(.main, .down(reason)), at: now, &quiet)
    give(.linkChanged(.main, .down(reason)))
  }

  /// Another daemon with the same disk.
  mutating func restartDaemon(_ options: [String: Value] = [:], modes: [Setup.Subsection] = []) throws {
    machine = try VESCMachine(Self.setup(options, modes: modes))
    values = [:]
    start(restored: disk)
  }

  /// The link took the write that it held.
  mutating func restoreWrites() { outstanding = 0 }

  /// The machine's inputs, and what follows from them at once.
  mutating func give(_ input: Input) {
    var inputs = [input]
    while !inputs.isEmpty {
      effects.removeAll()
      machine.handle(inputs.removeFirst(), at: now, &effects)
      for reading in effects.readings { values[machine.schema.properties[reading.property].name] = reading.content }
      for effect in effects.list { note(effect, &inputs) }
    }
  }

  private mutating func note(_ effect: Effect, _ inputs: inout [Input]) {
    switch effect {
    case .send(_, let bytes, let id, _):
      precondition(isUp && outstanding == 0, "a write over a link that is down or busy")
      sends.append((now, bytes))
      if id != nil { outstanding += 1 }
      if isWired { giveVESC(.received(.main, bytes)) }
      if takesWrites, let id {
        outstanding -= 1
        inputs.append(.sent(id, failure: nil))
      }
    case .complete(let id, let result): results[id, default: []].append(result)
    case .progress(_, let report): progress.append(report)
    case .status(let word):
      status = word
      statuses.append(word)
    case .fault(let words):
      fault = words
      if let words { faults.append(words) }
    case .event(let name, _): events.append(name)
    case .resetLink(_, let reason):
      resets.append(reason)
      isUp = false
      inputs.append(.linkChanged(.main, .down(reason)))
    case .store(let key, let bytes):
      disk[key] = bytes.isEmpty ? nil : bytes
      inputs.append(.stored(key: key, failure: nil))
    case .leaseLost(let reason): lost.append(reason)
    case .lastWill(_, let will): wills.append(will)
    case .stopped: hasStopped = true
    default: break
    }
  }

  private var heard: [[UInt8]] = []

  private mutating func giveVESC(_ input: Input) {
    var inputs = [input]
    while !inputs.isEmpty {
      var said = Effects()
      vesc.handle(inputs.removeFirst(), at: now, &said)
      for case .send(_, let bytes, let id, _) in said.list {
        if isWired { heard.append(bytes) }
        if let id { inputs.append(.sent(id, failure: nil)) }
      }
    }
  }

  /// Lets virtual time pass.
  mutating func run(for time: Nanoseconds) {
    let end = now + time
    while step(before: end) {}
    now = end
    vesc.roll(to: now)
  }

  mutating func run(until done: (VESCRig) -> Bool, atMost time: Nanoseconds = 60 * .second) {
    let end = now + time
    while !done(self), step(before: end) {}
  }

  private mutating func step(before end: Instant) -> Bool {
    if !heard.isEmpty {
      give(.received(.main, heard.removeFirst()))
      return true
    }
    let wake = machine.nextWake ?? .max
    let other = vesc.nextWake ?? .max
    let next = min(wake, other)
    guard next <= end else { return false }
    now = max(now, next)
    if other <= wake {
      giveVESC(.wake)
    } else {
      wakes += 1
      give(.wake)
      if effects.isEmpty && machine.nextWake == wake {
        idleWakes += 1
        return false
      }
    }
    return true
  }

  // MARK: What there is to see

  func number(_ name: String) -> Double? { if case .value(let value)? = values[name] { value.number } else { nil } }
  func text(_ name: String) -> String? { if case .value(let value)? = values[name] { value.text } else { nil } }
  func absence(_ name: String) -> String? { if case .absent(let reason)? = values[name] { reason } else { nil } }
  func heard(_ command: VESCCommand) -> Int { vesc.heard[command.rawValue] ?? 0 }

  mutating func set(_ name: String, _ value: Value, id: CommandID) {
    guard let property = machine.schema.properties.firstIndex(where: { $0.name == name }) else { return }
    give(.perform(id, .set(property: property, value)))
  }

  func succeeded(_ id: CommandID) -> Bool {
    guard results[id]?.count == 1, case .success? = results[id]?.first else { return false }
    return true
  }

  func error(_ id: CommandID) -> CommandError? {
    guard results[id]?.count == 1, case .failure(let error)? = results[id]?.first else { return nil }
    return error
  }

  func refusal(_ id: CommandID) -> String? { if case .refused(let code, _)? = error(id) { code.rawValue } else { nil } }
}
