// Runs a machine in virtual time, and does what the daemon does for it: time, a clock that can be set, a disk. Records what users would
// see. Checks the machine's contract: readings are of known properties and within their rules, each command completes once, and time
// advances.

import Protocols

/// Executes the effects that the host does not execute: the other end of a link, a service, another device.
public protocol Surroundings {
  /// When `wake` is due; nil if it is not.
  var nextWake: Instant? { get }
  /// Called at `nextWake`. Returns inputs of the machine.
  mutating func wake(at now: Instant) -> [Input]
  /// Called after the machine has started. Returns further inputs, such as a link that comes up.
  mutating func started(at now: Instant) -> [Input]
  /// Executes an effect. Returns inputs of the machine; nil: machines of this kind have no such effect.
  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]?
  /// Called when time has passed without an event.
  mutating func passed(to now: Instant)
}

extension Surroundings {
  public var nextWake: Instant? { nil }
  public mutating func wake(at now: Instant) -> [Input] { [] }
  public mutating func started(at now: Instant) -> [Input] { [] }
  public mutating func passed(to now: Instant) {}
}

/// A link with a peer at its other end.
public protocol LinkedSurroundings: Surroundings {
  /// Changes the state of the link at both ends. Returns inputs of the machine.
  mutating func change(_ state: LinkState, at now: Instant) -> [Input]
}

/// A machine and its surroundings. The properties of the surroundings are also properties of the host.
@dynamicMemberLookup
public struct Host<Subject: Machine, World: Surroundings> {
  public var machine: Subject
  public var surroundings: World
  /// The monotonic clock.
  public var now: Instant
  /// Microseconds since the Unix epoch; setting it sets the clock.
  public var wall: Int64 {
    get { wallOrigin + now / .microsecond }
    set { wallOrigin = newValue - now / .microsecond }
  }
  public var utcOffset = 0
  private var wallOrigin: Int64 = 0

  /// The stored values by key.
  public var disk: [String: [UInt8]] = [:]
  /// Whether stores succeed.
  public var diskWorks = true
  /// Whether `stored` follows in the same turn; if not, `finishStore` sends it.
  public var diskIsQuick = true
  public private(set) var pendingStores: [(key: String, bytes: [UInt8])] = []
  /// Whether `time` follows `requestTime` in the same turn; if not, the test sends it.
  public var clockIsQuick = true

  public internal(set) var values: [String: Reading.Content] = [:]
  /// The age of each value when it was published last, and how often it was published or withdrawn.
  public private(set) var ages: [String: Nanoseconds] = [:]
  public private(set) var published: [String: Int] = [:]
  /// The texts of all values that each property had.
  public private(set) var seen: [String: Set<String>] = [:]
  public private(set) var statuses: [String] = []
  public var status: String { statuses.last ?? "" }
  public internal(set) var fault: String?
  public private(set) var faults: [String] = []
  public internal(set) var events: [String] = []
  public private(set) var eventNames: [String] = []
  public private(set) var notes: [String] = []
  /// The results of each command; there must be one at most.
  public var results: [CommandID: [Result<Report, CommandError>]] { completions.all }
  public private(set) var progress: [CommandID: [Report]] = [:]
  /// When the machine reported `stopped`.
  public private(set) var stopped: Instant?
  /// Why each motion lease was lost, and why the links were reset.
  public private(set) var lost: [String] = []
  public private(set) var resets: [String] = []
  /// All last-will frames of the link, in order; nil: none any more.
  public private(set) var wills: [LastWill?] = []
  /// How often the schema was declared, and how often the machine woke.
  public private(set) var declared = 0
  public private(set) var wakes = 0
  public private(set) var stores = 0
  public private(set) var timeRequests = 0
  /// Everything that a user can see, or find in the journal or in a recording. Recorded if `isTranscribed`.
  public private(set) var output: [String] = []
  public var isTranscribed = false

  /// The results of commands. A class, because in `report(run("login"))` Swift reads the host before its argument runs the command.
  private let completions = Completions()
  private final class Completions { var all: [CommandID: [Result<Report, CommandError>]] = [:] }
  private var schema: Schema
  private var effects = Effects()
  private var lastID: CommandID = 0
  /// The number of events since time advanced.
  private var turns = 0

