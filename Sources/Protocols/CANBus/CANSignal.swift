// A signal of a CAN bus: the property, the frames that contain it, and how its bits become a value. A value is never guessed: a number
// outside of its range, or without a label, is absent.

package struct CANSignal: Sendable {
  package let property: Property
  /// The identifier of the message.
  package let identifier: CANIdentifier
  package let field: CANBitField
  /// All must be met for a frame to contain the signal.
  package let conditions: [CANCondition]
  /// The time between two messages; nil if they have no fixed rate.
  package let cycleTime: Nanoseconds?
  let reader: CANValueReader

  /// How long a value is valid after its message: three cycle times, but not so short that a Wi-Fi adapter's delays matter.
  static let minLifetime: Nanoseconds = 300 * .millisecond
  /// How long a value is valid if its message has no cycle time.
  static let defaultLifetime: Nanoseconds = 3 * .second

  /// How long a value is valid after its message; nil if it is kept.
  var lifetime: Nanoseconds? {
    if property.lifetime == .retained { return nil }
    return cycleTime.map { max(3 * $0, Self.minLifetime) } ?? Self.defaultLifetime
  }
}

/// Turns the bits of a signal into its value.
package struct CANValueReader: Sendable {
  /// What a value is.
  enum Form: Sendable {
    case bool
    case string
    /// raw × factor + offset, if that fits into 64 bits.
    case int(factor: Int, offset: Int)
    /// (raw × factor + offset) ÷ divisor. The divisor is a power of ten, so that 3 × 0.1 is 0.3.
    case float(factor: Double, offset: Double, divisor: Double)
  }

  static let outOfRange = "outside the configured range"
  static let noNumber = "not a number"
  static let tooLarge = "too large for type int"
  /// The labels of booleans.
  static let (on, off) = ("on", "off")

  let field: CANBitField
  /// The bits of a second number, by which the first one is multiplied; nil: there is none.
  let multiplier: CANBitField?
  /// Whether the bits are a number of IEEE 754.
  let isFloat: Bool
  let form: Form
  /// 10 to the power of the number of decimals to which the value is rounded; nil: it is not rounded.
  let scale: Double?
  /// The strings of values; `on` or `off` for booleans; for numbers, why there is no value.
  let labels: [Int64: String]
  let range: ClosedRange<Double>?

  /// The bits that determine a value.
  package struct Bits: Hashable, Sendable {
    fileprivate let raw: UInt64
    /// Those of the multiplier; 0 if there is none.
    fileprivate let second: UInt64
  }

  /// The number of bytes that a frame must have to contain all bits.
  var minCount: Int { max(field.minCount, multiplier?.minCount ?? 0) }

  /// The bits in a frame, whose eight bytes are `word`, the first one in the most significant position.
  @inline(__always) package func bits(in word: UInt64) -> Bits { Bits(raw: field.raw(in: word), second: multiplier?.raw(in: word) ?? 0) }

  /// The value of these bits, or why there is none.
  package func content(_ bits: Bits) -> Reading.Content {
    let label = labels.isEmpty ? nil : Int64(exactly: field.integer(bits.raw)).flatMap { labels[$0] }
    switch (form, label) {
    case (.bool, nil) where labels.isEmpty: return .value(.bool(bits.raw != 0))
    case (.bool, let label?): return .value(.bool(label == Self.on))
    case (.string, let label?): return .value(.string(label))
    case (.bool, nil), (.string, nil): return .absent("no label for \(field.integer(bits.raw))")
    case (.int, let label?), (.float, let label?): return .absent(label)
    case (.int(let factor, let offset), nil):
      let number = field.integer(bits.raw) * Int128(factor) + Int128(offset)
      guard range?.contains(Double(number)) ?? true else { return .absent(Self.outOfRange) }
      guard let value = Int(exactly: number) else { return .absent(Self.tooLarge) }
      return .value(.int(value))
    case (.float(let factor, let offset, let divisor), nil):
      let product = multiplier.map { number(bits.raw) * $0.number(bits.second) } ?? number(bits.raw)
      var value = (product * factor + offset) / divisor
      if let scale { value = (value * scale).rounded() / scale }
      guard value.isFinite else { return .absent(Self.noNumber) }
      guard range?.contains(value) ?? true else { return .absent(Self.outOfRange) }
      return .value(.float(value + 0))  // -0 becomes 0
    }
  }

  private func number(_ raw: UInt64) -> Double {
    guard isFloat else { return field.number(raw) }
    return field.length == 32 ? Double(Float(bitPattern: UInt32(truncatingIfNeeded: raw))) : Double(bitPattern: raw)
  }
}

extension CANBitField {
  /// The number in these bits.
  fileprivate func integer(_ raw: UInt64) -> Int128 { isSigned ? Int128(signed(raw)) : Int128(raw) }
}

extension CANValueReader.Form {
  /// A linear conversion as configured, to numbers without binary rounding errors where that is possible.
  static func linear(factor: Double, offset: Double) -> Self {
    let decimals = max(decimals(factor), decimals(offset))
    let divisor = (0..<decimals).reduce(1.0) { power, _ in power * 10 }
    let (whole, wholeOffset) = ((factor * divisor).rounded(), (offset * divisor).rounded())
    guard decimals <= maxDecimals, abs(whole) < 0x1p53, abs(wholeOffset) < 0x1p53 else {
      return .float(factor: factor, offset: offset, divisor: 1)
    }
    return .float(factor: whole, offset: wholeOffset, divisor: divisor)
  }

  private static let maxDecimals = 15

  /// The number of decimals in the shortest text of a number; more than `maxDecimals` if there are too many to count.
  private static func decimals(_ number: Double) -> Int {
    let parts = "\(number)".split(separator: "e")
    guard let mantissa = parts.first, let exponent = parts.count > 1 ? Int(parts[1]) : 0 else { return maxDecimals + 1 }
    let digits = mantissa.split(separator: ".").dropFirst().first.map { $0 == "0" ? 0 : $0.utf8.count } ?? 0
    return min(max(0, digits - exponent), maxDecimals + 1)
  }
}
