// What people and scripts set: stamped with the day and the time at which it was, kept in one file, and shown only once the disk
// has it. While one store is under way, whatever is set meanwhile waits and goes into the next one together.

/// The values that were set, and what is under way to the disk.
struct HealthKeeping: Sendable {
  static let key = "values"

  /// A value that somebody set.
  struct Entry: Sendable, Equatable {
    var number: Double
    /// The local day on which it was set.
    var day: Int
    /// Microseconds since the Unix epoch.
    var micros: Int64
    /// When that was on the machines' clock, as far as it goes back.
    var set: Instant
  }

  /// What the disk has.
  private(set) var entries: [HealthMetric: Entry] = [:]
  /// What waits to be told the time, and who waits for it.
  private var asked: (numbers: [HealthMetric: Double], by: [CommandID]) = ([:], [])
  /// What waits for the disk.
  private var waiting: (entries: [HealthMetric: Entry], by: [CommandID]) = ([:], [])
  private var storing: (entries: [HealthMetric: Entry], by: [CommandID])?

  /// Takes what earlier runs stored: a line a metric, `steps 4321 20089 1735689600000000`. What is not of today may be of a
  /// tomorrow: the clock is set later. False where some of it is damaged.
  mutating func restore(_ bytes: [UInt8]?, _ clock: DayClock, at now: Instant) -> Bool {
    let lines = String(decoding: (bytes ?? []).prefix(4096), as: UTF8.self).split(separator: "\n")
    var isWhole = lines.count <= HealthMetric.allCases.count
    for line in lines.prefix(HealthMetric.allCases.count) {
      let words = line.split(separator: " ").map(String.init)
      guard words.count == 4, let metric = HealthMetric.allCases.first(where: { $0.name == words[0] }),
        let number = Double(words[1]), metric.value(number) != nil, let day = Int(words[2]),
        let micros = Int64(words[3]), 0..<1 << 60 ~= micros
      else {
        isWhole = false
        continue
      }
      let age = clock.micros(at: now) - micros
      // What is said to be of later cannot be told from what is long over.
      if !metric.isSum, !(0..<86_400_000_000).contains(age) { continue }
      entries[metric] = Entry(number: number, day: day, micros: micros, set: metric.isSum ? now : now &- age * .microsecond)
    }
    return isWhole
  }

  /// Whether some value is still of today, or will be.
  func lasts(after day: Int) -> Bool { entries.contains { $0.key.isSum && $0.value.day >= day } }

  /// A command wants this value set.
  mutating func set(_ metric: HealthMetric, _ number: Double, for id: CommandID) {
    asked.numbers[metric] = number
    asked.by.append(id)
  }

  /// What was set was set at this time.
  mutating func stamp(_ clock: DayClock, at now: Instant) {
    for (metric, number) in asked.numbers {
      waiting.entries[metric] = Entry(number: number, day: clock.day, micros: clock.micros(at: now), set: now)
    }
    waiting.by += asked.by
    asked = ([:], [])
  }

  /// Sends what waits to the disk, if that is free.
  mutating func advance(_ effects: inout Effects) {
    guard storing == nil, !waiting.entries.isEmpty else { return }
    storing = waiting
    waiting = ([:], [])
    let all = entries.merging(storing?.entries ?? [:]) { $1 }.sorted { $0.key.rawValue < $1.key.rawValue }
    let lines = all.map { "\($0.key.name) \(Value.text($0.value.number)) \($0.value.day) \($0.value.micros)\n" }
    effects.append(.store(key: Self.key, Array(lines.joined().utf8)))
  }

  /// The disk has what was stored, or not. Gives who waited for it, and what is to be said once the values are shown.
  mutating func stored(_ failure: String?) -> (by: [CommandID], result: Result<Report, CommandError>) {
    guard let done = storing else { return ([], .success(Report())) }
    storing = nil
    if let failure { return (done.by, .failure(.refused(code: "not-stored", failure))) }
    entries.merge(done.entries) { $1 }
    return (done.by, .success(Report()))
  }

  /// Whoever waits is gone.
  mutating func cancel(_ id: CommandID) {
    asked.by.removeAll { $0 == id }
    waiting.by.removeAll { $0 == id }
    storing?.by.removeAll { $0 == id }
  }

  /// Everybody who waits. Nobody does afterwards.
  mutating func dismiss() -> [CommandID] {
    let all = asked.by + waiting.by + (storing?.by ?? [])
    asked.by = []
    waiting.by = []
    storing?.by = []
    return all
  }
}
