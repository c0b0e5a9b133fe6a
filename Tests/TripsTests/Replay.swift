// Runs samples through a detector and keeps the periods as a store would.

import Trips

struct Replay {
  private(set) var detector: PeriodDetector
  private(set) var periods: [Int: Period] = [:]
  /// The number of changes.
  private(set) var changes = 0

  init(rules: PeriodRules = PeriodRules()) { detector = PeriodDetector(rules: rules) }

  init(_ vehicle: SimulatedVehicle, rules: PeriodRules = PeriodRules()) {
    self.init(rules: rules)
    for sample in vehicle.samples { add(sample) }
    advance(to: vehicle.time)
  }

  mutating func add(_ sample: Sample) { apply(detector.add(sample)) }

  /// Adds samples by columns, as a recording has them.
  mutating func read(_ samples: [Sample]) {
    var columns = SampleColumns(offset: 0, start: samples.first?.time ?? 0, continues: false)
    for role in Role.allCases {
      let own = samples.filter { $0.role == role }
      if !own.isEmpty { columns.append(role, at: own.map(\.time), own.map { $0.value ?? .nan }) }
    }
    var reader = ColumnReader()
    var changes: [Change] = []
    reader.read(columns, &detector, in: .min ... .max) { changes += $0 }
    apply(changes)
  }

  mutating func advance(to time: Int64) { apply(detector.advance(to: time)) }
  mutating func finish() { apply(detector.finish()) }

  private mutating func apply(_ new: [Change]) {
    for change in new {
      changes += 1
      switch change {
      case .stored(let period): periods[period.id] = period
      case .removed(let id): periods[id] = nil
      }
    }
  }

  func all(_ kind: Period.Kind) -> [Period] { periods.values.filter { $0.kind == kind }.sorted { ($0.start, $0.id) < ($1.start, $1.id) } }
  var trips: [Period] { all(.trip) }
  var charges: [Period] { all(.charge) }
  var parkedPeriods: [Period] { all(.parking) }

  /// The periods as lines: kind, start and end in seconds since `origin`.
  func lines(since origin: Int64) -> [String] {
    periods.values.sorted { ($0.start, $0.kind.rawValue, $0.id) < ($1.start, $1.kind.rawValue, $1.id) }.map { period in
      let seconds = [period.start, period.end].map { $0.map { String(($0 - origin) / 1_000_000) } ?? "open" }
      return "\(period.kind) \(seconds[0])-\(seconds[1])"
    }
  }
}
