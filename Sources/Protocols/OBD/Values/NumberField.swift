// Conversion of bytes to numbers and of numbers to property values, shared by all tables of this folder. Never reads beyond the data and
// never returns a value outside of the property's range.

/// The size, sign and byte order of a number; big endian unless it says little.
enum NumberLayout: Sendable {
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
struct NumberField: Sendable {
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

extension DataRow {
  /// A whole number: raw * times + plus, if the raw number is plausible.
  static func whole(
    _ property: Property, _ field: NumberField, times: Int = 1, plus: Int = 0, raw plausible: ClosedRange<Int>? = nil,
    absent: (raw: Int, why: Absence)? = nil
  ) -> DataRow {
    number(property, field, plausible, absent) { .int($0 * times + plus) }
  }

  /// A decimal number: raw * times / over + plus, rounded to `decimals`.
  static func scaled(
    _ property: Property, _ field: NumberField, times: Double = 1, over: Double = 1, plus: Double = 0, decimals: Int,
    raw plausible: ClosedRange<Int>? = nil, absent: (raw: Int, why: Absence)? = nil
  ) -> DataRow {
    number(property, field, plausible, absent) { .float(rounded(Double($0) * times / over + plus, decimals)) }
  }

  private static func number(
    _ property: Property, _ field: NumberField, _ plausible: ClosedRange<Int>?, _ absent: (raw: Int, why: Absence)?,
    _ value: @escaping @Sendable (Int) -> Value
  ) -> DataRow {
    let (sentinel, why) = (absent?.raw, absent?.why ?? .none)
    return DataRow(property) { data in
      guard let raw = field.raw(data) else { return .absent(.notReported) }
      if raw == sentinel { return .absent(why) }
      guard plausible?.contains(raw) ?? true else { return .absent(.implausible) }
      return checked(value(raw), property)
    }
  }

  /// One bit of one byte.
  static func bit(_ property: Property, _ at: Int, _ bit: UInt8) -> DataRow {
    let field = NumberField(at: at, layout: .bit(bit))
    return DataRow(property) { field.raw($0).map { .value(.bool($0 == 1)) } ?? .absent(.notReported) }
  }

  /// A string of a closed set for a number; other numbers are absent.
  static func word(
    _ name: String, _ field: NumberField, _ labels: [Int: String], lifetime: Property.Lifetime = .fresh(2 * .second), help: String
  ) -> DataRow {
    let choices = Set(labels.values).sorted()
    return DataRow(Property(name, .string, choices: choices, lifetime: lifetime, help: help)) { data in
      guard let raw = field.raw(data) else { return .absent(.notReported) }
      return labels[raw].map { .value(.string($0)) } ?? .absent(.undefined)
    }
  }

  /// The same row, absent if the response as a whole is not valid.
  func only(when holds: @escaping @Sendable (UnsafeBufferPointer<UInt8>) -> Bool, else absence: Absence = .implausible) -> DataRow {
    let read = read
    return DataRow(property) { holds($0) ? read($0) : .absent(absence) }
  }

  /// Rounds to `places` decimals; adding zero turns -0 into 0.
  static func rounded(_ number: Double, _ decimals: Int) -> Double {
    var scale = 1.0
    for _ in 0..<max(decimals, 0) { scale *= 10 }
    return (number * scale).rounded() / scale + 0
  }

  private static func checked(_ value: Value, _ property: Property) -> Decoded {
    guard let range = property.range, let number = value.number, !range.contains(number) else { return .value(value) }
    return .absent(.implausible)
  }
}
