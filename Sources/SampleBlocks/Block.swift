// Reads a block; `BlockBuilder` describes its format. Every length is checked, and every section has its own CRC, so that damage in one
// column leaves the others readable.

import Protocols

/// A block of samples: a few seconds or minutes of many series.
public struct Block: Sendable {
  static let magic = Array("VSB1".utf8)

  /// A part as stored; `size` is its size before compression.
  private struct Section {
    var stored: ArraySlice<UInt8>
    var size: Int
    /// The CRC of the stored bytes; nil if it has been checked already.
    var crc: UInt32?

    func reader(_ place: BlockPlace, _ decompressor: Decompressor) throws(BlockError) -> ByteReader {
      if let crc {
        guard crc32c(stored) == crc else { throw BlockError(place, "checksum mismatch") }
      }
      return ByteReader(try decompressor.decompress(stored, to: size, place), place)
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
  /// For each series, the index of its row set.
  private let sets: [Int]
  private let timeSection: Section
  private let reasonSection: Section
  private let setSections: ArraySlice<Section>
  private let columnSections: ArraySlice<Section>

  /// Reads the head of a block, or the entire block if it is compressed as a whole.
  public init(_ bytes: [UInt8]) throws(BlockError) {
    var reader = ByteReader(bytes[...], .head)
    guard bytes.starts(with: Self.magic) else { throw reader.failure("not a block of samples, or written by a later version") }
    _ = try reader.slice(Self.magic.count)
    let length = try reader.elementCount("bytes of the head")
    let head = try reader.slice(length)
    let checked = bytes[..<head.endIndex]
    guard try reader.fixed() == crc32c(checked) else { throw reader.failure("checksum mismatch") }
    var sections = reader
    reader = ByteReader(head, .head)

    let code = try reader.byte()
    guard let layout = BlockBuilder.Layout(rawValue: code) else { throw reader.failure("unknown layout \(code)") }
    start = try reader.signed()
    let (end, overflows) = start.addingReportingOverflow(Int64(truncatingIfNeeded: try reader.unsigned()))
    guard !overflows, end >= start else { throw reader.failure("the end is before the start") }
    self.end = end
    rows = try reader.count("rows", limit: BlockLimits.rows)
    let setCount = try reader.count("row sets", limit: BlockLimits.columns)
    (series, sets) = try Self.directory(&reader, setCount)
    var parts: [Section] = []
    var size = 0
    for _ in 0..<(layout == .whole ? 1 : 2 + setCount + series.count) {
      parts.append(try Self.section(&reader, &sections, limit: BlockLimits.size - size))
      size += parts[parts.count - 1].size
    }
    try reader.finish()
    try sections.finish()
    if layout == .whole { parts = try Self.split(parts[0], 2 + setCount + series.count) }
    (timeSection, reasonSection) = (parts[0], parts[1])
    (setSections, columnSections) = (parts[2..<2 + setCount], parts[(2 + setCount)...])
  }

  private static func directory(_ reader: inout ByteReader, _ setCount: Int) throws(BlockError) -> (series: [Int], sets: [Int]) {
    let count = try reader.count("columns", limit: BlockLimits.columns)
    var (series, sets): ([Int], [Int]) = ([], [])
    for index in 0..<count {
      let previous = series.last ?? 0
      let next = previous + (try reader.count("series", limit: BlockLimits.series - previous))
      guard index == 0 || next > previous else { throw reader.failure("series \(next) occurs twice") }
      series.append(next)
      sets.append(try reader.count("as row set", limit: setCount - 1))
    }
    guard count == 0 || setCount > 0 else { throw reader.failure("columns without row sets") }
    return (series, sets)
  }

  private static func section(
    _ reader: inout ByteReader, _ sections: inout ByteReader, limit: Int
  ) throws(BlockError) -> Section {
    let length = try reader.count("bytes in a section", limit: limit)
    let stored = try reader.count("stored bytes in a section", limit: sections.remaining)
    guard canHold(stored, length) else { throw reader.failure("\(stored) bytes cannot hold \(length)") }
    return Section(stored: try sections.slice(stored), size: length, crc: try reader.fixed())
  }

  /// Decompresses the parts that are compressed as a whole.
  private static func split(_ all: Section, _ count: Int) throws(BlockError) -> [Section] {
    var reader = try all.reader(.content, Decompressor())
    var sizes: [Int] = []
    for _ in 0..<count { sizes.append(try reader.elementCount("bytes in a part")) }
    var parts: [Section] = []
    for size in sizes { parts.append(Section(stored: try reader.slice(size), size: size, crc: nil)) }
    try reader.finish()
    return parts
  }

  /// The times of all rows, in ascending order.
  private func times(_ decompressor: Decompressor) throws(BlockError) -> [Int64] {
    var reader = try timeSection.reader(.times, decompressor)
    let kind = Int(try reader.byte())
    let (width, zeros) = (kind % 16, kind / 16)
    guard 1...8 ~= width, reader.remaining == width * rows else {
      throw reader.failure("\(reader.remaining) bytes for \(rows) rows of \(width) bytes")
    }
    guard zeros <= BlockLimits.zeros else { throw reader.failure("\(zeros) zeros, at most \(BlockLimits.zeros)") }
    let unit = (0..<zeros).reduce(Int64(1)) { unit, _ in unit * 10 }
    let bytes = try reader.slice(reader.remaining)
    return try bytes.withUnsafeBufferPointer { (planes) throws(BlockError) -> [Int64] in
      try [Int64](unsafeUninitializedCapacity: rows) { (times, count) throws(BlockError) in
        var (last, step) = (start, Int64(0))
        for row in 0..<rows {
          var number = UInt64(planes[row])
          if width > 1 { number |= UInt64(planes[rows + row]) << 8 }
          if width > 2 { for plane in 2..<width { number |= UInt64(planes[plane * rows + row]) << (8 * UInt64(plane)) } }
          let time = last &+ step &+ signedNumber(zigzag: number) &* unit
          guard row == 0 || time > last else { throw reader.failure("row \(row) is not after the previous one") }
          step = row == 0 ? 0 : time &- last
          last = time
          times[row] = time
          count = row + 1
        }
      }
    }
  }

  /// The column of a series, or nil if the block has none.
  public func column(_ series: Int) throws(BlockError) -> Column? { try columns { $0 == series }.first }

  /// The columns of all or only some series, in ascending order of their series.
  public func columns(where isRequested: (_ series: Int) -> Bool = { _ in true }) throws(BlockError) -> [Column] {
    var decoder: ColumnsDecoder?
    return try columns(where: isRequested, &decoder)
  }

  /// The columns of some series, and of those that are required besides, once the first ones are known.
  public func columns(
    where isRequested: (_ series: Int) -> Bool, and areRequired: ([Column]) -> Bool, where isOptional: (_ series: Int) -> Bool
  ) throws(BlockError) -> [Column] {
    var decoder: ColumnsDecoder?
    let columns = try columns(where: isRequested, &decoder)
    guard series.contains(where: isOptional), areRequired(columns) else { return columns }
    return (columns + (try self.columns(where: isOptional, &decoder))).sorted { $0.series < $1.series }
  }

  private func columns(where isRequested: (_ series: Int) -> Bool, _ shared: inout ColumnsDecoder?) throws(BlockError) -> [Column] {
    let requested = series.indices.filter { isRequested(series[$0]) }
    guard !requested.isEmpty else { return [] }
    var decoder: ColumnsDecoder
    if let shared {
      decoder = shared
    } else {
      let decompressor = Decompressor()
      decoder = ColumnsDecoder(rowTimes: try times(decompressor), reasons: try reasons(decompressor), decompressor)
    }
    defer { shared = decoder }
    let decompressor = decoder.decompressor
    var columns: [Column] = []
    columns.reserveCapacity(requested.count)
    for index in requested {
      let section = columnSections[columnSections.startIndex + index]
      // A sample takes at least one byte, which bounds the memory that a short row set can request.
      let times = try decoder.times(of: sets[index], limit: section.size) { (set) throws(BlockError) in
        try setSections[setSections.startIndex + set].reader(.rowSet(set), decompressor)
      }
      var reader = try section.reader(.column(series: series[index]), decompressor)
      columns.append(try reader.column(of: series[index], times: times, reasons: decoder.reasons))
    }
    return columns
  }

  private func reasons(_ decompressor: Decompressor) throws(BlockError) -> [String] {
    var reader = try reasonSection.reader(.reasons, decompressor)
    let reasons = try reader.strings("reasons")
    try reader.finish()
    return reasons
  }
}

/// What the columns of a block share: each row set is decoded once.
private struct ColumnsDecoder {
  let rowTimes: [Int64]
  let reasons: [String]
  let decompressor: Decompressor
  private var rows: [Int: [Int32]] = [:]
  private var times: [Int: [Int64]] = [:]