  public init(_ machine: Subject, _ surroundings: World, now: Instant = 0, wall: Int64 = 0) {
    (self.machine, self.surroundings, self.now, schema) = (machine, surroundings, now, machine.schema)
    self.wall = wall
  }

  public subscript<T>(dynamicMember path: WritableKeyPath<World, T>) -> T {
    get { surroundings[keyPath: path] }
    set { surroundings[keyPath: path] = newValue }
  }
  public subscript<T>(dynamicMember path: KeyPath<World, T>) -> T { surroundings[keyPath: path] }

  private var wallTime: WallTime { WallTime(microseconds: wall, utcOffset: utcOffset) }

  /// Starts the machine, and runs for this time. `restored` replaces the contents of the disk.
  public mutating func start(restored: [String: [UInt8]]? = nil, for time: Nanoseconds? = nil) {
    if let restored { disk = restored }
    give(.started(restored: disk, wall: wallTime))
    surroundings.started(at: now).forEach { give($0) }
    if let time { run(for: time) }
  }

  /// Replaces the machine, as after a kill of the daemon. The disk keeps its contents.
  public mutating func replace(_ machine: Subject) {
    (self.machine, schema) = (machine, machine.schema)
    (values, fault, events, pendingStores) = ([:], nil, [], [])
    effects = Effects()
  }

  /// Removes values, as the daemon does when a link goes down.
  public mutating func forget(_ properties: [Int]) { for index in properties { values[schema.properties[index].name] = nil } }

  /// Lets virtual time pass.
  public mutating func run(for time: Nanoseconds) {
    let end = now + time
    while step(before: end) {}
    now = end
    surroundings.passed(to: now)
  }

  /// Lets virtual time pass until the condition is met, at most for `time`.
  public mutating func run(until isDone: (Self) -> Bool, atMost time: Nanoseconds = 60 * .second) {
    let end = now + time
    while !isDone(self), step(before: end) {}
  }

  /// Processes the next event. Returns false if there is none until `end`.
  private mutating func step(before end: Instant) -> Bool {
    let wake = surroundings.nextWake ?? .max
    let next = min(wake, machine.nextWake ?? .max)
    guard next <= end else { return false }
    turns = next > now ? 0 : turns + 1
    guard turns < 100_000 else {
      fail("time stands still at \(now)")
      return false
    }
    now = max(now, next)
    if wake == next {
      surroundings.wake(at: now).forEach { give($0) }
    } else {
      wakes += 1
      give(.wake)
    }
    return true
  }

  /// Passes an input to the machine, and executes its effects. Inputs that the effects cause follow in order.
  public mutating func give(_ input: Input) {
    var inputs = [input]
    var turns = 0
    while !inputs.isEmpty {
      turns += 1
      guard turns < 1000 else { fail("an input causes inputs without end"); return }
      effects.removeAll()
      machine.handle(inputs.removeFirst(), at: now, &effects)
      for case .declare(let declared) in effects.list { schema = declared }
      let sending = effects.list.compactMap { if case .send(let link, _, _?, _) = $0 { link } else { nil } }
      if sending.count > Set(sending).count { fail("a second send over a link") }
      for reading in effects.readings { record(reading) }
      for effect in effects.list { inputs += perform(effect) }
    }
  }

  private mutating func record(_ reading: Reading) {
    guard schema.properties.indices.contains(reading.property) else { fail("a reading of no property"); return }
    let property = schema.properties[reading.property]
    values[property.name] = reading.content
    ages[property.name] = reading.age
    published[property.name, default: 0] += 1
    switch reading.content {
    case .value(let value):
      seen[property.name, default: []].insert(value.text)
      if (try? property.rule.accept(value)) != value { fail("\(property.name): \(value)") }
      transcribe(value.text)
    case .absent(let reason): transcribe(reason)
    }
  }

