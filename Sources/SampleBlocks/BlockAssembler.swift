// Splits the samples of one device into blocks that are small enough for a call of Import. No I/O.

import Protocols

/// Collects the samples of one device in chronological order, and builds blocks of them.
public struct BlockAssembler: Sendable {
  /// A block, and the series that it contains.
  public struct Assembled: Sendable {
    public var series: Set<Int>
    public var bytes: [UInt8]
    /// The number of samples in it.
    public var count: Int
    /// Whether recording continued without a gap since the previous block.
    public var continues: Bool
  }

  /// The duration in µs after which a block is complete; longer blocks are smaller in total, but need more memory to read.
  private static let maxSpan: Int64 = 600_000_000
  /// The number of samples after which a block is complete: a call of Import is limited to 1 MiB.
  private static let maxSamples = 20_000

  private var builder = BlockBuilder()
  private var series: Set<Int> = []
  private var start: Int64?
  private var last = Int64.min
  /// The end of the last block, before which the next one does not start. Samples before the start of a block are valid at its start.
  private var covered: Int64
  private var continues = false

  /// Creates an assembler whose blocks do not start before `from` (if nil, before the first sample). Times are in µs.
  public init(from: Int64? = nil) { covered = from ?? .min }

  /// Adds a sample, which must not be earlier than the previous one. Returns the finished block if this sample
  /// begins the next one.
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

  /// Starts a gap in the recording. Returns a block of the remaining samples, which ends at this time.
  public mutating func interrupt(at time: Int64) -> Assembled? {
    defer { continues = false }
    return flush(until: time)
  }

  /// Returns a block of the remaining samples. Its last values are valid until `end`, or until the last sample.
  public mutating func flush(until end: Int64 = .min) -> Assembled? {
    guard let start, !builder.isEmpty else { return nil }
    let end = max(start, end, last)
    defer { (self.start, series, continues, covered) = (nil, [], true, end) }
    let count = builder.count
    return Assembled(series: series, bytes: builder.build(from: start, to: end, layout: .columns), count: count, continues: continues)
  }
}
