// CRC-32C (Castagnoli), eight bytes per step.
// Source: RFC 3720, appendix B.4 (polynomial and test vectors); Kounavis and Berry, "A Systematic Approach to Building High Performance
// Software-Based CRC Generators" (slicing-by-8).

/// Returns the CRC-32C of bytes.
func crc32c(_ bytes: ArraySlice<UInt8>) -> UInt32 {
  bytes.withUnsafeBytes { buffer in
    crcTables.withUnsafeBufferPointer { tables in
      var crc = ~UInt32(0)
      var index = 0
      while index + 8 <= buffer.count {
        let word = UInt64(littleEndian: buffer.loadUnaligned(fromByteOffset: index, as: UInt64.self)) ^ UInt64(crc)
        crc = 0
        for step in 0..<8 { crc ^= tables[(7 - step) * 256 + Int(word >> (8 * UInt64(step)) & 0xFF)] }
        index += 8
      }
      while index < buffer.count {
        crc = crc >> 8 ^ tables[Int((crc ^ UInt32(buffer[index])) & 0xFF)]
        index += 1
      }
      return ~crc
    }
  }
}

/// Eight tables of 256 entries: table n is the effect of a byte that is followed by n more bytes.
private let crcTables: [UInt32] = {
  var tables = (0..<256).map { byte in (0..<8).reduce(UInt32(byte)) { crc, _ in crc >> 1 ^ (crc & 1 == 0 ? 0 : 0x82F6_3B78) } }
  for index in 256..<2048 {
    let previous = tables[index - 256]
    tables.append(previous >> 8 ^ tables[Int(previous & 0xFF)])
  }
  return tables
}()
