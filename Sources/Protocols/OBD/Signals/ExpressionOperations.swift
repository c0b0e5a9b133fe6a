// Operators and functions of formulas. They return nil if there is no result: for a division by zero, a bit operation on a fraction, or a
// number that a Double cannot hold exactly. They never trap.

extension Expression {
  /// Functions and operators with one operand.
  enum Unary: Sendable, Equatable {
    case negative, complement, not, absolute, truncated, rounded
    /// Two's complement of this many bits.
    case signed(Int)

    func callAsFunction(_ value: Double) -> Double? {
      switch self {
      case .negative: -value
      case .complement: Expression.int(value).map { Double(~$0) }
      case .not: value == 0 ? 1 : 0
      case .absolute: abs(value)
      case .truncated: value.rounded(.towardZero)
      case .rounded: value.rounded()
      case .signed(let bits): Expression.signed(value, bits)
      }
    }
  }

  /// Functions and operators with two operands. Comparisons give 1 or 0.
  enum Binary: Sendable, Equatable {
    case add, subtract, multiply, divide, modulo
    case and, or, xor, shiftLeft, shiftRight
    case equal, unequal, less, lessOrEqual, greater, greaterOrEqual
    case minimum, maximum
    /// Two's complement of the first operand; the second operand is its width in bits.
    case signed

    func callAsFunction(_ left: Double, _ right: Double) -> Double? {
      switch self {
      case .add: left + right
      case .subtract: left - right
      case .multiply: left * right
      case .divide: right == 0 ? nil : left / right
      case .modulo: right == 0 ? nil : left.truncatingRemainder(dividingBy: right)
      case .and: bits(left, right) { $0 & $1 }
      case .or: bits(left, right) { $0 | $1 }
      case .xor: bits(left, right) { $0 ^ $1 }
      case .shiftLeft: shift(left, right) { $0 * Double(1 << $1) }
      case .shiftRight: shift(left, right) { ($0 / Double(1 << $1)).rounded(.down) }
      case .equal: left == right ? 1 : 0
      case .unequal: left != right ? 1 : 0
      case .less: left < right ? 1 : 0
      case .lessOrEqual: left <= right ? 1 : 0
      case .greater: left > right ? 1 : 0
      case .greaterOrEqual: left >= right ? 1 : 0
      case .minimum: min(left, right)
      case .maximum: max(left, right)
      case .signed: Expression.int(right).flatMap { Expression.signed(left, $0) }
      }
    }

    private func bits(_ left: Double, _ right: Double, _ operation: (Int, Int) -> Int) -> Double? {
      guard let left = Expression.int(left), let right = Expression.int(right) else { return nil }
      return Double(operation(left, right))
    }

    /// Shifts a whole number; nil if the result is not exact.
    private func shift(_ value: Double, _ count: Double, _ operation: (Double, Int) -> Double) -> Double? {
      guard Expression.int(value) != nil, let count = Expression.int(count), Expression.shifts.contains(count) else { return nil }
      return Expression.int(operation(value, count)).map(Double.init)
    }
  }

  /// The valid shifts, in bits.
  static let shifts = 0...52
  /// The valid widths of a signed number, in bits.
  static let widths = 2...53

  /// A number of this many bits, read as two's complement.
  fileprivate static func signed(_ value: Double, _ bits: Int) -> Double? {
    guard widths.contains(bits), let number = Expression.int(value), number >= 0, number < 1 << bits else { return nil }
    return Double(number < 1 << (bits - 1) ? number : number - 1 << bits)
  }

  /// The number as an integer; nil if it has a fraction, or if its magnitude is 2^53 or more, where a Double is not exact.
  static func int(_ number: Double) -> Int? {
    number.rounded() == number && Swift.abs(number) < 0x1p53 ? Int(number) : nil
  }

  /// The IEEE 754 number of four bytes, most significant first.
  static func float32(_ first: Double, _ second: Double, _ third: Double, _ fourth: Double) -> Double? {
    guard let first = byte(first), let second = byte(second), let third = byte(third), let fourth = byte(fourth) else { return nil }
    let number = Float(bitPattern: first << 24 | second << 16 | third << 8 | fourth)
    return number.isFinite ? Double(number) : nil
  }

  private static func byte(_ number: Double) -> UInt32? { int(number).flatMap(UInt8.init(exactly:)).map(UInt32.init) }
}
