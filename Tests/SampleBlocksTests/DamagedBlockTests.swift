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
      var reader = ByteReader(bytes[...], "column")
      do throws(BlockError) {
        let column = try reader.column(of: 1, times: times)
        #expect(column.samples.count == column.count)
      } catch {
        #expect(error.description.hasPrefix("column: "))
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
      var writer = ByteWriter()
      writer.append(type, contents.map { Sample(time: 0, content: $0) }, rows: [0, 1, 2, 3])
      for _ in 0..<2000 {
        var bytes = writer.bytes
        for _ in 0...Int.random(in: 0...2) { bytes[Int.random(in: bytes.indices)] = UInt8.random(in: 0...255, using: &random) }
        var reader = ByteReader(bytes[...], "column")
        if let column = try? reader.column(of: 1, times: times) { #expect(column.samples.count == column.count) }
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
    head.append(BlockLimits.rows)
    head.append(BlockLimits.size)
    head.append(1)
    head.append(fixed: crc32c([3]))
    head.append(0)
    var writer = ByteWriter(bytes: Block.magic)
    writer.append(head.bytes.count)
    writer.bytes.append(contentsOf: head.bytes)
    writer.append(fixed: crc32c(writer.bytes[...]))
    #expect(failure(writer.bytes + [3])?.description == "head of the block: 1 bytes cannot hold 8388608")
  }

  @Test func `times that do not ascend are an error`() {
    var times = ByteWriter()
    times.append(signed: 5)
    times.append(signed: 0)
    var head = ByteWriter()
    head.bytes.append(BlockBuilder.Layout.columns.rawValue)
    for number in [0, 10, 2, times.bytes.count, times.bytes.count] { head.append(number) }
    head.append(fixed: crc32c(times.bytes[...]))
    head.append(0)
    var writer = ByteWriter(bytes: Block.magic)
    writer.append(head.bytes.count)
    writer.bytes.append(contentsOf: head.bytes)
    writer.append(fixed: crc32c(writer.bytes[...]))
    #expect(failure(writer.bytes + times.bytes)?.description == "times: row 1 is not after the previous one")
  }
}
