// Numbers in a response: their bytes, and the linear conversion from the raw number to the value. Never reads beyond the data.

/// The size, sign and byte order of a number; big endian unless the case says little.
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

  /// The number at this offset; all of its bytes must be present.
  @inline(__always) func raw(_ data: UnsafeBufferPointer<UInt8>, _ at: Int) -> Int {
    switch self {
    case .u8: Int(data[at])
    case .s8: Int(Int8(bitPattern: data[at]))
    case .u16: Int(data[at]) << 8 | Int(data[at + 1])
    case .s16: Int(Int16(bitPattern: UInt16(data[at]) << 8 | UInt16(data[at + 1])))
    case .littleU16: Int(data[at + 1]) << 8 | Int(data[at])
    case .littleS16: Int(Int16(bitPattern: UInt16(data[at + 1]) << 8 | UInt16(data[at])))
    case .u24: Int(data[at]) << 16 | Int(data[at + 1]) << 8 | Int(data[at + 2])
    case .u32: Int(data[at]) << 24 | Int(data[at + 1]) << 16 | Int(data[at + 2]) << 8 | Int(data[at + 3])
    case .bit(let number): Int(data[at] >> number & 1)
    }
  }
}

/// The offset and the layout of a number in a response.
struct NumberField: Sendable, Equatable {
  let at: Int
  let layout: NumberLayout

  static func u8(_ at: Int) -> NumberField { NumberField(at: at, layout: .u8) }
  static func s8(_ at: Int) -> NumberField { NumberField(at: at, layout: .s8) }
  static func u16(_ at: Int) -> NumberField { NumberField(at: at, layout: .u16) }
  static func s16(_ at: Int) -> NumberField { NumberField(at: at, layout: .s16) }
  static func u24(_ at: Int) -> NumberField { NumberField(at: at, layout: .u24) }
  static func u32(_ at: Int) -> NumberField { NumberField(at: at, layout: .u32) }
  static func littleU16(_ at: Int) -> NumberField { NumberField(at: at, layout: .littleU16) }
  static func littleS16(_ at: Int) -> NumberField { NumberField(at: at, layout: .littleS16) }

  /// The number, or nil if the response is too short.
  func raw(_ data: UnsafeBufferPointer<UInt8>) -> Int? {
    at >= 0 && at <= data.count - layout.size ? layout.raw(data, at) : nil
  }
}

/// A number with a linear conversion, raw * times / over + plus. A formula that reads one number is compiled to this.
struct ScaledField: Sendable, Equatable {
  /// A raw number that means that there is no value, and why.
  struct Sentinel: Sendable, Equatable {
    let raw: Int
    let why: Absence
  }

  let number: NumberField
  let times: Double
  let over: Double
  let plus: Double
  let sentinel: Sentinel?

  init(_ number: NumberField, times: Double = 1, over: Double = 1, plus: Double = 0, sentinel: Sentinel? = nil) {
    (self.number, self.times, self.over, self.plus, self.sentinel) = (number, times, over, plus, sentinel)
  }

  @inline(__always) func value(_ raw: Int) -> Double { Double(raw) * times / over + plus }

  /// The value of a raw number, for conversions with `isWhole`.
  @inline(__always) func whole(_ raw: Int) -> Int { raw * Int(times) + Int(plus) }

  /// Whether every raw number gives a whole number, without a division.
  var isWhole: Bool { over == 1 && [times, plus].allSatisfy { $0.rounded() == $0 && abs($0) < 0x1p20 } }

  /// Whether the value is the raw number, or a whole multiple of it, divided by a power of ten up to `scale`.
  func isDecimal(_ scale: Double) -> Bool {
    guard plus == 0, times.rounded() == times, abs(times) < 0x1p20 else { return false }
    var power = 1.0
    while power < scale, power < over { power *= 10 }
    return power == over
  }
}
