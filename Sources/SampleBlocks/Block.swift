// Reads a block; `BlockBuilder` describes its format. Every length is checked, and every section has its own CRC, so that damage in one
// column leaves the others readable.

import Protocols

/// A block of samples: a few seconds or minutes of many series.
public struct Block: Sendable {
  static let magic = Array("VSB1".utf8)

  /// A section as stored; `size` is its size before compression.
  private struct Section {
    var stored: ArraySlice<UInt8>
    var size: Int
    /// The CRC of the stored bytes; nil if it has been checked already.
    var crc: UInt32?

    func bytes(_ place: String) throws(BlockError) -> ArraySlice<UInt8> {
      if let crc {
        guard crc32c(stored) == crc else { throw BlockError(place, "checksum mismatch") }
      }
      return try decompress(stored, to: size, place)
    }
  }

  /// The time from which the block covers its series. Earlier samples are the values that are valid at this time.
  public let start: Int64
  /// The time up to which the block covers its series: the last value of each series is valid until then.
  public let end: Int64
  /// The number of distinct times.
  public let rows: Int
  /// The IDs of the series, in ascending order.
  public let series: [Int]
  private let timeSection: Section
  private let columnSections: [Section]

  /// Reads the head of a block, or the entire block if it is compressed as a whole.
  public init(_ bytes: [UInt8]) throws(BlockError) {
    var reader = ByteReader(bytes[...], "head of the block")
    guard bytes.starts(with: Self.magic) else { throw reader.failure("not a block of samples, or written by a later version") }
    _ = try reader.slice(Self.magic.count)
    let length = try reader.elementCount("bytes of the head")
    let head = try reader.slice(length)
    let checked = bytes[..<head.endIndex]
    guard try reader.fixed() == crc32c(checked) else { throw reader.failure("checksum mismatch") }
    var sections = reader
    reader = ByteReader(head, "head of the block")

    let code = try reader.byte()
    guard let layout = BlockBuilder.Layout(rawValue: code) else { throw reader.failure("unknown layout \(code)") }
    start = try reader.signed()
    let (end, overflows) = start.addingReportingOverflow(Int64(truncatingIfNeeded: try reader.unsigned()))
    guard !overflows, end >= start else { throw reader.failure("the end is before the start") }
    self.end = end
    rows = try reader.count("rows", limit: BlockLimits.rows)
    var size = 0
    func section(_ reader: inout ByteReader) throws(BlockError) -> Section {
      let length = try reader.count("bytes in a section", limit: BlockLimits.size - size)
      let stored = try reader.count("stored bytes in a section", limit: sections.remaining)
      guard canHold(stored, length) else { throw reader.failure("\(stored) bytes cannot hold \(length)") }
      size += length
      return Section(stored: try sections.slice(stored), size: length, crc: try reader.fixed())
    }
    switch layout {
    case .columns:
      timeSection = try section(&reader)
      (series, columnSections) = try Self.directory(&reader, section: section)
      try reader.finish()
    case .whole:
      let count = try reader.count("columns", limit: BlockLimits.columns)
      let all = try section(&reader)
      try reader.finish()
      var content = ByteReader(try all.bytes("content of the block"), "content of the block")
      func part(_ reader: inout ByteReader) throws(BlockError) -> Section {
        let bytes = try reader.slice(try reader.elementCount("bytes in a column"))
        return Section(stored: bytes, size: bytes.count, crc: nil)
      }
      timeSection = try part(&content)
      (series, columnSections) = try Self.directory(&content, count: count, section: part)
      try content.finish()
    }
    try sections.finish()
    guard rows <= timeSection.size else { throw BlockError("times", "\(rows) rows in \(timeSection.size) bytes") }
  }

  private static func directory(
    _ reader: inout ByteReader, count: Int? = nil, section: (inout ByteReader) throws(BlockError) -> Section
  ) throws(BlockError) -> ([Int], [Section]) {
    let count = if let count { count } else { try reader.count("columns", limit: BlockLimits.columns) }
    var (series, sections): ([Int], [Section]) = ([], [])
    for index in 0..<count {
      let previous = series.last ?? 0
      let next = previous + (try reader.count("series", limit: BlockLimits.series - previous))
      guard index == 0 || next > previous else { throw reader.failure("series \(next) occurs twice") }
      series.append(next)
      sections.append(try section(&reader))
    }
    return (series, sections)
  }

  /// The times of all rows, in ascending order.
  public func times() throws(BlockError) -> [Int64] {
    var reader = ByteReader(try timeSection.bytes("times"), "times")
    var times: [Int64] = []
    times.reserveCapacity(rows)
    var (last, step) = (start, Int64(0))
    for row in 0..<rows {
      let time = last &+ step &+ (try reader.signed())
      guard row == 0 || time > last else { throw reader.failure("row \(row) is not after the previous one") }
      step = row == 0 ? 0 : time &- last
      last = time
      times.append(time)
    }
    try reader.finish()
    return times
  }

  /// The column of a series, or nil if the block has none. `times` is the result of `times()`, if already available.
  public func column(_ series: Int, times: [Int64]? = nil) throws(BlockError) -> Column? {
    guard let index = self.series.firstIndex(of: series) else { return nil }
    let times = if let times { times } else { try self.times() }
    return try column(at: index, times)
  }

  /// All columns, in ascending order of their series.
  public func columns() throws(BlockError) -> [Column] {
    let times = try times()
    var columns: [Column] = []
    for index in series.indices { columns.append(try column(at: index, times)) }
    return columns
  }

  private func column(at index: Int, _ times: [Int64]) throws(BlockError) -> Column {
    let place = "column of series \(series[index])"
    var reader = ByteReader(try columnSections[index].bytes(place), place)
    return try reader.column(of: series[index], times: times)
  }
}
