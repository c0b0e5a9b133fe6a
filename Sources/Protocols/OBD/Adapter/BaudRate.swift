// The baud rate of the adapter. Without ?baud=N in the link, common rates are tried, beginning with the one that last worked; a readable
// banner identifies the right one. Source: ELM327 data sheet (9600, 38400), STN reference (115200, up to 2 Mbit/s), python-OBD for the
// order.

/// The baud rate of a link, if it can be changed.
struct BaudRate: Sendable {
  static let key = "baud"
  /// The rates in the order in which they are tried. Only STN chips support 500000 and above.
  static let rates = [38400, 9600, 230_400, 115_200, 57600, 19200, 500_000, 1_000_000, 2_000_000]
  /// The timeout for a reply at an untested rate: a reset usually takes less than a second.
  private static let shortTimeout: Nanoseconds = 2 * .second

  /// The URL of the link. A stored rate is valid for this link only.
  let link: String
  /// The stored rate.
  private var stored: Int?
  /// The current rate, or nil if the rate cannot be changed.
  private var current: Int?
  /// The rates tried since the link came up.
  private var tried: [Int] = []
  /// Whether the adapter has replied since the link came up.
  private var isConfirmed = false

  init(of link: String = "") { self.link = link }

  /// Restores the stored rate, if it belongs to this link.
  mutating func restore(_ bytes: [UInt8]?) {
    let parts = String(decoding: bytes ?? [], as: UTF8.self).split(separator: " ", maxSplits: 1)
    guard parts.count == 2, parts[1] == link, let baud = Int(parts[0]), Self.rates.contains(baud) else { return }
    stored = baud
  }

  /// Handles a link that came up at rate `baud`, which is nil if the rate cannot be changed. Returns the rate to change to, the stored one,
  /// or nil if the current rate is kept.
  mutating func linkCameUp(at baud: Int?) -> Int? {
    (current, tried, isConfirmed) = (baud, [], false)
    guard let stored, baud != nil, baud != stored else { return nil }
    current = stored
    return stored
  }

  /// Handles a readable banner. Returns the bytes to store if the rate is not stored yet.
  mutating func bannerReceived() -> [UInt8]? {
    isConfirmed = true
    guard let current, current != stored else { return nil }
    stored = current
    return Array("\(current) \(link)".utf8)
  }

  /// Switches to the next rate after a failure, and returns that rate; nil if none is left.
  mutating func tryNext() -> Int? {
    guard let baud = current, !isConfirmed else { return nil }
    if !tried.contains(baud) { tried.append(baud) }
    guard let next = Self.rates.first(where: { !tried.contains($0) }) else { return nil }
    current = next
    return next
  }

  /// Whether the rate can be changed.
  var canChange: Bool { current != nil }
  /// Whether the adapter has never replied at the current rate.
  var isUntested: Bool { current != nil && !isConfirmed && current != stored }
  /// The timeout for a reply. It is short at untested rates, except at the first one, because the adapter may have to wake up.
  var timeout: Nanoseconds { isUntested && !tried.isEmpty ? Self.shortTimeout : AdapterSession.timeout }

  /// The error message after all rates have failed; nil if none was tried, or one worked.
  var allFailedMessage: String? {
    if tried.isEmpty || isConfirmed { return nil }
    let rates = tried.map { "\($0)" }.joined(separator: ", ")
    return "no adapter responds at \(rates) baud; check its power and wiring, or add ?baud=N to the link"
  }
}
