// Collects samples and encodes them as a block. The format:
//
//   block     = "VSB1", length of the head, head, CRC-32C:u32 of all bytes before it, sections
//   head      = layout:u8, start, end - start, number of rows, then
//               layout columns: header(times), number of columns, then for each column its series ID and header(column)
//               layout whole: number of columns, header(all)
//   header    = length, stored length, CRC-32C:u32 of the stored bytes
//   sections  = the stored bytes for each header, in the order of the headers: deflated if that makes them shorter
//   all       = length of times, times, then for each column its series ID, length, column
//   times     = the first time minus start, then the differences between successive times, each minus the previous difference
//   column    = see ColumnEncoder
//
// Integers are LEB128, signed ones (start and times) zigzag; u32 is little-endian. Columns are in ascending order of their series IDs; each
// ID is written as the difference from the previous one.

import Protocols

/// Collects samples of many series, then encodes them as a block. Samples can be added in any order.
public struct BlockBuilder: Sendable {
  /// How the sections of a block are compressed.
  public enum Layout: UInt8, Sendable {
    /// All columns compressed together: smaller for a block of a few seconds, before it is merged with others.
    case whole = 0
    /// Each column compressed separately, so that a reader decompresses only what it needs.
    case columns = 1
  }

  private struct Pending {
    var series: Int
    var type: ValueType?
    var samples: [Sample] = []
    /// The row of each sample, as long as times arrive in ascending order.
    var rows: [Int32] = []
  }

  /// The times of the rows so far, in the order of arrival, without consecutive duplicates.
  private var times: [Int64] = []
  /// Whether times arrived in ascending order, and no series had two samples with the same time.
  private var isOrdered = true
  private var pending: [Pending] = []
  private var indexes: [Int: Int] = [:]
  /// The number of samples so far.
  public private(set) var count = 0
  /// An upper bound on the size of the samples before compression.
  private var size = 0

  /// Creates an empty builder.
  public init() {}

  /// Whether there are no samples.
  public var isEmpty: Bool { count == 0 }

  /// Whether the next sample could exceed the limits of a block.
  public var isFull: Bool { times.count >= BlockLimits.rows || size >= BlockLimits.size / 2 || pending.count >= BlockLimits.columns }

  /// The earliest and the latest time so far.
  public var span: ClosedRange<Int64>? {
    guard let first = times.min(), let last = times.max() else { return nil }
    return first...last
  }

  /// Adds a sample. A later one with the same time and series replaces it. All values of a series must have the same type.
  public mutating func append(_ content: Reading.Content, series: Int, at time: Int64) throws(BlockError) {
    try append(content, at: time, to: try index(of: series))
  }

  /// Adds the samples of a column.
  public mutating func append(_ column: Column) throws(BlockError) {
    let index = try index(of: column.series)
    for sample in 0..<column.count { try append(column.content(sample), at: column.times[sample], to: index) }
  }

  private mutating func index(of series: Int) throws(BlockError) -> Int {
    if let index = indexes[series] { return index }
    guard (0...BlockLimits.series).contains(series) else { throw BlockError("series \(series)", "not a valid series ID") }
    indexes[series] = pending.count
    pending.append(Pending(series: series))
    return pending.count - 1
  }

  private mutating func append(_ content: Reading.Content, at time: Int64, to index: Int) throws(BlockError) {
    if case .value(let value) = content {
      let type = pending[index].type ?? value.type
      guard value.type == type else {
        throw BlockError(
          "series \(pending[index].series)", "a value of type \(value.type.rawValue), the others are of type \(type.rawValue)")
      }
      pending[index].type = type
    }
    if let last = times.last, time < last || time == pending[index].samples.last?.time { isOrdered = false }
    if times.last != time { times.append(time) }
    pending[index].samples.append(Sample(time: time, content: content))
    pending[index].rows.append(Int32(times.count - 1))
    count += 1
    size += Self.size(of: content)
  }

  /// An upper bound on the size of a sample and the time of its row: at most ten bytes per number.
  private static func size(of content: Reading.Content) -> Int {
    switch content {
    case .value(.string(let string)), .absent(let string): 30 + string.utf8.count
    case .value(.list(let elements)): elements.reduce(40) { $0 + 10 + $1.utf8.count }
    case .value: 30
    }
  }

  /// Returns a block of all samples, and empties the builder. The block covers `start` to `end`; samples before `start` provide the values
  /// that are valid at `start`.
  public mutating func build(from start: Int64, to end: Int64, layout: Layout) -> [UInt8] {
    defer { self = BlockBuilder() }
    let compressor = Compressor()
    let rows = sortedTimes()
    var head = ByteWriter()
    head.bytes.append(layout.rawValue)
    head.append(signed: start)
    head.append(UInt64(bitPattern: max(end, start) &- start))
    head.append(rows.count)
    var sections: [UInt8] = []
    func appendSection(_ bytes: [UInt8]) {
      let stored = compressor.compress(bytes)
      head.append(bytes.count)
      head.append(stored.count)
      head.append(fixed: crc32c(stored[...]))
      sections.append(contentsOf: stored)
    }
    var whole = ByteWriter()
    let timeBytes = Self.encode(rows, from: start)
    switch layout {
    case .columns:
      appendSection(timeBytes)
      head.append(pending.count)
    case .whole:
      head.append(pending.count)
      whole.append(timeBytes.count)
      whole.bytes.append(contentsOf: timeBytes)
    }
    var previous = 0
    for var column in pending.sorted(by: { $0.series < $1.series }) {
      if !isOrdered { Self.sort(&column, rows) }
      var writer = ByteWriter()
      writer.append(column.type ?? .bool, column.samples, rows: column.rows)
      let bytes = writer.bytes
      switch layout {
      case .columns:
        head.append(column.series - previous)
        appendSection(bytes)
      case .whole:
        whole.append(column.series - previous)
        whole.append(bytes.count)
        whole.bytes.append(contentsOf: bytes)
      }
      previous = column.series
    }
    if layout == .whole { appendSection(whole.bytes) }
    var block = ByteWriter(bytes: Array(Block.magic))
    block.append(head.bytes.count)
    block.bytes.append(contentsOf: head.bytes)
    block.append(fixed: crc32c(block.bytes[...]))
    return block.bytes + sections
  }

  private func sortedTimes() -> [Int64] {
    if isOrdered { return times }
    var sorted: [Int64] = []
    for time in times.sorted() where sorted.last != time { sorted.append(time) }
    return sorted
  }

  private static func encode(_ times: [Int64], from start: Int64) -> [UInt8] {
    var writer = ByteWriter()
    var (last, step) = (start, Int64(0))
    for (row, time) in times.enumerated() {
      writer.append(signed: time &- last &- step)
      step = row == 0 ? 0 : time &- last
      last = time
    }
    return writer.bytes
  }

  /// Sorts the samples of a column, and finds their rows.
  private static func sort(_ column: inout Pending, _ times: [Int64]) {
    // Sort stably: of several samples with the same time, the one added last wins.
    let order = column.samples.indices.sorted { (column.samples[$0].time, $0) < (column.samples[$1].time, $1) }
    var sorted: [Sample] = []
    for index in order {
      if sorted.last?.time == column.samples[index].time { sorted.removeLast() }
      sorted.append(column.samples[index])
    }
    column.samples = sorted
    var row = 0
    column.rows = sorted.map { sample in
      while times[row] < sample.time { row += 1 }
      return Int32(row)
    }
  }
}
