// The last frame of each identifier, with its rate and the bits that changed. No I/O.

import Protocols

struct FrameTable {
  struct Row {
    let identifier: CANIdentifier
    let isError: Bool
    fileprivate(set) var frame: CANFrame
    fileprivate(set) var count = 1
    /// The time of the last frame in seconds.
    fileprivate(set) var last: Double
    /// Frames per second, averaged over the last ones; nil after the first one.
    fileprivate(set) var rate: Double?
    /// When each bit changed last, the most significant bit of the first byte first; nil if it never did.
    fileprivate(set) var changes: [Double?] = Array(repeating: nil, count: 64)

    /// Whether a bit has changed since this time.
    func hasChanged(bit: Int, since time: Double) -> Bool { changes[bit].map { $0 >= time } ?? false }
    /// Whether any bit of a byte has changed since this time.
    func hasChanged(byte: Int, since time: Double) -> Bool { (0..<8).contains { hasChanged(bit: 8 * byte + $0, since: time) } }
  }

  private struct Key: Hashable {
    let identifier: CANIdentifier
    let isError: Bool
  }

  private var positions: [Key: Int] = [:]
  private var entries: [Row] = []
  private(set) var total = 0

  /// The maximum number of identifiers; there are 2048 with 11 bits. Frames with others are only counted in `total`.
  private static let maxRows = 4096
  /// The share of the newest interval in the rate.
  private static let weight = 0.2

  /// The rows in the order of their identifiers.
  var rows: [Row] {
    entries.sorted {
      ($0.isError ? 1 : 0, $0.identifier.is29Bit ? 1 : 0, $0.identifier.number) < (
        $1.isError ? 1 : 0, $1.identifier.is29Bit ? 1 : 0, $1.identifier.number
      )
    }
  }

  mutating func add(_ frame: CANFrame, at now: Double) {
    total += 1
    let key = Key(identifier: frame.identifier, isError: frame.kind == .error)
    guard let position = positions[key] else {
      guard entries.count < Self.maxRows else { return }
      positions[key] = entries.count
      entries.append(Row(identifier: frame.identifier, isError: key.isError, frame: frame, last: now))
      return
    }
    let interval = max(now - entries[position].last, 1e-6)
    let rate = entries[position].rate.map { 1 / (1 / $0 + (interval - 1 / $0) * Self.weight) } ?? 1 / interval
    let difference = frame.packed ^ entries[position].frame.packed
    if difference != 0 {
      for bit in 0..<64 where difference >> UInt64(63 - bit) & 1 == 1 { entries[position].changes[bit] = now }
    }
    entries[position].frame = frame
    entries[position].count += 1
    entries[position].rate = rate
    entries[position].last = now
  }

  /// Forgets all frames.
  mutating func clear() { self = FrameTable() }
}
