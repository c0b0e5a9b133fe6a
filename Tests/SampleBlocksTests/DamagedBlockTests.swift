// Damaged and hostile blocks: an error that names the place, never a trap, and never more memory than the bytes can represent.

import Protocols
import Testing

@testable import SampleBlocks

@Suite("Damaged blocks") struct DamagedBlockTests {
  private static func block(_ layout: BlockBuilder.Layout) throws -> [UInt8] {
    var builder = BlockBuilder()
    for index in 0..<60 {
      let time = Int64(index) * 50_000
      try builder.append(.value(.float(Double(index * 7 % 50) / 10)), series: 1, at: time)
      try builder.append(index % 9 == 0 ? .absent("stale") : .value(.int(index % 4)), series: 2, at: time)
      try builder.append(.value(.string(index < 30 ? "park" : "drive")), series: 7, at: time)
      try builder.append(.value(.list(["3.8", "\(index)"])), series: 8, at: time)
      try builder.append(.value(.list(["P\(index % 3)"])), series: 9, at: time)
      try builder.append(.value(.float(Double(index).squareRoot())), series: 10, at: time)
      try builder.append(.value(.bool(index % 2 == 0)), series: 11, at: time)
    }
    return builder.build(from: 0, to: 3_000_000, layout: layout)
  }

  /// Reads all of a block, and returns the error.
  private func failure(_ bytes: [UInt8]) -> BlockError? {
    do throws(BlockError) {
      _ = try Block(bytes).columns()
      return nil
    } catch {
      return error
    }
  }

