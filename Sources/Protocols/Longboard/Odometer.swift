// Computes a lifetime distance from a counter that restarts at 0 with every reset of the board, decreases when the board rolls back, can be
// corrupted by a bit error, and wraps. The distance never decreases; if in doubt, it is underestimated.

/// A distance in whole counts (hundredths of a mile, metres) that survives resets of its counter.
struct Odometer: Sendable, Equatable {
  /// The total distance, in counts.
  private(set) var total: Int
  /// The last reading of the counter.
  private var last: Int?
  /// The last implausible reading; it is accepted if the next reading is close to it.
  private var unconfirmed: Int?
  /// When the counter was last read.
  private var lastAt: Instant?
  /// The number of distinct counter values, after which the counter wraps; nil if it does not wrap.
  private let wrap: Int?
  /// The maximum plausible speed in counts per second.
  private let maxCountsPerSecond: Double

  /// Restores a stored distance.
  init(stored: [UInt8] = [], maxCountsPerSecond: Double, wrap: Int? = nil) {
    let values = Self.read(stored)
    total = values?.total ?? 0
    last = values?.last
    self.maxCountsPerSecond = maxCountsPerSecond
    self.wrap = wrap
  }

  static let damagedMessage = "the stored total distance is corrupt: it restarts at 0"

  /// Whether a stored distance is corrupt.
  static func isCorrupt(_ stored: [UInt8]) -> Bool { read(stored) == nil }

  /// Parses a stored distance; nil if it is corrupt, or so large that later sums could overflow.
  private static func read(_ stored: [UInt8]) -> (total: Int, last: Int?)? {
    let numbers = String(decoding: stored.prefix(64), as: UTF8.self).split(separator: " ").map { Int($0) }
    guard (1...2).contains(numbers.count), let total = numbers[0], 0..<1 << 45 ~= total else { return nil }
    return (total, numbers.count > 1 ? numbers[1].flatMap { abs($0 / 2) < 1 << 44 ? $0 : nil } : nil)
  }

  /// The value to store: `total last`.
  var stored: [UInt8] { Array("\(total) \(last.map(String.init) ?? "-")".utf8) }

  /// Handles a reading of the counter; returns true if the stored value must be updated.
  mutating func update(_ counter: Int, at now: Instant) -> Bool {
    let before = self
    defer { lastAt = now }
    guard let last else {
      self.last = counter
      return true
    }
    let travelled = distance(from: last, to: counter)
    let elapsed = lastAt.map { Double(now - $0) / 1e9 } ?? 0
    // A jump is plausible if it is possible at the maximum speed in the time since the last reading. The next reading must confirm any
    // other jump.
    let isConfirmed = unconfirmed.map { distance(from: $0, to: counter) <= 10 } ?? false
    guard isConfirmed || Double(travelled) <= elapsed * maxCountsPerSecond + 10 else {
      unconfirmed = counter
      return false
    }
    unconfirmed = nil
    total += travelled
    self.last = counter
    return (total, self.last) != (before.total, before.last)
  }

  /// The distance between two readings. A decrease means that the board was reset or rolled backwards; the smaller distance is used.
  private func distance(from last: Int, to counter: Int) -> Int {
    if counter >= last { return counter - last }
    if let wrap, last - counter > wrap / 2, last - counter < wrap { return counter + wrap - last }
    return min(abs(counter), last - counter)
  }
}
