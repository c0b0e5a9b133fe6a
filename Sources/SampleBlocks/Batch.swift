// A batch: a block with a header that describes its series, for receivers that have no database of them. The format:
//
//   batch     = "VFB1" CRC-32C:u32 of everything that follows, header-size, stored-size, header, block
//   header    = JSON, deflated if that makes it shorter: then stored-size is less than header-size
//   block     = see BlockBuilder
//
// The sizes are LEB128; u32 is little-endian.

/// Encodes and decodes batches, independently of the contents of their headers.
public enum Batch {
  static let magic = Array("VFB1".utf8)
  /// The maximum size of a header in bytes.
  static let headerLimit = 1 << 20

  /// Returns the bytes of a batch.
  public static func encode(header: [UInt8], block: [UInt8]) -> [UInt8] {
    let stored = Compressor(.smallest).compress(header)
    var rest = ByteWriter()
    rest.append(header.count)
    rest.append(stored.count)
    rest.bytes.append(contentsOf: stored)
    rest.bytes.append(contentsOf: block)
    var batch = ByteWriter(bytes: magic)
    batch.append(fixed: crc32c(rest.bytes[...]))
    return batch.bytes + rest.bytes
  }

  /// Returns the header and the block of a batch.
  public static func decode(_ bytes: [UInt8]) throws(BlockError) -> (header: [UInt8], block: Block) {
    var reader = ByteReader(bytes[...], .batch)
    guard bytes.starts(with: magic) else { throw reader.failure("not a batch of samples, or written by a later version") }
    _ = try reader.slice(magic.count)
    guard try reader.fixed() == crc32c(bytes[reader.position...]) else { throw reader.failure("checksum mismatch") }
    let size = try reader.count("bytes of the header", limit: headerLimit)
    let stored = try reader.slice(try reader.count("stored bytes of the header", limit: reader.remaining))
    let header = try Decompressor().decompress(stored, to: size, .batch)
    return (Array(header), try Block(Array(try reader.slice(reader.remaining))))
  }
}
