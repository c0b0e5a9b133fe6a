// Adds up how far something rolled in its life from a counter that begins anew with every reset of the board, falls when
// it rolls back, may be cut off by a bit error, and wraps. Never falls itself, and would rather count too little.

/// A distance in whole counts (hundredths of a mile, metres) that outlives the counter it is fed from.
struct Odometer: Sendable, Equatable {
  /// Counts in its life.
  private(set) var total: Int
  /// The counter as it was last.
  private var last: Int?
  /// A leap that is believed when the next reading agrees.
  private var leap: Int?
  private var lastAt: Instant?
  /// The counter ends there and goes on at the other end of its range.
  private let wrap: Int?
  /// The fastest that it can count.
  private let perSecond: Double

  /// Goes on from what was stored; `perSecond` is the fastest believable, `wrap` how many values the counter has.
  init(stored: [UInt8] = [], perSecond: Double, wrap: Int? = nil) {
    let kept = Self.read(stored)
    total = kept?.total ?? 0
    last = kept?.last
    self.perSecond = perSecond
    self.wrap = wrap
  }

  static let lossWords = "what the board rode before cannot be read back: its total distance begins anew"

  /// Whether something was stored that cannot be read back.
  static func isDamaged(_ stored: [UInt8]) -> Bool { read(stored) == nil }

  /// No more than a counter can say in a life: a damaged file must not overflow.
  private static func read(_ stored: [UInt8]) -> (total: Int, last: Int?)? {
    let numbers = String(decoding: stored.prefix(64), as: UTF8.self).split(separator: " ").map { Int($0) }
    guard (1...2).contains(numbers.count), let total = numbers[0], 0..<1 << 45 ~= total else { return nil }
    return (total, numbers.count > 1 ? numbers[1].flatMap { abs($0 / 2) < 1 << 44 ? $0 : nil } : nil)
  }

  /// What to store: `total last`.
  var stored: [UInt8] { Array("\(total) \(last.map(String.init) ?? "-")".utf8) }

  /// Takes a reading of the counter; true where there is something new to store.
  mutating func read(_ counter: Int, at now: Instant) -> Bool {
    let before = self
    defer { lastAt = now }
    guard let last else {
      self.last = counter
      return true
    }
    let gone = distance(from: last, to: counter)
    let elapsed = lastAt.map { Double(now - $0) / 1e9 } ?? 0
    // What was ridden while nobody listened is believed as well, and so is anything that is read twice.
    guard Double(gone) <= elapsed * perSecond + 10 || leap.map({ distance(from: $0, to: counter) <= 10 }) ?? false else {
      leap = counter
      return false
    }
    leap = nil
    total += gone
    self.last = counter
    return (total, self.last) != (before.total, before.last)
  }

  /// How far it was from one reading to the next. A fall is a reset or a way back: the shorter of the two.
  private func distance(from last: Int, to counter: Int) -> Int {
    if counter >= last { return counter - last }
    if let wrap, last - counter > wrap / 2, last - counter < wrap { return counter + wrap - last }
    return min(abs(counter), last - counter)
  }
}
