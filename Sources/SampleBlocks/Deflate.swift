// Raw deflate: no header and no checksum, because sections have a CRC of their own. zlib compresses, because it can be tuned for differences;
// libdeflate decompresses, because it is faster.

import CDeflate
import CZlib

/// The maximum compression ratio of deflate: a match of 258 bytes in two bits.
private let maxRatio = 1032

/// Compresses sections, one after another.
struct Compressor: ~Copyable {
  /// zlib's state points back to the stream, which therefore must not move.
  private let stream: UnsafeMutablePointer<z_stream>

  init() {
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    // Differences compress better with fewer short matches.
    let code = deflateInit2_(
      stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_FILTERED, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size))
    precondition(code == Z_OK, "zlib cannot be initialised: \(code)")
  }

  deinit {
    deflateEnd(stream)
    stream.deallocate()
  }

  /// Returns the compressed bytes, or the bytes unchanged if compression does not shorten them. The stored size distinguishes the two.
  func compress(_ bytes: [UInt8]) -> [UInt8] {
    deflateReset(stream)
    let compressed = [UInt8](unsafeUninitializedCapacity: bytes.count) { output, count in
      count = bytes.withUnsafeBufferPointer { input in
        stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
        stream.pointee.avail_in = UInt32(input.count)
        stream.pointee.next_out = output.baseAddress
        stream.pointee.avail_out = UInt32(output.count)
        return deflate(stream, Z_FINISH) == Z_STREAM_END ? output.count - Int(stream.pointee.avail_out) : output.count
      }
    }
    return compressed.count < bytes.count ? compressed : bytes
  }
}

/// Whether `stored` bytes can be the compressed form of `size` bytes. This limits the memory that a short malicious input can request.
func canHold(_ stored: Int, _ size: Int) -> Bool {
  stored == size || stored > 0 && stored < size && size / maxRatio <= stored
}

/// Decompresses the result of `Compressor.compress` to the original `size` bytes.
func decompress(_ bytes: ArraySlice<UInt8>, to size: Int, _ place: String) throws(BlockError) -> ArraySlice<UInt8> {
  if bytes.count == size { return bytes }
  guard canHold(bytes.count, size) else { throw BlockError(place, "\(bytes.count) bytes cannot hold \(size)") }
  guard let decompressor = libdeflate_alloc_decompressor() else { throw BlockError(place, "out of memory") }
  defer { libdeflate_free_decompressor(decompressor) }
  var (result, used) = (LIBDEFLATE_BAD_DATA, 0)
  let output = [UInt8](unsafeUninitializedCapacity: size) { output, count in
    bytes.withUnsafeBytes { input in
      // Without a pointer for its length, the output must have exactly this size.
      result = libdeflate_deflate_decompress_ex(decompressor, input.baseAddress, input.count, output.baseAddress, size, &used, nil)
    }
    count = result == LIBDEFLATE_SUCCESS ? size : 0
  }
  guard result == LIBDEFLATE_SUCCESS, used == bytes.count else { throw BlockError(place, "damaged compressed data") }
  return output[...]
}
