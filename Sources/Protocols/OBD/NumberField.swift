// How bytes of an answer become a number and a number becomes a property's value: the parts that every table of this folder
// is written with. It never reads beyond the data and never lets a value out of its property's range.

/// Where a number stands in an answer, and how its bytes make it.
struct NumberField: Sendable {
  var at: Int
  var bytes: Int
  var isSigned = false
  var isLittleEndian = false

  static func u8(_ at: Int) -> NumberField { NumberField(at: at, bytes: 1) }
  static func s8(_ at: Int) -> NumberField { NumberField(at: at, bytes: 1, isSigned: true) }
  static func u16(_ at: Int) -> NumberField { NumberField(at: at, bytes: 2) }
  static func s16(_ at: Int) -> NumberField { NumberField(at: at, bytes: 2, isSigned: true) }
  static func u24(_ at: Int) -> NumberField { NumberField(at: at, bytes: 3) }
  static func u32(_ at: Int) -> NumberField { NumberField(at: at, bytes: 4) }

  /// The same with its lowest byte first.
  var littleEndian: NumberField { NumberField(at: at, bytes: bytes, isSigned: isSigned, isLittleEndian: true) }

  /// The number, or nil where the answer ends before.
  func raw(_ data: UnsafeBufferPointer<UInt8>) -> Int? {
    guard at >= 0, bytes >= 1, bytes <= 4, data.count >= bytes, at <= data.count - bytes else { return nil }
    var number = 0
    for index in 0..<bytes { number = number << 8 | Int(data[isLittleEndian ? at + bytes - 1 - index : at + index]) }
    let half = 1 << (8 * bytes - 1)
    return isSigned && number >= half ? number - 2 * half : number
  }
}

extension DataRow {
  /// A whole number: raw * times + plus, where the raw number can be.
  static func whole(
    _ property: Property, _ field: NumberField, times: Int = 1, plus: Int = 0, raw plausible: ClosedRange<Int>? = nil,
    absent: (raw: Int, why: Absence)? = nil
  ) -> DataRow {
    let (sentinel, why) = (absent?.raw, absent?.why ?? .none)
    return DataRow(property) { data in
      guard let raw = field.raw(data) else { return .absent(.notReported) }
      if raw == sentinel { return .absent(why) }
      guard plausible?.contains(raw) ?? true else { return .absent(.implausible) }
      return checked(.int(raw * times + plus), property)
    }
  }

  /// A number with a fraction: raw * times / over + plus, rounded to so many decimals.
  static func scaled(
    _ property: Property, _ field: NumberField, times: Double = 1, over: Double = 1, plus: Double = 0, decimals: Int,
    raw plausible: ClosedRange<Int>? = nil, absent: (raw: Int, why: Absence)? = nil
  ) -> DataRow {
    let (sentinel, why) = (absent?.raw, absent?.why ?? .none)
    return DataRow(property) { data in
      guard let raw = field.raw(data) else { return .absent(.notReported) }
      if raw == sentinel { return .absent(why) }
      guard plausible?.contains(raw) ?? true else { return .absent(.implausible) }
      return checked(.float(rounded(Double(raw) * times / over + plus, decimals)), property)
    }
  }

  /// One bit of one byte.
  static func bit(_ property: Property, _ at: Int, _ bit: UInt8) -> DataRow {
    DataRow(property) { data in
      guard at >= 0, at < data.count else { return .absent(.notReported) }
      return .value(.bool(data[at] >> bit & 1 == 1))
    }
  }

  /// A word of a closed set for a number; another number means nothing.
  static func word(
    _ name: String, _ field: NumberField, _ words: [Int: String], lifetime: Property.Lifetime = .fresh(2 * .second), help: String
  ) -> DataRow {
    let choices = Set(words.values).sorted()
    return DataRow(Property(name, .string, choices: choices, lifetime: lifetime, help: help)) { data in
      guard let raw = field.raw(data) else { return .absent(.notReported) }
      return words[raw].map { .value(.string($0)) } ?? .absent(.undefined)
    }
  }

  /// The same row, absent where the whole answer is not what it should be.
  func only(when holds: @escaping @Sendable (UnsafeBufferPointer<UInt8>) -> Bool, else absence: Absence = .implausible) -> DataRow {
    let read = read
    return DataRow(property) { holds($0) ? read($0) : .absent(absence) }
  }

  /// To so many decimals; adding zero turns -0 into 0.
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
