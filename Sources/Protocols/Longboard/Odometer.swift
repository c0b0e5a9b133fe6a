// Computes a lifetime distance from a counter that restarts at 0 with every reset of the board, decreases when it rolls back, can be
// damaged by a bit error, and wraps. The distance never decreases; in doubt it is too small.

/// A distance in whole counts (hundredths of a mile, metres) that survives resets of its counter.
struct Odometer: Sendable, Equatable {
  /// The total counts.
  private(set) var total: Int
  /// The last reading of the counter.
  private var last: Int?
  /// The last reading that jumped implausibly; it is accepted if the next reading is close to it.
  private var leap: Int?
  private var lastAt: Instant?
  /// The number of values of the counter, after which it wraps.
  private let wrap: Int?
  /// The maximum plausible speed in counts per second.
  private let perSecond: Double

  /// Restores a stored distance.
  init(stored: [UInt8] = [], perSecond: Double, wrap: Int? = nil) {
    let kept = Self.read(stored)
    total = kept?.total ?? 0
    last = kept?.last
    self.perSecond = perSecond
    self.wrap = wrap
  }

  static let lossWords = "the stored total distance is corrupt: it restarts at 0"

  /// Whether a stored distance is damaged.
  static func isDamaged(_ stored: [UInt8]) -> Bool { read(stored) == nil }

  /// A plausible maximum, so that a damaged file cannot cause an overflow.
  private static func read(_ stored: [UInt8]) -> (total: Int, last: Int?)? {
    let numbers = String(decoding: stored.prefix(64), as: UTF8.self).split(separator: " ").map { Int($0) }
    guard (1...2).contains(numbers.count), let total = numbers[0], 0..<1 << 45 ~= total else { return nil }
    return (total, numbers.count > 1 ? numbers[1].flatMap { abs($0 / 2) < 1 << 44 ? $0 : nil } : nil)
  }

  /// The value to store: `total last`.
  var stored: [UInt8] { Array("\(total) \(last.map(String.init) ?? "-")".utf8) }

  /// Handles a reading; returns true if there is a new value to store.
  mutating func read(_ counter: Int, at now: Instant) -> Bool {
    let before = self
    defer { lastAt = now }
    guard let last else {
      self.last = counter
      return true
    }
    let gone = distance(from: last, to: counter)
    let elapsed = lastAt.map { Double(now - $0) / 1e9 } ?? 0
    // The time limit allows for distance during a disconnection. Any jump is accepted if the next reading confirms it.
    guard Double(gone) <= elapsed * perSecond + 10 || leap.map({ distance(from: $0, to: counter) <= 10 }) ?? false else {
      leap = counter
      return false
    }
    leap = nil
    total += gone
    self.last = counter
    return (total, self.last) != (before.total, before.last)
  }

  /// The distance between two readings. A decrease is either a reset or rolling back: the smaller distance counts.
  private func distance(from last: Int, to counter: Int) -> Int {
    if counter >= last { return counter - last }
    if let wrap, last - counter > wrap / 2, last - counter < wrap { return counter + wrap - last }
    return min(abs(counter), last - counter)
  }
}
