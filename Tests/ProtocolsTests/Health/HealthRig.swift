// A health machine in virtual time, with a wall clock that can be set, a disk, and an import folder that a test answers for.

import Testing

@testable import Protocols

struct HealthRig {
  private(set) var machine: HealthMachine
  var now: Instant = 1000 * .second
  /// Microseconds since the Unix epoch at `now`; a test sets the clock by changing it.
  var wall: Int64
  var utcOffset = 3600
  var diskWorks = true
  /// What is stored comes back at once; else `settle` does it.
  var diskIsQuick = true
  /// Answers a question to the database.
  var database: (DatabaseQuery) -> DatabaseAnswer = { _ in .missing }
  private(set) var disk: [String: [UInt8]] = [:]
  private(set) var values: [String: Reading.Content] = [:]
  private(set) var published: [String: Int] = [:]
  /// How old each value was when it was published last.
  private(set) var ages: [String: Nanoseconds] = [:]
  private(set) var results: [CommandID: [Result<Report, CommandError>]] = [:]
  private(set) var queries: [DatabaseQuery] = []
  private(set) var stores = 0
  private(set) var timesAsked = 0
  private(set) var status = ""
  private(set) var fault: String?
  private var effects = Effects()
  private(set) var events: [String] = []
  private(set) var hasStopped = false
  private var pendingStores: [(key: String, bytes: [UInt8])] = []
  private var lastID: CommandID = 0

  /// 2026-03-10, 14:05:00 in Berlin.
  static let afternoon: Int64 = 1_773_147_900_000_000

  init(_ options: [String: Value] = [:], wall: Int64 = afternoon) throws {
    machine = HealthMachine(try HealthSettings(Setup(options: options)))
    self.wall = wall
  }

  mutating func start(_ kept: [String: [UInt8]]? = nil) {
    give(.started(restored: kept ?? disk, wall: WallTime(microseconds: wall, utcOffset: utcOffset)))
  }

  /// Another daemon with what the disk has, so much later.
  mutating func restart(_ options: [String: Value] = [:], after time: Nanoseconds = .second) throws {
    machine = HealthMachine(try HealthSettings(Setup(options: options)))
    (values, pendingStores) = ([:], [])
    pass(time)
    now = 5 * .second
    start()
  }

  private mutating func pass(_ time: Nanoseconds) {
    now += time
    wall += time / .microsecond
  }

  /// Lets time pass, on every clock.
  mutating func run(for time: Nanoseconds) {
    let end = now + time
    var turns = 0
    while let wake = machine.nextWake, wake <= end {
      turns += 1
      guard turns < 20_000 else { Issue.record("time stands still at \(now)"); break }
      pass(max(0, wake - now))
      give(.wake)
    }
    pass(end - now)
  }

  mutating func give(_ input: Input) {
    var inputs = [input]
    var turns = 0
    while !inputs.isEmpty {
      turns += 1
      guard turns < 1000 else { Issue.record("it never rests"); return }
      effects.removeAll()
      machine.handle(inputs.removeFirst(), at: now, &effects)
      for reading in effects.readings { take(reading) }
      for effect in effects.list {
        switch effect {
        case .requestTime:
          timesAsked += 1
          inputs.append(.time(WallTime(microseconds: wall, utcOffset: utcOffset)))
        case .query(let id, let query):
          queries.append(query)
          inputs.append(.rows(id, database(query)))
        case .store(let key, let bytes):
          stores += 1
          if diskIsQuick { inputs.append(keep(key, bytes)) } else { pendingStores.append((key, bytes)) }
        case .complete(let id, let result): results[id, default: []].append(result)
        case .status(let word): status = word
        case .fault(let words): fault = words
        case .event(_, let words): events.append(words)
        case .stopped: hasStopped = true
        default: Issue.record("\(effect)")
        }
      }
    }
  }

  private mutating func keep(_ key: String, _ bytes: [UInt8]) -> Input {
    if diskWorks { disk[key] = bytes }
    return .stored(key: key, failure: diskWorks ? nil : "no space")
  }

  /// The disk answers.
  mutating func settle() {
    guard !pendingStores.isEmpty else { return }
    let (key, bytes) = pendingStores.removeFirst()
    give(keep(key, bytes))
  }

  private mutating func take(_ reading: Reading) {
    let property = machine.schema.properties[reading.property]
    values[property.name] = reading.content
    published[property.name, default: 0] += 1
    ages[property.name] = reading.age
    if case .value(let value) = reading.content { #expect((try? property.rule.accept(value)) == value, "\(property.name): \(value)") }
  }

  @discardableResult mutating func set(_ name: String, _ value: Double) -> CommandID {
    lastID += 1
    let index = machine.schema.properties.firstIndex { $0.name == name } ?? -1
    give(.perform(lastID, .set(property: index, name == "steps" ? .int(Int(value)) : .float(value))))
    return lastID
  }

  func isDone(_ id: CommandID) -> Bool { if results[id]?.count == 1, case .success? = results[id]?.first { true } else { false } }
  func number(_ name: String) -> Double? { if case .value(let value)? = values[name] { value.number } else { nil } }
  func text(_ name: String) -> String? { if case .value(let value)? = values[name] { value.text } else { nil } }
  func absence(_ name: String) -> String? { if case .absent(let reason)? = values[name] { reason } else { nil } }
}
