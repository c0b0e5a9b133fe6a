// Collects samples and encodes them as a block. The format:
//
//   block     = "VSB1", length of the head, head, CRC-32C:u32 of all bytes before it, sections
//   head      = layout:u8, start, end - start, number of rows, number of row sets, number of columns, then for each column its series ID
//               and the index of its row set, then
//               layout columns: for each part its header
//               layout whole: header(all)
//   parts     = times, reasons, the row sets, the columns
//   header    = length, stored length, CRC-32C:u32 of the stored bytes
//   sections  = the stored bytes for each header, in the order of the headers: deflated if that makes them shorter
//   all       = the length of each part, then the parts
//   times     = width + 16 * zeros:u8, then the first time minus start, and the differences between successive times, each minus the
//               previous difference and divided by 10^zeros, as integers of this many bytes: first the least significant byte of all
//               integers, then the next ones
//   reasons   = the reasons for absences: count, strings
//   row set   = see RowSets
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

  /// How much time compression takes.
  public enum Effort: Sendable {
    /// For a block of a few seconds that is soon merged with others.
    case fast
    case normal
    /// For a block that is sent over a network.
    case smallest
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
  /// Whether times arrived in ascending order.
  private var isOrdered = true
  private var pending: [Pending] = []
  private var indexes: [Int: Int] = [:]
  /// The number of samples so far. A sample that replaces the previous one of its series does not count.
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
    try append(content, at: time, toColumn: try column(of: series))
  }

  /// Adds the samples of a column, which belong to `series` (by default that of the column).
  public mutating func append(_ column: Column, series: Int? = nil) throws(BlockError) {
    let index = try self.column(of: series ?? column.series, capacity: column.count)
    for sample in 0..<column.count { try append(column.content(sample), at: column.times[sample], toColumn: index) }
  }

  /// Returns the index of the column of a series, for `append(_:at:toColumn:)`. It is valid until the block is built. `capacity` is the
  /// expected number of samples.
  public mutating func column(of series: Int, capacity: Int = 0) throws(BlockError) -> Int {
    if let index = indexes[series] { return index }
    guard (0...BlockLimits.series).contains(series) else { throw BlockError("series \(series)", "not a valid series ID") }
    indexes[series] = pending.count
    var new = Pending(series: series)
    new.samples.reserveCapacity(capacity)
    new.rows.reserveCapacity(capacity)
    pending.append(new)
    return pending.count - 1
  }

  /// Adds a sample to a column, which need not be searched by its series for each sample.
  public mutating func append(_ content: Reading.Content, at time: Int64, toColumn index: Int) throws(BlockError) {
    if case .value(let value) = content {
      let type = pending[index].type ?? value.type
      guard value.type == type else {
        throw BlockError(
          "series \(pending[index].series)", "a value of type \(value.type.rawValue), the others are of type \(type.rawValue)")
      }
      pending[index].type = type
    }
    if pending[index].samples.last?.time == time {
      pending[index].samples[pending[index].samples.count - 1].content = content
      size += Self.size(of: content)
      return
    }
    if let last = times.last, time < last { isOrdered = false }
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
  public mutating func build(from start: Int64, to end: Int64, layout: Layout, effort: Effort = .normal) -> [UInt8] {
    defer { self = BlockBuilder() }
    let rows = sortedTimes()
    var (reasons, sets) = (StringTable(), RowSets())
    var columns: [(series: Int, set: Int, bytes: [UInt8])] = []
    for var column in pending.sorted(by: { $0.series < $1.series }) {
      if !isOrdered { Self.sort(&column, rows) }
      var writer = ByteWriter()
      writer.append(column.type ?? .bool, column.samples, reasons: &reasons)
      columns.append((column.series, sets.add(column.rows), writer.bytes))
    }
    let rowSets = sets.encode()
    var head = ByteWriter()
    head.bytes.append(layout.rawValue)
    head.append(signed: start)
    head.append(UInt64(bitPattern: max(end, start) &- start))
    head.append(rows.count)
    head.append(rowSets.parts.count)
    head.append(columns.count)
    var previous = 0
    for column in columns {
      head.append(column.series - previous)
      head.append(rowSets.indexes[column.set])
      previous = column.series
    }
    var reasonBytes = ByteWriter()
    reasonBytes.append(reasons)
    let parts = [Self.encode(rows, from: start), reasonBytes.bytes] + rowSets.parts + columns.map(\.bytes)
    return Self.block(head, parts, layout, effort)
  }

  private static func block(_ head: ByteWriter, _ parts: [[UInt8]], _ layout: Layout, _ effort: Effort) -> [UInt8] {
    var head = head
    var sections: [UInt8] = []
    let compressor = Compressor(effort)
    func appendSection(_ bytes: [UInt8]) {
      let stored = compressor.compress(bytes)
      head.append(bytes.count)
      head.append(stored.count)
      head.append(fixed: crc32c(stored[...]))
      sections.append(contentsOf: stored)
    }
    switch layout {
    case .columns: for part in parts { appendSection(part) }
    case .whole:
      var all = ByteWriter()
      for part in parts { all.append(part.count) }
      for part in parts { all.bytes.append(contentsOf: part) }
      appendSection(all.bytes)
    }
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

  /// Encodes the times as second differences. Their low bytes are noise, and the others almost constant: they compress better separately.
  private static func encode(_ times: [Int64], from start: Int64) -> [UInt8] {
    var (last, step) = (start, Int64(0))
    var differences: [Int64] = []
    differences.reserveCapacity(times.count)
    for (row, time) in times.enumerated() {
      differences.append(time &- last &- step)
      step = row == 0 ? 0 : time &- last
      last = time
    }
    var (zeros, unit) = (0, Int64(1))
    while zeros < BlockLimits.zeros, differences.contains(where: { $0 != 0 }), differences.allSatisfy({ $0 % (unit * 10) == 0 }) {
      (zeros, unit) = (zeros + 1, unit * 10)
    }
    let numbers = differences.map { zigzag($0 / unit) }
    let width = max(1, (UInt64.bitWidth - numbers.reduce(0, |).leadingZeroBitCount + 7) / 8)
    var bytes = [UInt8(width + 16 * zeros)]
    bytes.reserveCapacity(1 + width * numbers.count)
    for plane in 0..<width { for number in numbers { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * UInt64(plane)))) } }
    return bytes
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