  private mutating func perform(_ effect: Effect) -> [Input] {
    switch effect {
    case .requestTime:
      timeRequests += 1
      if clockIsQuick { return [.time(wallTime)] }
    case .store(let key, let bytes):
      stores += 1
      if diskIsQuick { return [store(key, bytes)] }
      pendingStores.append((key, bytes))
    case .complete(let id, let result):
      completions.all[id, default: []].append(result)
      transcribe("\(result)")
    case .progress(let id, let report):
      progress[id, default: []].append(report)
      transcribe("\(report)")
    case .status(let word): statuses.append(word)
    case .fault(let text):
      fault = text
      if let text { faults.append(text) }
      transcribe(text ?? "")
    case .event(let name, let text):
      events.append(text)
      eventNames.append(name)
      transcribe(text)
    case .note(let text):
      notes.append(text)
      transcribe(text)
    case .stopped: stopped = now
    case .declare: declared += 1
    case .leaseLost(let reason): lost.append(reason)
    case .lastWill(_, let will): wills.append(will)
    default:
      if case .resetLink(_, let reason) = effect { resets.append(reason) }
      if case .send(_, let bytes, _, secret: false) = effect { transcribe(String(decoding: bytes, as: UTF8.self)) }
      if let inputs = surroundings.perform(effect, at: now) { return inputs }
      fail("machines of this kind have no such effect: \(effect)")
    }
    return []
  }

  private mutating func transcribe(_ text: @autoclosure () -> String) { if isTranscribed { output.append(text()) } }

  private mutating func store(_ key: String, _ bytes: [UInt8]) -> Input {
    if diskWorks { disk[key] = bytes.isEmpty ? nil : bytes }
    return .stored(key: key, failure: diskWorks ? nil : "no space")
  }

  /// Finishes the oldest store.
  public mutating func finishStore() {
    guard !pendingStores.isEmpty else { return }
    let (key, bytes) = pendingStores.removeFirst()
    give(store(key, bytes))
  }

  // MARK: Commands, and what users see

  @discardableResult public mutating func perform(_ command: Command, id: CommandID? = nil) -> CommandID {
    lastID = id ?? lastID + 1
    let id = lastID
    give(.perform(id, command))
    return id
  }

  @discardableResult public mutating func set(_ name: String, _ value: Value, id: CommandID? = nil) -> CommandID {
    perform(.set(property: schema.properties.firstIndex { $0.name == name } ?? -1, value), id: id)
  }

  @discardableResult public mutating func run(_ action: String, _ arguments: [String: Value] = [:], id: CommandID? = nil) -> CommandID {
    perform(.run(action: schema.actions.firstIndex { $0.name == action } ?? -1, arguments: arguments), id: id)
  }

  public var hasStopped: Bool { stopped != nil }
  public func number(_ name: String) -> Double? { if case .value(let value)? = values[name] { value.number } else { nil } }
  public func text(_ name: String) -> String? { if case .value(let value)? = values[name] { value.text } else { nil } }
  public func absence(_ name: String) -> String? { if case .absent(let reason)? = values[name] { reason } else { nil } }

  /// The result of a command; nil while it is pending.
  public func outcome(_ id: CommandID = 1) -> Result<Report, CommandError>? {
    guard let all = results[id] else { return nil }
    if all.count != 1 { fail("command \(id) completed \(all.count) times") }
    return all.first
  }

  public func report(_ id: CommandID = 1) -> Report? { try? outcome(id)?.get() }
  public func isDone(_ id: CommandID = 1) -> Bool { report(id) != nil }
  public func error(_ id: CommandID = 1) -> CommandError? { if case .failure(let error)? = outcome(id) { error } else { nil } }

  /// The code of the error, or the name of the argument that is invalid.
  public func code(_ id: CommandID = 1) -> String? {
    switch error(id) {
    case .refused(let code, _): code.rawValue
    case .invalid(let argument, _): argument
    case .notConnected: "not-connected"
    case .timeout: "timeout"
    case nil: nil
    }
  }

  /// The message of the error.
  public func refusal(_ id: CommandID = 1) -> String {
    switch error(id) {
    case .refused(_, let text), .invalid(_, let text), .notConnected(let text): text
    case .timeout: "timeout"
    case nil: ""
    }
  }
}

extension Host where World: LinkedSurroundings {
  public mutating func connect(maximumSend: Int? = nil) { surroundings.change(.up(maximumSend: maximumSend), at: now).forEach { give($0) } }
  public mutating func disconnect(_ reason: String = "gone") { surroundings.change(.down(reason), at: now).forEach { give($0) } }
}
