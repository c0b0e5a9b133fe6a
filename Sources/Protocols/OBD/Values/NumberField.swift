// Numbers in a response: their bytes, and the linear conversion from the raw number to the value. A field never reads beyond the data.

/// The size, sign and byte order of a number; big endian unless the name of the case begins with `little`.
enum NumberLayout: Sendable, Equatable {
  case u8, s8, u16, s16, u24, u32
  case littleU16, littleS16
  case bit(UInt8)

  var size: Int {
    switch self {
    case .u8, .s8, .bit: 1
    case .u16, .s16, .littleU16, .littleS16: 2
    case .u24: 3
    case .u32: 4
    }
  }

  var isSigned: Bool {
    switch self {
    case .s8, .s16, .littleS16: true
    case .u8, .u16, .u24, .u32, .littleU16, .bit: false
    }
  }

  /// The number at this byte offset; all of its bytes must be present.
  @inline(__always) func raw(_ data: UnsafeBufferPointer<UInt8>, _ offset: Int) -> Int {
    switch self {
    case .u8: Int(data[offset])
    case .s8: Int(Int8(bitPattern: data[offset]))
    case .u16: Int(data[offset]) << 8 | Int(data[offset + 1])
    case .s16: Int(Int16(bitPattern: UInt16(data[offset]) << 8 | UInt16(data[offset + 1])))
    case .littleU16: Int(data[offset + 1]) << 8 | Int(data[offset])
    case .littleS16: Int(Int16(bitPattern: UInt16(data[offset + 1]) << 8 | UInt16(data[offset])))
    case .u24: Int(data[offset]) << 16 | Int(data[offset + 1]) << 8 | Int(data[offset + 2])
    case .u32: Int(data[offset]) << 24 | Int(data[offset + 1]) << 16 | Int(data[offset + 2]) << 8 | Int(data[offset + 3])
    case .bit(let number): Int(data[offset] >> number & 1)
    }
  }
}

/// The offset and the layout of a number in a response.
struct NumberField: Sendable, Equatable {
  let byteOffset: Int
  let layout: NumberLayout

  static func u8(_ offset: Int) -> NumberField { NumberField(byteOffset: offset, layout: .u8) }
  static func s8(_ offset: Int) -> NumberField { NumberField(byteOffset: offset, layout: .s8) }
  static func u16(_ offset: Int) -> NumberField { NumberField(byteOffset: offset, layout: .u16) }
  static func s16(_ offset: Int) -> NumberField { NumberField(byteOffset: offset, layout: .s16) }
  static func u24(_ offset: Int) -> NumberField { NumberField(byteOffset: offset, layout: .u24) }
  static func u32(_ offset: Int) -> NumberField { NumberField(byteOffset: offset, layout: .u32) }
  static func littleU16(_ offset: Int) -> NumberField { NumberField(byteOffset: offset, layout: .littleU16) }
  static func littleS16(_ offset: Int) -> NumberField { NumberField(byteOffset: offset, layout: .littleS16) }

  /// The number, or nil if the response is too short.
  func raw(_ data: UnsafeBufferPointer<UInt8>) -> Int? {
    byteOffset >= 0 && byteOffset <= data.count - layout.size ? layout.raw(data, byteOffset) : nil
  }
}

/// A number with a linear conversion: raw * factor / divisor + offset. A formula that only does this is compiled to a `LinearField`.
struct LinearField: Sendable, Equatable {
  /// A raw number that stands for the absence of a value, and the reason for it.
  struct Sentinel: Sendable, Equatable {
    let raw: Int
    let reason: Absence
  }

  let number: NumberField
  let factor: Double
  let divisor: Double
  let offset: Double
  let sentinel: Sentinel?

  init(_ number: NumberField, factor: Double = 1, divisor: Double = 1, offset: Double = 0, sentinel: Sentinel? = nil) {
    (self.number, self.factor, self.divisor, self.offset, self.sentinel) = (number, factor, divisor, offset, sentinel)
  }

  @inline(__always) func value(_ raw: Int) -> Double { Double(raw) * factor / divisor + offset }

  /// The value of a raw number, for conversions with `isInteger`.
  @inline(__always) func int(_ raw: Int) -> Int { raw * Int(factor) + Int(offset) }

  /// Whether the conversion of every raw number is a whole number and needs no division.
  var isInteger: Bool { divisor == 1 && [factor, offset].allSatisfy { $0.rounded() == $0 && abs($0) < 0x1p20 } }

  /// Whether the value is the raw number, or a whole multiple of it, divided by a power of ten up to `scale`.
  func isDecimal(_ scale: Double) -> Bool {
    guard offset == 0, factor.rounded() == factor, abs(factor) < 0x1p20 else { return false }
    var power = 1.0
    while power < scale, power < divisor { power *= 10 }
    return power == divisor
  }
}