  @Test(arguments: BlockTests.layouts) func `every changed byte, and every length, is an error`(layout: BlockBuilder.Layout) throws {
    let bytes = try Self.block(layout)
    #expect(failure(bytes) == nil)
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= UInt8.random(in: 1...255)
      #expect(failure(changed) != nil, "byte \(index)")
      #expect(failure(Array(bytes[..<index])) != nil, "\(index) bytes")
    }
    #expect(failure(bytes + [0])?.description == "head of the block: 1 B of trailing data")
  }

  @Test func `errors name the place`() throws {
    #expect(failure([])?.description == "head of the block: not a block of samples, or written by a later version")
    var bytes = try Self.block(.columns)
    bytes[8] ^= 1
    #expect(failure(bytes)?.description == "head of the block: checksum mismatch")
  }

  /// Columns are read behind a correct checksum, so that the reader of each encoding is given random bytes.
  @Test func `random bytes as a column`() {
    var random = SystemRandomNumberGenerator()
    let times = (0..<40).map { Int64($0) }
    for round in 0..<8000 {
      var bytes = (0..<Int.random(in: 0...60)).map { _ in UInt8.random(in: 0...(round % 3 == 0 ? 255 : 5), using: &random) }
      if !bytes.isEmpty { bytes[0] %= 7 }
      var reader = ByteReader(bytes[...], .column(series: 1))
      do throws(BlockError) {
        let column = try reader.column(of: 1, times: Array(times[..<(round % 40)]), reasons: ["stale"])
        #expect(column.samples.count == column.count)
      } catch {
        #expect(error.description.hasPrefix("column of series 1: "))
      }
    }
  }

  /// Changes to a valid column reach deeper than random bytes.
  @Test func `changed bytes in a column`() throws {
    var random = SystemRandomNumberGenerator()
    let times = (0..<4).map { Int64($0) }
    let columns: [(ValueType, [Reading.Content])] = [
      (.bool, [.value(.bool(true)), .absent("a"), .value(.bool(true)), .absent("b")]),
      (.float, [.value(.float(1.5)), .value(.float(.pi)), .absent("a"), .value(.float(2))]),
      (.float, [.value(.float(1.5)), .value(.float(2.25)), .absent("a"), .value(.float(2))]),
      (.string, [.value(.string("x")), .value(.string("y")), .absent("a"), .value(.string("x"))]),
      (.list, [.value(.list(["1", "2"])), .value(.list(["1.5", "2"])), .absent("a"), .value(.list(["1", "3"]))]),
      (.list, [.value(.list(["x"])), .value(.list([])), .absent("a"), .value(.list(["y", "x"]))]),
    ]
    for (type, contents) in columns {
      var (writer, reasons) = (ByteWriter(), StringTable())
      writer.append(type, contents.map { Sample(time: 0, content: $0) }, reasons: &reasons)
      for _ in 0..<2000 {
        var bytes = writer.bytes
        for _ in 0...Int.random(in: 0...2) { bytes[Int.random(in: bytes.indices)] = UInt8.random(in: 0...255, using: &random) }
        var reader = ByteReader(bytes[...], .column(series: 1))
        if let column = try? reader.column(of: 1, times: times, reasons: reasons.strings) { #expect(column.samples.count == column.count) }
      }
    }
  }

  @Test func `random heads behind a correct checksum`() {
    var random = SystemRandomNumberGenerator()
    for round in 0..<8000 {
      let head = (0..<Int.random(in: 0...40)).map { _ in UInt8.random(in: 0...(round % 2 == 0 ? 255 : 9), using: &random) }
      var writer = ByteWriter(bytes: Block.magic)
      writer.append(head.count)
      writer.bytes.append(contentsOf: head)
      writer.append(fixed: crc32c(writer.bytes[...]))
      writer.bytes.append(contentsOf: (0..<Int.random(in: 0...20)).map { _ in UInt8.random(in: 0...255, using: &random) })
      if let block = try? Block(writer.bytes) { _ = try? block.columns() }
    }
  }

  @Test func `a short section cannot claim much memory`() {
    var head = ByteWriter()
    head.bytes.append(BlockBuilder.Layout.columns.rawValue)
    head.append(signed: 0)
    head.append(10)
    for number in [BlockLimits.rows, 0, 0, BlockLimits.size, 1] { head.append(number) }
    head.append(fixed: crc32c([3]))
    var writer = ByteWriter(bytes: Block.magic)
    writer.append(head.bytes.count)
    writer.bytes.append(contentsOf: head.bytes)
    writer.append(fixed: crc32c(writer.bytes[...]))
    #expect(failure(writer.bytes + [3])?.description == "head of the block: 1 bytes cannot hold 8388608")
  }

  /// A block of these parts, which are not compressed. `directory` has a series and the index of its row set for each column.
  private func block(rows: Int, sets: [[UInt8]], directory: [(Int, Int)] = [], columns: [[UInt8]] = [], times: [UInt8]) -> [UInt8] {
    var head = ByteWriter()
    head.bytes.append(BlockBuilder.Layout.columns.rawValue)
    for number in [0, 1000, rows, sets.count, directory.count] + directory.flatMap({ [$0.0, $0.1] }) { head.append(number) }
    let parts = [times, [0]] + sets + columns
    for part in parts {
      for _ in 0..<2 { head.append(part.count) }
      head.append(fixed: crc32c(part[...]))
    }
    var writer = ByteWriter(bytes: Block.magic)
    writer.append(head.bytes.count)
    writer.bytes.append(contentsOf: head.bytes)
    writer.append(fixed: crc32c(writer.bytes[...]))
    return writer.bytes + parts.joined()
  }

  /// Ten rows, each one µs after the previous one; a column of ten integers takes twelve bytes.
  private func failure(sets: [[UInt8]], columnSize: Int = 12) -> String? {
    let column = [1, 0] + [UInt8](repeating: 0, count: columnSize - 2)
    let bytes = block(
      rows: 10, sets: sets, directory: [(1, sets.count - 1)], columns: [column], times: [1, 2, 2] + [UInt8](repeating: 0, count: 8))
    return failure(bytes)?.description
  }

  @Test func `times that do not ascend, or are too few, are an error`() {
    func failure(_ times: [UInt8]) -> String? {
      self.failure(block(rows: 2, sets: [[2, 0, 0, 0]], directory: [(1, 0)], columns: [[0, 0, 1, 1]], times: times))?.description
    }
    #expect(failure([1, 10, 4]) == nil)
    #expect(failure([1, 10, 0]) == "times: row 1 is not after the previous one")
    #expect(failure([1, 10]) == "times: 1 bytes for 2 rows of 1 bytes" && failure([0]) == "times: 0 bytes for 2 rows of 0 bytes")
    #expect(failure([0xA1, 10, 4]) == "times: 10 zeros, at most 9")
  }

  @Test func `row sets that are impossible or too large are an error`() {
    let all: [UInt8] = [10, 0] + [UInt8](repeating: 0, count: 10)
    #expect(failure(sets: [all]) == nil && failure(sets: [all, [10, 1, 0, 0]]) == nil)
    #expect(failure(sets: [all, [10, 2, 0, 0]]) == "row set 1: row set 1 cannot be the base")
    #expect(failure(sets: [all, [10, 1, 0, 0], [10, 2, 0, 0]]) == "row set 1: row set 0 cannot be the base")
    #expect(failure(sets: [all, [10, 1, 1, 3, 0]]) == "row set 0: 10 rows in a set; the maximum is 9")
    #expect(failure(sets: [all, [10, 1, 0, 1, 2]]) == "row set 1: 10 rows in the base instead of 11")
    #expect(failure(sets: [all, [10, 1, 1, 3, 1, 3]]) == "row set 1: row 3 is added twice")
    #expect(failure(sets: [[11, 0]]) == "row set 0: 11 rows in a set; the maximum is 10")
    #expect(failure(sets: [all], columnSize: 9) == "row set 0: 10 rows in a set; the maximum is 9")
    #expect(failure(sets: [all, [2, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]], columnSize: 4) == nil)
  }
}
