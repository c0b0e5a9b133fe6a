// Appends numbers and strings as JSON to an array of bytes, without temporary allocations. Callers must pass only finite numbers.

extension [UInt8] {
  /// Appends constant text that needs no escaping.
  @inlinable @inline(__always)
  package mutating func append(ascii text: StaticString) {
    append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Appends an integer.
  @inlinable package mutating func append(json number: Int) { append { $0.write(number) } }

  /// Appends a finite number, with enough digits to parse back to the same number.
  @inlinable package mutating func append(json number: Double) { append { $0.write(number) } }

  /// Appends up to `ByteWriter.capacity` bytes that are written on the stack.
  @inlinable @inline(__always)
  package mutating func append(_ write: (inout ByteWriter) -> Void) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: ByteWriter.capacity) { buffer in
      var writer = ByteWriter(buffer)
      write(&writer)
      append(contentsOf: UnsafeBufferPointer(rebasing: buffer[..<writer.count]))
    }
  }

  /// Appends a string in quotes: UTF-8 unchanged; quotes, backslashes and control characters escaped.
  package mutating func append(json text: String) {
    append(UInt8(ascii: "\""))
    let plain = text.utf8.withContiguousStorageIfAvailable { bytes in
      guard bytes.allSatisfy({ $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) else { return false }
      append(contentsOf: bytes)
      return true
    }
    if plain != true { for byte in text.utf8 { append(escaping: byte) } }
    append(UInt8(ascii: "\""))
  }

  private mutating func append(escaping byte: UInt8) {
    switch byte {
    case UInt8(ascii: "\""): append(ascii: "\\\"")
    case UInt8(ascii: "\\"): append(ascii: "\\\\")
    case UInt8(ascii: "\n"): append(ascii: "\\n")
    case UInt8(ascii: "\r"): append(ascii: "\\r")
    case UInt8(ascii: "\t"): append(ascii: "\\t")
    case 0..<0x20:
      append(ascii: "\\u00")
      let hex: StaticString = "0123456789abcdef"
      append(hex.utf8Start[Int(byte >> 4)])
      append(hex.utf8Start[Int(byte & 15)])
    default: append(byte)
    }
  }
}
