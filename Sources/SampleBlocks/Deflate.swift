// Raw deflate by libdeflate: no header and no checksum, because sections have a CRC of their own.

import CDeflate

/// The maximum compression ratio of deflate: a match of 258 bytes in two bits.
private let maxRatio = 1032

/// Compresses sections, one after another.
struct Compressor: ~Copyable {
  private let compressor: OpaquePointer

  init(_ effort: BlockBuilder.Effort) {
    guard let allocated = libdeflate_alloc_compressor(effort.level) else { preconditionFailure("out of memory") }
    compressor = allocated
  }

  deinit { libdeflate_free_compressor(compressor) }

  /// Returns the compressed bytes, or the bytes unchanged if compression does not shorten them. The stored size distinguishes the two.
  func compress(_ bytes: [UInt8]) -> [UInt8] {
    let compressed = [UInt8](unsafeUninitializedCapacity: bytes.count) { output, count in
      count = bytes.withUnsafeBytes { libdeflate_deflate_compress(compressor, $0.baseAddress, $0.count, output.baseAddress, $0.count) }
    }
    // The result is empty if it does not fit.
    return compressed.isEmpty || compressed.count >= bytes.count ? bytes : compressed
  }
}

extension BlockBuilder.Effort {
  /// The level of libdeflate, from 1 to 12.
  fileprivate var level: CInt {
    switch self {
    case .fast: 1
    // Higher levels take several times as long, and save less than 3 % of a large block.
    case .normal: 7
    case .smallest: 12
    }
  }
}

/// Whether `stored` bytes can be the compressed form of `size` bytes. This limits the memory that a short malicious input can request.
func canHold(_ stored: Int, _ size: Int) -> Bool {
  stored == size || stored > 0 && stored < size && size / maxRatio <= stored
}

/// Decompresses sections, one after another.
final class Decompressor {
  private let decompressor: OpaquePointer

  init() {
    guard let allocated = libdeflate_alloc_decompressor() else { preconditionFailure("out of memory") }
    decompressor = allocated
  }

  deinit { libdeflate_free_decompressor(decompressor) }

  /// Decompresses the result of `Compressor.compress` to the original `size` bytes.
  func decompress(_ bytes: ArraySlice<UInt8>, to size: Int, _ place: BlockPlace) throws(BlockError) -> ArraySlice<UInt8> {
    if bytes.count == size { return bytes }
    guard canHold(bytes.count, size) else { throw BlockError(place, "\(bytes.count) bytes cannot hold \(size)") }
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
}
