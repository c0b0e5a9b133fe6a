// Variable-length integers and strings in a sequence of bytes. The reader checks every length before it uses it.

/// Converts 0, -1, 1, -2 … to 0, 1, 2, 3 …
@inline(__always) func zigzag(_ number: Int64) -> UInt64 { UInt64(bitPattern: (number << 1) ^ (number >> 63)) }

/// Converts 0, 1, 2, 3 … to 0, -1, 1, -2 …
@inline(__always) func signedNumber(zigzag number: UInt64) -> Int64 { Int64(bitPattern: number >> 1) ^ -Int64(bitPattern: number & 1) }

/// Appends numbers and strings to bytes.
struct ByteWriter {
  var bytes: [UInt8] = []

  /// Appends an unsigned LEB128 integer: seven bits per byte, the least significant first.
  @inline(__always) mutating func append(_ number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }

  @inline(__always) mutating func append(_ count: Int) { append(UInt64(bitPattern: Int64(count))) }

  /// Appends a signed integer as zigzag.
  @inline(__always) mutating func append(signed number: Int64) { append(zigzag(number)) }

  mutating func append(_ string: String) {
    append(string.utf8.count)
    bytes.append(contentsOf: string.utf8)
  }

  /// Appends four bytes, little-endian.
  mutating func append(fixed number: UInt32) {
    for shift in stride(from: UInt32(0), to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
  }
}

/// Reads what `ByteWriter` wrote. Errors include `place`.
struct ByteReader {
  private let bytes: ArraySlice<UInt8>
  private(set) var position: Int
  /// The part of the block that the bytes belong to, for error messages.
  let place: BlockPlace

  init(_ bytes: ArraySlice<UInt8>, _ place: BlockPlace) {
    self.bytes = bytes
    self.place = place
    position = bytes.startIndex
  }

  /// The number of bytes left to read.
  var remaining: Int { bytes.endIndex - position }

  func failure(_ problem: String) -> BlockError { BlockError(place, problem) }

  mutating func byte() throws(BlockError) -> UInt8 {
    guard position < bytes.endIndex else { throw failure("truncated") }
    defer { position += 1 }
    return bytes[position]
  }

  @inline(__always) mutating func unsigned() throws(BlockError) -> UInt64 {
    var (number, shift) = (UInt64(0), UInt64(0))
    while true {
      guard position < bytes.endIndex else { throw failure("truncated number") }
      let byte = bytes[position]
      position += 1
      guard shift < 63 || byte <= 1 else { throw failure("a number has more than 64 bits") }
      number |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return number }
      shift += 7
    }
  }

  @inline(__always) mutating func signed() throws(BlockError) -> Int64 {
    signedNumber(zigzag: try unsigned())
  }

  /// Reads numbers one after another, which is faster than reading each one with `unsigned()`. Most of them have one byte.
  @inline(__always) mutating func numbers(_ count: Int, _ body: (UInt64) throws(BlockError) -> Void) throws(BlockError) {
    guard count <= remaining else { throw failure("truncated: \(count) numbers in \(remaining) bytes") }
    let (start, place) = (position, place)
    position = try bytes[start...].withUnsafeBufferPointer { (bytes) throws(BlockError) -> Int in
      var next = 0
      for _ in 0..<count {
        var (number, shift) = (UInt64(0), UInt64(0))
        while true {
          guard next < bytes.count else { throw BlockError(place, "truncated number") }
          let byte = bytes[next]
          next += 1
          guard shift < 63 || byte <= 1 else { throw BlockError(place, "a number has more than 64 bits") }
          number |= UInt64(byte & 0x7F) << shift
          if byte < 0x80 { break }
          shift += 7
        }
        try body(number)
      }
      return start + next
    }
  }

  /// Reads a count of at most `limit`; `name` describes what is counted, for error messages.
  mutating func count(_ name: String, limit: Int) throws(BlockError) -> Int {
    let number = try unsigned()
    guard number <= UInt64(max(limit, 0)) else { throw failure("\(number) \(name); the maximum is \(max(limit, 0))") }
    return Int(number)
  }

  /// Reads a count of elements that occupy at least one byte each.
  mutating func elementCount(_ name: String) throws(BlockError) -> Int { try count(name, limit: remaining) }

  mutating func slice(_ count: Int) throws(BlockError) -> ArraySlice<UInt8> {
    guard count <= remaining else { throw failure("truncated: \(count - remaining) bytes are missing") }
    defer { position += count }
    return bytes[position..<position + count]
  }

  mutating func fixed() throws(BlockError) -> UInt32 {
    try slice(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }
  }

  mutating func string() throws(BlockError) -> String {
    let count = try elementCount("bytes of a string")
    guard let string = String(validating: try slice(count), as: UTF8.self) else { throw failure("a string is not UTF-8") }
    return string
  }

  func finish() throws(BlockError) {
    guard remaining == 0 else { throw failure("\(remaining) B of trailing data") }
  }
}
