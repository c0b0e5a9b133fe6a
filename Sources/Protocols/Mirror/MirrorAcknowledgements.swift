// What a mirror has acknowledged, persisted across restarts: user names and, for each value that can be reset (to 0 or n/a), the day on
// which the mirror last acknowledged it.

struct MirrorAcknowledgements: Sendable {
  private static let namesKey = "introduced"
  private static let daysKey = "acknowledged"
  /// The key that earlier versions used instead of `daysKey`.
  private static let oldDaysKey = "told"
  private static let maxNames = 16

  /// User names under which the mirror has acknowledged a value, the most recent last. For a new user name, the mirror creates a profile
  /// and photographs the person in front of it.
  private(set) var names: [String] = []
  /// The local day, in days since 1970-01-01, on which the mirror acknowledged a value, for values that can be reset.
  private(set) var days: [MirrorMetric: Int] = [:]
  /// Whether the days are also stored under the key of earlier versions. The next write removes the old key.
  private var hasOldDays = false

  mutating func restore(_ files: [String: [UInt8]]) {
    let lines = String(decoding: files[Self.namesKey, default: []].prefix(4096), as: UTF8.self).split(separator: "\n").map(String.init)
    names = lines.filter { MirrorMessage.refusal(name: $0) == nil }.suffix(Self.maxNames)
    hasOldDays = files[Self.oldDaysKey] != nil
    let stored = files[Self.daysKey] ?? files[Self.oldDaysKey] ?? []
    for line in String(decoding: stored.prefix(1024), as: UTF8.self).split(separator: "\n") {
      let fields = line.split(separator: " ")
      if fields.count == 2, let metric = MirrorMetric(rawValue: String(fields[0])), let day = Int(fields[1]) { days[metric] = day }
    }
  }

  /// Records that the mirror has acknowledged a value under this name.
  mutating func record(name: String, _ effects: inout Effects) {
    guard names.last != name else { return }
    names = (names.filter { $0 != name } + [name]).suffix(Self.maxNames)
    effects.append(.store(key: Self.namesKey, Array(names.joined(separator: "\n").utf8)))
  }

  /// Records the day on which the mirror has acknowledged a value; nil if it has acknowledged that the value is unknown.
  mutating func record(_ metric: MirrorMetric, on day: Int?, _ effects: inout Effects) {
    guard metric.withdrawalMessage != nil, days[metric] != day else { return }
    days[metric] = day
    let lines = days.map { "\($0.key.rawValue) \($0.value)" }.sorted()
    effects.append(.store(key: Self.daysKey, Array(lines.joined(separator: "\n").utf8)))
    if hasOldDays { effects.append(.store(key: Self.oldDaysKey, [])) }
    hasOldDays = false
  }
}
