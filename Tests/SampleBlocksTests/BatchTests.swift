// Batches: what was encoded is decoded, and damage is noticed.

import Protocols
import Testing

@testable import SampleBlocks

@Suite("Batches") struct BatchTests {
  private func batch(header: String) throws -> [UInt8] {
    var builder = BlockBuilder()
    for index in 0..<60 { try builder.append(.value(.int(index / 7)), series: 1, at: Int64(index) * 1_000_000) }
    return Batch.encode(header: Array(header.utf8), block: builder.build(from: 0, to: 60_000_000, layout: .whole))
  }

  @Test(arguments: ["{}", "", String(repeating: #"["battery-temperature","float","°C"],"#, count: 40)])
  func `header and block are read as they were written`(_ header: String) throws {
    let bytes = try batch(header: header)
    let decoded = try Batch.decode(bytes)
    #expect(decoded.header == Array(header.utf8))
    #expect(try decoded.block.column(1)?.count == 60 && decoded.block.end == 60_000_000)
    #expect(bytes.count < header.utf8.count + 200)
  }

  @Test func `every changed byte and every missing end is an error`() throws {
    let bytes = try batch(header: #"{"vehicle":"van-17"}"#)
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] ^= 0x41
      #expect(throws: BlockError.self) { try Batch.decode(damaged) }
      #expect(throws: BlockError.self) { try Batch.decode(Array(bytes[..<index])) }
    }
  }

  @Test func `a header that claims to be huge is rejected`() throws {
    for size: UInt64 in [1 << 21, .max] {
      var rest = ByteWriter()
      rest.append(size)
      rest.append(3)
      rest.bytes += [1, 2, 3]
      var batch = ByteWriter(bytes: Batch.magic)
      batch.append(fixed: crc32c(rest.bytes[...]))
      #expect(throws: BlockError.self) { try Batch.decode(batch.bytes + rest.bytes) }
    }
  }
}
