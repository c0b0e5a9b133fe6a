// Collects the samples of one device over any time, and makes a block of them whenever it is long or large enough for a call of Import. Pure.

import Protocols

/// Collects the samples of one device in the order of time, and makes blocks of them.
public struct BlockAssembler: Sendable {
  /// A block, and the series that it contains.
  public struct Assembled: Sendable {
    public var series: Set<Int>
    public var bytes: [UInt8]
    /// Whether recording went on since the previous block.
    public var continues: Bool
  }

  /// In µs; longer blocks are smaller in total, but need more memory to read.
  private static let maxSpan: Int64 = 600_000_000
  /// The calls of Import are limited to 1 MiB.
  private static let maxSamples = 20_000

  private var builder = BlockBuilder()
  private var series: Set<Int> = []
  private var start: Int64?
  private var last = Int64.min
  /// The end of the last block: the next one starts there at the earliest. Samples before its start are valid at its start.
  private var covered: Int64
  private var continues = false

  /// Creates blocks that start at `from` at the earliest; nil: with the first sample. Times are in µs.
  public init(from: Int64? = nil) { covered = from ?? .min }

  /// Adds a sample that is not earlier than the one before. Returns a block that is complete.
  public mutating func append(_ content: Reading.Content, series id: Int, at time: Int64) throws(BlockError) -> Assembled? {
    var block: Assembled?
    if let start, time > last, builder.isFull || builder.count >= Self.maxSamples || time - start > Self.maxSpan {
      block = flush(until: time)
    }
    start = start ?? max(covered, time)
    last = max(last, time)
    series.insert(id)
    try builder.append(content, series: id, at: time)
    return block
  }

  /// Notes that nothing was recorded from this time on. Returns the block of what is left.
  public mutating func interrupt(at time: Int64) -> Assembled? {
    defer { continues = false }
    return flush(until: time)
  }

  /// Returns the block of what is left. Its last values are valid until `end`, or until the last sample.
  public mutating func flush(until end: Int64 = .min) -> Assembled? {
    guard let start, !builder.isEmpty else { return nil }
    let end = max(start, end, last)
    defer { (self.start, series, continues, covered) = (nil, [], true, end) }
    return Assembled(series: series, bytes: builder.build(from: start, to: end, layout: .columns), continues: continues)
  }
}
