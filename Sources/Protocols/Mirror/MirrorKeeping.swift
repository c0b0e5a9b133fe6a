// What a person wants of a mirror and expects to stay so: the light, the name, the interval, what may be collected and sent.
// It outlives the link and the daemon. A wish is in force, and shown, once it is on its way to the disk.

struct MirrorKeeping: Sendable {
  private static let ledKey = "led"
  private static let usernameKey = "username"
  private static let intervalKey = "interval"
  private static let most = 64

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
  private var pending: [(id: CommandID?, wish: Wish)] = []

  /// Takes what earlier runs stored. What is damaged is as if it had never been set.
  mutating func restore(_ kept: [String: [UInt8]]) {
    func text(_ key: String) -> String? { kept[key].map { String(decoding: $0.prefix(100), as: UTF8.self) } }
    if let led = text(Self.ledKey).flatMap(Int.init), (0...100).contains(led) { now.led = led }
    if let name = text(Self.usernameKey), MirrorMessage.refusal(name: name) == nil { now.username = name }
    if let seconds = text(Self.intervalKey).flatMap(Int.init), MirrorSignal.intervals.contains(Double(seconds)) { now.interval = seconds }
    now.on = Set(MirrorSwitch.allCases.filter { text($0.rawValue) == "on" })
    next = now
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
