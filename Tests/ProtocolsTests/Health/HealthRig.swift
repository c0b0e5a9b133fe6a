// The health machine with an import folder whose database queries a test answers.

import MachineTesting

@testable import Protocols

typealias HealthRig = Host<HealthMachine, ImportFolder>

struct ImportFolder: Surroundings {
  /// Answers a database query.
  var database: (DatabaseQuery) -> DatabaseAnswer = { _ in .missing }
  private(set) var queries: [DatabaseQuery] = []

  mutating func perform(_ effect: Effect, at now: Instant) -> [Input]? {
    guard case .query(let id, let query) = effect else { return nil }
    queries.append(query)
    return [.rows(id, database(query))]
  }
}

extension HealthRig {
  /// 2026-03-10, 14:05:00 in Berlin.
  static var afternoon: Int64 { 1_773_147_900_000_000 }

  init(_ options: [String: Value] = [:], wall: Int64 = afternoon) throws {
    self.init(HealthMachine(try HealthSettings(Setup(options: options))), ImportFolder(), now: 1000 * .second, wall: wall)
    utcOffset = 3600
  }

  /// Replaces the machine as after a restart this much later, with the stored state.
  mutating func restart(_ options: [String: Value] = [:], after time: Nanoseconds = .second) throws {
    replace(HealthMachine(try HealthSettings(Setup(options: options))))
    let later = wall + time / .microsecond
    now = 5 * .second
    wall = later
    start()
  }

  @discardableResult mutating func set(_ name: String, _ value: Double) -> CommandID {
    set(name, name == "steps" ? .int(Int(value)) : .float(value))
  }
}
