// The values that clients set: stamped with day and time, stored in one file, and published after they are stored. While a
// store is in progress, further values wait and are stored together.

/// The values that were set, and pending stores.
struct HealthStore: Sendable {
  static let key = "values"

  /// A value that a client set.
  struct Entry: Sendable, Equatable {
    var number: Double
    /// The local day on which it was set.
    var day: Int
    /// When it was set, in microseconds since the Unix epoch.
    var micros: Int64
    /// When it was set, on the monotonic clock.
    var setAt: Instant
  }

  /// The stored values.
  private(set) var entries: [HealthMetric: Entry] = [:]
  /// The values that wait for the wall-clock time, and the commands that set them.
  private var unstamped: (numbers: [HealthMetric: Double], commands: [CommandID]) = ([:], [])
  /// The values that wait for the end of the store in progress, and the commands that set them.
  private var waiting: (entries: [HealthMetric: Entry], commands: [CommandID]) = ([:], [])
  /// The values that are being stored, and the commands that set them; nil if no store is in progress.
  private var storing: (entries: [HealthMetric: Entry], commands: [CommandID])?

  /// Restores stored values: one metric per line, `steps 4321 20089 1735689600000000`. A value of another day is also restored, because the
  /// clock may not be set yet. Returns false if part of the data is corrupt.
  mutating func restore(_ bytes: [UInt8]?, _ clock: DayClock, at now: Instant) -> Bool {
    let lines = String(decoding: (bytes ?? []).prefix(4096), as: UTF8.self).split(separator: "\n")
    var isWhole = lines.count <= HealthMetric.allCases.count
    for line in lines.prefix(HealthMetric.allCases.count) {
      let fields = line.split(separator: " ").map(String.init)
      guard fields.count == 4, let metric = HealthMetric.allCases.first(where: { $0.name == fields[0] }),
        let number = Double(fields[1]), metric.value(number) != nil, let day = Int(fields[2]),
        let micros = Int64(fields[3]), 0..<1 << 60 ~= micros
      else {
        isWhole = false
        continue
      }
      let age = clock.micros(at: now) - micros
      // The age of a value from the future is unknown.
      if !metric.isDailyTotal, !(0..<86_400_000_000).contains(age) { continue }
      entries[metric] = Entry(number: number, day: day, micros: micros, setAt: metric.isDailyTotal ? now : now &- age * .microsecond)
    }
    return isWhole
  }

  /// Whether there is a total of this day, or of a later one (the clock may have been set back).
  func hasValue(onOrAfter day: Int) -> Bool { entries.contains { $0.key.isDailyTotal && $0.value.day >= day } }

  /// Sets a value for a command.
  mutating func set(_ metric: HealthMetric, _ number: Double, for id: CommandID) {
    unstamped.numbers[metric] = number
    unstamped.commands.append(id)
  }

  /// Stamps the values that wait for the time.
  mutating func stamp(_ clock: DayClock, at now: Instant) {
    for (metric, number) in unstamped.numbers {
      waiting.entries[metric] = Entry(number: number, day: clock.day, micros: clock.micros(at: now), setAt: now)
    }
    waiting.commands += unstamped.commands
    unstamped = ([:], [])
  }

  /// Stores the waiting values, unless a store is in progress.
  mutating func advance(_ effects: inout Effects) {
    guard storing == nil, !waiting.entries.isEmpty else { return }
    storing = waiting
    waiting = ([:], [])
    let all = entries.merging(storing?.entries ?? [:]) { $1 }.sorted { $0.key.rawValue < $1.key.rawValue }
    let lines = all.map { "\($0.key.name) \(Value.text($0.value.number)) \($0.value.day) \($0.value.micros)\n" }
    effects.append(.store(key: Self.key, Array(lines.joined().utf8)))
  }

  /// Handles the result of a store. Returns the waiting commands, and the reply to send after the values have been published.
  mutating func stored(_ failure: String?) -> (commands: [CommandID], result: Result<Report, CommandError>) {
    guard let done = storing else { return ([], .success(Report())) }
    storing = nil
    if let failure { return (done.commands, .failure(.refused(code: .notStored, failure))) }
    entries.merge(done.entries) { $1 }
    return (done.commands, .success(Report()))
  }

  /// Removes a command whose caller disconnected.
  mutating func cancel(_ id: CommandID) {
    unstamped.commands.removeAll { $0 == id }
    waiting.commands.removeAll { $0 == id }
    storing?.commands.removeAll { $0 == id }
  }

  /// Removes and returns all waiting commands.
  mutating func removeAllCommands() -> [CommandID] {
    let all = unstamped.commands + waiting.commands + (storing?.commands ?? [])
    unstamped.commands = []
    waiting.commands = []
    storing?.commands = []
    return all
  }
}
