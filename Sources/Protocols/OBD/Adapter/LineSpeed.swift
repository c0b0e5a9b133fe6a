// The baud rate of the adapter. Without ?baud=N in the link the usual rates are tried, first the one that last worked; readable banners
// identify the right one. Facts: ELM327 data sheet (9600, 38400), STN reference (115200, up to 2 Mbit/s), python-OBD for the order.

/// The baud rate of a link, if it can be chosen.
struct LineSpeed: Sendable {
  static let key = "baud"
  /// In the order of attempts; the last are for STN chips only.
  static let usual = [38400, 9600, 230_400, 115_200, 57600, 19200, 500_000, 1_000_000, 2_000_000]
  /// A reset usually takes less than a second.
  private static let shortTimeout: Nanoseconds = 2 * .second

  /// The link's URL; a stored rate is only valid for it.
  let link: String
  /// The stored rate.
  private var known: Int?
  /// The current rate; nil: it cannot be changed.
  private var current: Int?
  /// The rates tried since the link came up.
  private var tried: [Int] = []
  /// The adapter has replied since the link came up.
  private var isRight = false

  init(of link: String = "") { self.link = link }

  /// Restores the stored rate, if it belongs to this link.
  mutating func restore(_ bytes: [UInt8]?) {
    let parts = String(decoding: bytes ?? [], as: UTF8.self).split(separator: " ", maxSplits: 1)
    guard parts.count == 2, parts[1] == link, let baud = Int(parts[0]), Self.usual.contains(baud) else { return }
    known = baud
  }

  /// Handles a new link with its rate, if that can be changed. Returns another rate to try first.
  mutating func lineCameUp(at baud: Int?) -> Int? {
    (current, tried, isRight) = (baud, [], false)
    guard let known, baud != nil, baud != known else { return nil }
    current = known
    return known
  }

  /// Handles a readable banner. Returns the bytes to store, if they are new.
  mutating func answered() -> [UInt8]? {
    isRight = true
    guard let current, current != known else { return nil }
    known = current
    return Array("\(current) \(link)".utf8)
  }

  /// Handles a failure at the current rate. Returns the next one, if any.
  mutating func next() -> Int? {
    guard let baud = current, !isRight else { return nil }
    if !tried.contains(baud) { tried.append(baud) }
    guard let next = Self.usual.first(where: { !tried.contains($0) }) else { return nil }
    current = next
    return next
  }

  /// The rate can be changed.
  var isOurs: Bool { current != nil }
  /// The adapter has never replied at this rate.
  var isGuess: Bool { current != nil && !isRight && current != known }
  /// The timeout for a reply. At the first rate the adapter may have to wake up.
  var timeout: Nanoseconds { isGuess && !tried.isEmpty ? Self.shortTimeout : AdapterSession.timeout }

  /// The error if no rate is left; nil: none was tried.
  var message: String? {
    if tried.isEmpty || isRight { return nil }
    let speeds = tried.map { "\($0)" }.joined(separator: ", ")
    return "no adapter responds at \(speeds) baud; check its power and wiring, or add ?baud=N to the link"
  }
}
