// The stored settings of a mirror: light, name, interval, and what may be collected and sent. They survive disconnection and
// restart. A setting takes effect, and is published, once it is stored.

struct MirrorStore: Sendable {
  private static let ledKey = "led"
  private static let usernameKey = "username"
  private static let intervalKey = "interval"
  private static let knownNamesKey = "introduced"
  private static let acknowledgedKey = "acknowledged"
  /// The key of `acknowledgedKey` in earlier versions.
  private static let oldAcknowledgedKey = "told"
  private static let maxPending = 64
  private static let maxNames = 16

  enum Change: Sendable, Equatable {
    case led(Int)
    /// nil: the configured name.
    case username(String?)
    /// Seconds.
    case interval(Int)
    case turn(MirrorSwitch, Bool)

    var key: String {
      switch self {
      case .led: ledKey
      case .username: usernameKey
      case .interval: intervalKey
      case .turn(let turned, _): turned.rawValue
      }
    }

    var bytes: [UInt8] {
      switch self {
      case .led(let number), .interval(let number): Array(String(number).utf8)
      case .username(let name): Array((name ?? "").utf8)
      case .turn(_, let isOn): Array((isOn ? "on" : "off").utf8)
      }
    }
  }

  /// All settings.
  struct Values: Sendable {
    /// Percent; nil if never set.
    var led: Int?
    /// Set by a client; nil: the configured name.
    var username: String?
    /// Seconds; nil: the configured interval.
    var interval: Int?
    var on: Set<MirrorSwitch> = []

    mutating func apply(_ change: Change) {
      switch change {
      case .led(let percent): led = percent
      case .username(let name): username = name
      case .interval(let seconds): interval = seconds
      case .turn(let turned, true): on.insert(turned)
      case .turn(let turned, false): on.remove(turned)
      }
    }
  }

  /// The settings in effect.
  private(set) var now = Values()
  /// The settings after all pending stores; the next command is validated against them.
  private(set) var next = Values()
  /// Names under which the mirror has acknowledged a value, the latest last. For an unknown name it takes pictures.
  private(set) var knownNames: [String] = []
  /// The local day on which the mirror acknowledged a value, for values that can be withdrawn.
  private(set) var acknowledgedDays: [MirrorMetric: Int] = [:]
  /// The days are also stored under the key of earlier versions, to be removed with the next store.
  private var hasOldAcknowledgements = false
  private var pending: [(id: CommandID?, change: Change)] = []

  /// Restores stored settings. A damaged one counts as unset; returns the names of damaged settings.
  mutating func restore(_ files: [String: [UInt8]]) -> [String] {
    let keys = [Self.ledKey, Self.usernameKey, Self.intervalKey] + MirrorSwitch.allCases.map(\.rawValue)
    var damaged: [String] = []
    for key in keys {
      guard let bytes = files[key] else { continue }
      if let change = Self.change(key, String(decoding: bytes.prefix(100), as: UTF8.self)) {
        now.apply(change)
      } else {
        damaged.append(key)
      }
    }
    next = now
    let names = String(decoding: files[Self.knownNamesKey, default: []].prefix(4096), as: UTF8.self).split(separator: "\n").map(String.init)
    knownNames = names.filter { MirrorMessage.refusal(name: $0) == nil }.suffix(Self.maxNames)
    hasOldAcknowledgements = files[Self.oldAcknowledgedKey] != nil
    let days = files[Self.acknowledgedKey] ?? files[Self.oldAcknowledgedKey] ?? []
    for line in String(decoding: days.prefix(1024), as: UTF8.self).split(separator: "\n") {
      let fields = line.split(separator: " ")
      if fields.count == 2, let metric = MirrorMetric(rawValue: String(fields[0])), let day = Int(fields[1]) {
        acknowledgedDays[metric] = day
      }
    }
    return damaged
  }

  /// Records that the mirror has acknowledged a value under this name.
  mutating func recordKnownName(_ name: String, _ effects: inout Effects) {
    guard knownNames.last != name else { return }
    knownNames = (knownNames.filter { $0 != name } + [name]).suffix(Self.maxNames)
    effects.append(.store(key: Self.knownNamesKey, Array(knownNames.joined(separator: "\n").utf8)))
  }

  /// Records that the mirror has acknowledged a value on this day; nil if it is now shown as unknown.
  mutating func recordAcknowledgement(_ metric: MirrorMetric, on day: Int?, _ effects: inout Effects) {
    guard metric.unknown != nil, acknowledgedDays[metric] != day else { return }
    acknowledgedDays[metric] = day
    let lines = acknowledgedDays.map { "\($0.key.rawValue) \($0.value)" }.sorted()
    effects.append(.store(key: Self.acknowledgedKey, Array(lines.joined(separator: "\n").utf8)))
    if hasOldAcknowledgements { effects.append(.store(key: Self.oldAcknowledgedKey, [])) }
    hasOldAcknowledgements = false
  }

  private static func change(_ key: String, _ text: String) -> Change? {
    switch (key, Int(text)) {
    case (ledKey, let percent?) where (0...100).contains(percent): return .led(percent)
    case (intervalKey, let seconds?) where MirrorSignal.intervals.contains(Double(seconds)): return .interval(seconds)
    case (usernameKey, _): return MirrorMessage.refusal(name: text) == nil ? .username(text) : nil
    default:
      guard let turned = MirrorSwitch(rawValue: key), text == "on" || text == "off" else { return nil }
      return .turn(turned, text == "on")
    }
  }

  /// Starts to store a setting; false if too many stores are pending.
  mutating func save(_ change: Change, for id: CommandID, _ effects: inout Effects) -> Bool {
    guard pending.count < Self.maxPending else { return false }
    pending.append((id, change))
    next.apply(change)
    effects.append(.store(key: change.key, change.bytes))
    return true
  }

  /// Handles the end of a store. Returns the setting and the waiting command.
  mutating func stored(_ key: String, _ failure: String?) -> (id: CommandID?, change: Change)? {
    guard let index = pending.firstIndex(where: { $0.change.key == key }) else { return nil }
    let done = pending.remove(at: index)
    if failure == nil { now.apply(done.change) }
    next = now
    for (_, change) in pending { next.apply(change) }
    return done
  }

  /// Removes a command whose caller disconnected.
  mutating func cancel(_ id: CommandID) {
    for index in pending.indices where pending[index].id == id { pending[index].id = nil }
  }
}