  init(rowTimes: [Int64], reasons: [String], _ decompressor: Decompressor) {
    (self.rowTimes, self.reasons, self.decompressor) = (rowTimes, reasons, decompressor)
  }

  /// The times of the samples of a row set, which must have at most `limit` rows.
  mutating func times(
    of set: Int, limit: Int, _ section: (Int) throws(BlockError) -> ByteReader
  ) throws(BlockError) -> [Int64] {
    if let known = times[set] {
      guard known.count <= limit else { throw BlockError(.rowSet(set), "\(known.count) rows; the maximum is \(limit)") }
      return known
    }
    let rows = try rows(of: set, limit: limit, isBase: false, section)
    let decoded = rows.count == rowTimes.count ? rowTimes : rows.map { rowTimes[Int($0)] }
    times[set] = decoded
    return decoded
  }

  private mutating func rows(
    of set: Int, limit: Int, isBase: Bool, _ section: (Int) throws(BlockError) -> ByteReader
  ) throws(BlockError) -> [Int32] {
    if let decoded = rows[set] { return decoded }
    var reader = try section(set)
    let (count, base) = try reader.rowSetHead(below: rowTimes.count, limit: limit)
    guard let base else {
      let decoded = try reader.rowSet(count, below: rowTimes.count)
      rows[set] = decoded
      return decoded
    }
    // A base has no base of its own, so that a chain of them cannot take long.
    guard !isBase, base < set else { throw reader.failure("row set \(base) cannot be the base") }
    let (added, removed) = try reader.rowSetDifference(below: rowTimes.count)
    // The size of the base follows from that of the set.
    let size = count - added.count + removed.count
    let known = try rows(of: base, limit: size, isBase: true, section)
    guard known.count == size else { throw reader.failure("\(known.count) rows in the base instead of \(size)") }
    return try reader.merged(known, added, removed)
  }
}
