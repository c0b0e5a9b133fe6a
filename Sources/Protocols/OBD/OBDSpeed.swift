// How fast the serial line to the adapter runs. Where the link's URL does not say it and the link can change it, the speeds that adapters
// are set to are tried in turn, first the one that answered before. A speed is the right one when the banner can be read.
// Facts: ELM327 data sheet (9600, 38400), STN reference (115200, up to 2 Mbit/s), python-OBD for the order.

/// The speed of a line, as far as it is ours to choose.
struct LineSpeed: Sendable {
  static let key = "baud"
  /// In the order in which they are tried; STN chips alone know the last.
  static let usual = [38400, 9600, 230_400, 115_200, 57600, 19200, 500_000, 1_000_000, 2_000_000]
  /// A reset takes less than a second as a rule.
  private static let shortTimeout: Nanoseconds = 2 * .second

  /// The link's URL: what answered at another one is another adapter.
  let link: String
  /// The adapter answered at this speed before.
  private var known: Int?
  /// The line runs at this speed; nil: whatever it is, it stays.
  private var current: Int?
  /// What was tried since the link came up, and is given up.
  private var tried: [Int] = []
  /// The adapter has answered since the link came up.
  private var isRight = false

  init(of link: String = "") { self.link = link }

  /// Takes what was kept, if it was kept of this link.
  mutating func restore(_ bytes: [UInt8]?) {
    let parts = String(decoding: bytes ?? [], as: UTF8.self).split(separator: " ", maxSplits: 1)
    guard parts.count == 2, parts[1] == link, let baud = Int(parts[0]), Self.usual.contains(baud) else { return }
    known = baud
  }

  /// The link is up, at this speed if it can be changed. Gives another one that is to be tried first.
  mutating func lineCameUp(at baud: Int?) -> Int? {
    (current, tried, isRight) = (baud, [], false)
    guard let known, baud != nil, baud != known else { return nil }
    current = known
    return known
  }

  /// The banner came. Gives what is to be kept, if that is new.
  mutating func answered() -> [UInt8]? {
    isRight = true
    guard let current, current != known else { return nil }
    known = current
    return Array("\(current) \(link)".utf8)
  }

  /// Nothing came of the current speed. Gives the next one, if there is one.
  mutating func next() -> Int? {
    guard let baud = current, !isRight else { return nil }
    if !tried.contains(baud) { tried.append(baud) }
    guard let next = Self.usual.first(where: { !tried.contains($0) }) else { return nil }
    current = next
    return next
  }

  /// The speed is ours to choose.
  var isOurs: Bool { current != nil }
  /// The adapter has never answered at this speed.
  var isGuess: Bool { current != nil && !isRight && current != known }
  /// How long the adapter may take. At the first speed it may have to wake up.
  var timeout: Nanoseconds { isGuess && !tried.isEmpty ? Self.shortTimeout : OBDMachine.timeout }

  /// Why there is nothing left to try; nil: nothing was tried.
  var words: String? {
    if tried.isEmpty || isRight { return nil }
    let speeds = tried.map { "\($0)" }.joined(separator: ", ")
    return "no adapter responds at \(speeds) baud; check its power and wiring, or add ?baud=N to the link"
  }
}

extension OBDMachine {
  /// Nothing came of the line's speed: whether there is another to try, on the same link, at once.
  mutating func triesNextSpeed(at now: Instant, _ effects: inout Effects) -> Bool {
    guard let baud = line.next() else { return false }
    effects.append(.note("no adapter found yet: trying \(baud) baud"))
    effects.append(.setBaud(.main, baud))
    dialogue.reset()
    failedSetups = 0
    setUpAgain(at: now, &effects)
    return true
  }

  /// The adapter's banner could be read.
  mutating func speedAnswered(_ effects: inout Effects) {
    if let kept = line.answered() { effects.append(.store(key: LineSpeed.key, kept)) }
  }
}
