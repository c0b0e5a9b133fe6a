// Checks an export of Gadgetbridge once a minute, and reads it when the file or the day has changed: first the list of tables, then the
// totals of the day. A failed read is reported as a fault, and the values of the last successful read remain in use.
// Source: Gadgetbridge's database export. Samples arrive when the phone synchronises, so each sample has its own age.

/// One export, and the values that were last read from it.
struct Gadgetbridge: Sendable {
  private enum Stage {
    /// No query is in flight; the file is checked again at this time.
    case idle(until: Instant)
    /// The list of tables was requested.
    case discovering(QueryID)
    /// The totals of this day were requested from these tables.
    case totalling(QueryID, [GadgetbridgeTable], day: Int)
  }

  private static let period: Nanoseconds = 60 * .second
  /// How far in the future a sample may be, in seconds, because clocks differ; later samples are ignored.
  private static let maxClockSkew: Int64 = 300

  private let file: String
  private let device: String?
  /// The name of the health device, for messages.
  private let health: String
  private var stage = Stage.idle(until: .min)
  private var lastID: QueryID = 0
  /// The file that was read last, and the day for which it was read.
  private var lastRead: (stamp: FileStamp, day: Int)?
  private(set) var fault: String?
  private var result: GadgetbridgeDay?
  /// The time of the newest heart rate, and when this machine first read it.
  private var heartRateSeen: (micros: Int64, at: Instant)?

  /// Creates a reader of an export. `device` is the name of the device in it; nil selects the device with the newest sample.
  init(_ file: String, device: String?, health: String) { (self.file, self.device, self.health) = (file, device, health) }

  /// When the file is checked next.
  var due: Instant? { if case .idle(let until) = stage { until } else { nil } }

  /// Reads the file again after the clock was set, because samples that were in the future may now be valid.
  mutating func invalidate() {
    lastRead = nil
    if case .idle = stage { stage = .idle(until: .min) }
  }

  /// Checks the file, if a check is due.
  mutating func check(_ clock: DayClock, at now: Instant, _ effects: inout Effects) {
    guard case .idle(let until) = stage, now >= until || lastRead.map({ $0.day != clock.day }) == true else { return }
    lastID &+= 1
    stage = .discovering(lastID)
    let known = lastRead?.day == clock.day ? lastRead?.stamp : nil
    effects.append(.query(lastID, DatabaseQuery(file, GadgetbridgeTable.tablesQuery, knownStamp: known)))
  }

  /// Handles the result of a query.
  mutating func handle(_ id: QueryID, _ answer: DatabaseAnswer, _ clock: DayClock, at now: Instant, _ effects: inout Effects) {
    switch (stage, answer) {
    case (.discovering(id), .rows(let rows, _)):
      let tables = GadgetbridgeTable.all(in: rows)
      guard let query = GadgetbridgeTable.totalsQuery(of: tables) else {
        return finish("\(file) is not a Gadgetbridge database: no table with columns TIMESTAMP and STEPS", at: now)
      }
      lastID &+= 1
      stage = .totalling(lastID, tables, day: clock.day)
      let times = [Value.int(Int(clock.midnight)), .int(Int(clock.micros(at: now) / 1_000_000 + Self.maxClockSkew))]
      effects.append(.query(lastID, DatabaseQuery(file, query, times)))
    case (.totalling(id, let tables, let day), .rows(let rows, let stamp)):
      do throws(ValueError) {
        let new = try GadgetbridgeDay(rows, of: tables, device: device, day: day)
        if let heartRate = new.heartRate, heartRateSeen?.micros != heartRate.micros { heartRateSeen = (heartRate.micros, now) }
        result = new
        finish(nil, at: now)
        lastRead = (stamp, day)
      } catch {
        finish(error.description, at: now)
      }
    case (.discovering(id), .unchanged): stage = .idle(until: now &+ Self.period)
    case (.discovering(id), .missing), (.totalling(id, _, _), .missing):
      finish("no file \(file) in import/ of the state directory: export Gadgetbridge's database and copy it there", at: now)
    case (.discovering(id), .failed(let message)), (.totalling(id, _, _), .failed(let message)): finish(message, at: now)
    default: break
    }
  }

  /// Ends a read with this fault, and waits for the next check.
  private mutating func finish(_ fault: String?, at now: Instant) {
    stage = .idle(until: now &+ Self.period)
    lastRead = nil
    self.fault = fault
  }

  // MARK: Values

  /// The current value of a metric; nil if there is none, or it has expired.
  func candidate(_ metric: HealthMetric, _ clock: DayClock, maxAge: Nanoseconds, at now: Instant) -> HealthMachine.Candidate? {
    guard let result else { return nil }
    guard metric.isDailyTotal else {
      guard let heartRate = result.heartRate, let seen = heartRateSeen else { return nil }
      // The monotonic clock limits the lifetime as well, in case the wall clock is set back.
      let expires = min(seen.at &+ maxAge, now &+ maxAge &- clock.age(of: heartRate.micros, at: now))
      guard now < expires else { return nil }
      return HealthMachine.Candidate(
        number: heartRate.number, source: message(result, heartRate.micros, clock), micros: heartRate.micros, expires: expires)
    }
    guard result.day == clock.day, let number = result.totals[metric], metric.value(number) != nil else { return nil }
    return HealthMachine.Candidate(number: number, source: message(result, result.newest, clock), micros: result.newest)
  }

  private func message(_ result: GadgetbridgeDay, _ micros: Int64, _ clock: DayClock) -> String {
    "Gadgetbridge: \(result.device) at \(clock.timeOfDay(of: micros))"
  }

  /// Why the export has no value of a metric; nil if there is no export.
  func absence(of metric: HealthMetric, _ clock: DayClock, at now: Instant) -> String? {
    guard let result else { return nil }
    let wall = clock.micros(at: now)
    if let heartRate = result.heartRate, metric == .heartRate {
      return "the newest heart rate of \(result.device) is \(DayClock.ageText(wall - heartRate.micros)) old: synchronise and export again"
    }
    guard result.records(metric) else {
      return "\(result.device) does not record \(metric.name): vehiclectl set \(health).\(metric.name) VALUE"
    }
    guard metric.isDailyTotal else { return "\(result.device) has no heart rate yet" }
    if result.day == clock.day, let number = result.totals[metric] {
      return "implausible value \(Value.text(number)) from \(result.device)"
    }
    return "no data for today: the newest sample of \(result.device) is \(DayClock.ageText(wall - result.newest)) old"
  }
}
