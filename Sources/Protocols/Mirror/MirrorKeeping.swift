// What a person wants of a mirror and expects to stay so: the light, the name, the interval, what may be collected and sent.
// It outlives the link and the daemon. A wish is in force, and shown, once it is on its way to the disk.

struct MirrorKeeping: Sendable {
  private static let ledKey = "led"
  private static let usernameKey = "username"
  private static let intervalKey = "interval"
  private static let introducedKey = "introduced"
  private static let toldKey = "told"
  private static let most = 64
  private static let maxNames = 16

  enum Wish: Sendable, Equatable {
    case led(Int)
    /// nil: the configuration's again.
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

  /// All that was wished.
  struct Wishes: Sendable {
    /// Percent; nil: nobody has said yet.
    var led: Int?
    /// Set by hand; nil: the configuration's.
    var username: String?
    /// Seconds; nil: the configuration's.
    var interval: Int?
    var on: Set<MirrorSwitch> = []

    mutating func take(_ wish: Wish) {
      switch wish {
      case .led(let percent): led = percent
      case .username(let name): username = name
      case .interval(let seconds): interval = seconds
      case .turn(let turned, true): on.insert(turned)
      case .turn(let turned, false): on.remove(turned)
      }
    }
  }

  /// What is in force.
  private(set) var now = Wishes()
  /// What will be, once the disk has all that is on its way: the next command is held against this.
  private(set) var next = Wishes()
  /// Names under which the mirror has acknowledged a value, the last one last. It takes pictures for a name that it does not know.
  private(set) var introduced: [String] = []
  /// Values that the mirror has, and the local day on which it acknowledged them; only of those that can be taken back.
  private(set) var told: [MirrorMetric: Int] = [:]
  private var pending: [(id: CommandID?, wish: Wish)] = []

  /// Takes what earlier runs stored. What is damaged is as if it had never been set; gives the names of that.
  mutating func restore(_ kept: [String: [UInt8]]) -> [String] {
    let keys = [Self.ledKey, Self.usernameKey, Self.intervalKey] + MirrorSwitch.allCases.map(\.rawValue)
    var damaged: [String] = []
    for key in keys {
      guard let bytes = kept[key] else { continue }
      if let wish = Self.wish(key, String(decoding: bytes.prefix(100), as: UTF8.self)) { now.take(wish) } else { damaged.append(key) }
    }
    next = now
    let names = String(decoding: kept[Self.introducedKey, default: []].prefix(4096), as: UTF8.self).split(separator: "\n").map(String.init)
    introduced = names.filter { MirrorMessage.refusal(name: $0) == nil }.suffix(Self.maxNames)
    for line in String(decoding: kept[Self.toldKey, default: []].prefix(1024), as: UTF8.self).split(separator: "\n") {
      let words = line.split(separator: " ")
      if words.count == 2, let metric = MirrorMetric(rawValue: String(words[0])), let day = Int(words[1]) { told[metric] = day }
    }
    return damaged
  }

  /// The mirror has acknowledged a value under this name.
  mutating func introduce(_ name: String, _ effects: inout Effects) {
    guard introduced.last != name else { return }
    introduced = (introduced.filter { $0 != name } + [name]).suffix(Self.maxNames)
    effects.append(.store(key: Self.introducedKey, Array(introduced.joined(separator: "\n").utf8)))
  }

  /// The mirror has acknowledged a value on this day, or (nil) that it is not known.
  mutating func tell(_ metric: MirrorMetric, on day: Int?, _ effects: inout Effects) {
    guard metric.unknown != nil, told[metric] != day else { return }
    told[metric] = day
    let lines = told.map { "\($0.key.rawValue) \($0.value)" }.sorted()
    effects.append(.store(key: Self.toldKey, Array(lines.joined(separator: "\n").utf8)))
  }

  private static func wish(_ key: String, _ text: String) -> Wish? {
    switch (key, Int(text)) {
    case (ledKey, let percent?) where (0...100).contains(percent): return .led(percent)
    case (intervalKey, let seconds?) where MirrorSignal.intervals.contains(Double(seconds)): return .interval(seconds)
    case (usernameKey, _): return MirrorMessage.refusal(name: text) == nil ? .username(text) : nil
    default:
      guard let turned = MirrorSwitch(rawValue: key), text == "on" || text == "off" else { return nil }
      return .turn(turned, text == "on")
    }
  }

  /// Begins to keep a wish; false where too many wait for the disk.
  mutating func keep(_ wish: Wish, for id: CommandID, _ effects: inout Effects) -> Bool {
    guard pending.count < Self.most else { return false }
    pending.append((id, wish))
    next.take(wish)
    effects.append(.store(key: wish.key, wish.bytes))
    return true
  }

  /// The disk has it, or not: what it was and who waits.
  mutating func stored(_ key: String, _ failure: String?) -> (id: CommandID?, wish: Wish)? {
    guard let index = pending.firstIndex(where: { $0.wish.key == key }) else { return nil }
    let done = pending.remove(at: index)
    if failure == nil { now.take(done.wish) }
    next = now
    for (_, wish) in pending { next.take(wish) }
    return done
  }

  /// Whoever waits is gone.
  mutating func forget(_ id: CommandID) {
    for index in pending.indices where pending[index].id == id { pending[index].id = nil }
  }
}
