// Writes numbers and constant text to a small buffer on the stack. JSONBytes uses it, because every append to an array would cost a bounds
// check. Text that does not fit is dropped; a test checks that the longest reading fits. Inlinable, because
// module Varlink writes every reading with it.

@usableFromInline package struct ByteWriter {
  /// The maximum size in bytes: three of the longest numbers and the names around them.
  @inlinable package static var capacity: Int { 160 }

  @usableFromInline package let buffer: UnsafeMutableBufferPointer<UInt8>
  @usableFromInline package var count = 0

  @inlinable package init(_ buffer: UnsafeMutableBufferPointer<UInt8>) { self.buffer = buffer }

  @inlinable @inline(__always)
  package mutating func write(_ byte: UInt8) {
    guard count < buffer.count else { return }
    buffer[count] = byte
    count += 1
  }

  /// Writes text that needs no escaping.
  @inlinable @inline(__always)
  package mutating func write(_ text: StaticString) {
    let size = text.utf8CodeUnitCount
    guard size <= buffer.count - count, let base = buffer.baseAddress else { return }
    (base + count).update(from: text.utf8Start, count: size)
    count += size
  }

  /// Writes an integer.
  @inlinable @inline(__always)
  package mutating func write(_ number: Int) {
    if number < 0 { write(UInt8(ascii: "-")) }
    write(digits: UInt64(number.magnitude), point: 0)
  }

  /// Writes a finite number. Most values are decimals of at most six places, which are written as integers with a decimal point;
  /// the others use `description`.
  @inlinable @inline(__always)
  package mutating func write(_ number: Double) {
    let scaled = (number * 1e6).rounded()
    guard scaled.magnitude < 0x1p53, scaled / 1e6 == number else {
      let whole = number.rounded() == number && number.magnitude < 1e15
      for byte in (whole ? String(Int64(number)) : number.description).utf8 { write(byte) }
      return
    }
    var units = UInt64(scaled.magnitude)
    var places = 6
    while places > 0 {
      let (quotient, digit) = units.quotientAndRemainder(dividingBy: 10)
      if digit != 0 { break }
      units = quotient
      places -= 1
    }
    if scaled < 0 { write(UInt8(ascii: "-")) }
    write(digits: units, point: places)
  }

  /// Writes the digits from the right, with a decimal point before the last `places` of them and at least one digit before it.
  @inlinable @inline(__always)
  package mutating func write(digits number: UInt64, point places: Int) {
    var size = 1
    var limit: UInt64 = 10
    while size < 19, number >= limit {
      size += 1
      limit &*= 10  // at most 10 to the 19th, which fits into 64 bits
    }
    size = max(size, places + 1) + (places > 0 ? 1 : 0)
    guard size <= buffer.count - count else { return }
    var rest = number
    for position in stride(from: size - 1, through: 0, by: -1) {
      if places > 0, position == size - 1 - places {
        buffer[count + position] = UInt8(ascii: ".")
      } else {
        buffer[count + position] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      }
    }
    count += size
  }
}
