// Looks at an export of Gadgetbridge once a minute, and reads it when it has changed or the day has: first what tables there are,
// then the day's sums. What it learned stays until the next good read; what is wrong is a fault in words.
// Facts: Gadgetbridge's database as it is exported; samples come when the phone has synchronised, so each carries its own age.

/// One export, and what was last read of it.
struct Gadgetbridge: Sendable {
  private enum Stage {
    /// When it is looked at again.
    case resting(until: Instant)
    /// What tables there are was asked.
    case discovering(QueryID)
    /// The sums of this day were asked of these tables.
    case summing(QueryID, [GadgetbridgeTable], day: Int)
  }

  private static let period: Nanoseconds = 60 * .second
  /// Clocks of phones differ; a sample of later than this is of no time that there is.
  private static let ahead: Int64 = 300

  private let file: String
  private let wanted: String?
  private var stage = Stage.resting(until: .min)
  private var lastID: QueryID = 0
  /// What was read last, and on which day.
  private var read: (stamp: FileStamp, day: Int)?
  private(set) var fault: String?
  private var result: GadgetbridgeDay?
  /// The newest heart rate's time, and when it was first seen here.
  private var heartSeen: (micros: Int64, at: Instant)?

  /// An export of this name; `device` is what its wearer calls the device, nil: the one with the newest sample.
  init(_ file: String, device wanted: String?) { (self.file, self.wanted) = (file, wanted) }

  /// When it wants to be looked at.
  var due: Instant? { if case .resting(let until) = stage { until } else { nil } }

  /// The clock was set: what was too new for it may not be now.
  mutating func forget() {
    read = nil
    if case .resting = stage { stage = .resting(until: .min) }
  }

  /// Looks at the file, if it is time.
  mutating func look(_ clock: DayClock, at now: Instant, _ effects: inout Effects) {
    guard case .resting(let until) = stage, now >= until || read.map({ $0.day != clock.day }) == true else { return }
    lastID &+= 1
    stage = .discovering(lastID)
    let known = read?.day == clock.day ? read?.stamp : nil
    effects.append(.query(lastID, DatabaseQuery(file, GadgetbridgeTable.discovery, unlessStill: known)))
  }

  /// Takes an answer.
  mutating func take(_ id: QueryID, _ answer: DatabaseAnswer, _ clock: DayClock, at now: Instant, _ effects: inout Effects) {
    switch (stage, answer) {
    case (.discovering(id), .rows(let rows, _)):
      let tables = GadgetbridgeTable.all(in: rows)
      guard let question = GadgetbridgeTable.sums(of: tables) else {
        return rest("\(file) is a database, but not Gadgetbridge's: no table of it has TIMESTAMP and STEPS", at: now)
      }
      lastID &+= 1
      stage = .summing(lastID, tables, day: clock.day)
      let times = [Value.int(Int(clock.midnight)), .int(Int(clock.micros(at: now) / 1_000_000 + Self.ahead))]
      effects.append(.query(lastID, DatabaseQuery(file, question, times)))
    case (.summing(id, let tables, let day), .rows(let rows, let stamp)):
      do throws(ValueError) {
        let new = try GadgetbridgeDay(rows, of: tables, device: wanted, day: day)
        if let heart = new.heart, heartSeen?.micros != heart.micros { heartSeen = (heart.micros, now) }
        result = new
        rest(nil, at: now)
        read = (stamp, day)
      } catch {
        rest(error.description, at: now)
      }
    case (.discovering(id), .unchanged): stage = .resting(until: now &+ Self.period)
    case (.discovering(id), .missing), (.summing(id, _, _), .missing):
      rest("there is no \(file) in the import folder of the state directory: export Gadgetbridge's database and put it there", at: now)
    case (.discovering(id), .failed(let words)), (.summing(id, _, _), .failed(let words)): rest(words, at: now)
    default: break
    }
  }

  private mutating func rest(_ fault: String?, at now: Instant) {
    stage = .resting(until: now &+ Self.period)
    read = nil
    self.fault = fault
  }

  // MARK: What it has

  /// What may be shown of a metric.
  func told(_ metric: HealthMetric, _ clock: DayClock, fresh: Nanoseconds, at now: Instant) -> HealthMachine.Told? {
    guard let result else { return nil }
    guard metric.isSum else {
      guard let heart = result.heart, let seen = heartSeen else { return nil }
      // Whatever the wall's clock does, it is not shown for longer than since it was first seen.
      let end = min(seen.at &+ fresh, now &+ fresh &- clock.age(of: heart.micros, at: now))
      guard now < end else { return nil }
      return HealthMachine.Told(
        number: heart.number, source: words(result, heart.micros, clock), micros: heart.micros, end: end)
    }
    guard result.day == clock.day, let number = result.sums[metric], metric.value(number) != nil else { return nil }
    return HealthMachine.Told(number: number, source: words(result, result.newest, clock), micros: result.newest)
  }

  private func words(_ result: GadgetbridgeDay, _ micros: Int64, _ clock: DayClock) -> String {
    "Gadgetbridge: \(result.device) at \(clock.words(of: micros))"
  }

  /// Why there is nothing of a metric, where the export says so.
  func absence(of metric: HealthMetric, _ clock: DayClock, at now: Instant) -> String? {
    guard let result else { return nil }
    let wall = clock.micros(at: now)
    if let heart = result.heart, metric == .heartRate {
      return "the newest of \(result.device) is \(DayClock.age(wall - heart.micros)) old: synchronise it, and export again"
    }
    guard result.has(metric) else { return "\(result.device) records no \(metric.name): vehiclectl set \(metric.name) VALUE" }
    guard metric.isSum else { return "\(result.device) has recorded none" }
    if result.day == clock.day, let number = result.sums[metric] {
      return "\(result.device) says \(Value.text(number)), which cannot be"
    }
    return "nothing yet today: the newest sample of \(result.device) is \(DayClock.age(wall - result.newest)) old"
  }
}
