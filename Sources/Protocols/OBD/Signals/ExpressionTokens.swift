// The operators, constants and functions of formulas.

extension ExpressionParser {
  /// The comparisons; an operator comes before any operator that is its prefix.
  static let comparisons: [(String, Expression.Binary)] = [
    ("==", .equal), ("!=", .unequal), ("<=", .lessOrEqual), (">=", .greaterOrEqual), ("<", .less), (">", .greater),
  ]

  /// The operators by precedence, lowest first.
  static let levels: [[(String, Expression.Binary)]] = [
    [("|", .or)], [("^", .xor)], [("&", .and)], [("<<", .shiftLeft), (">>", .shiftRight)], [("+", .add), ("-", .subtract)],
    [("*", .multiply), ("/", .divide), ("%", .modulo)],
  ]

  /// The two-character operators, whose first character must not be read as an operator of its own.
  static let operators = ["||", "&&", "==", "!=", "<=", ">=", "<<", ">>"]

  /// The names of constants: the reasons for the absence of a value, and the number of data bytes.
  static let constants: [String: Expression.Step] = [
    "absent": .absent(.notAvailable), "unreported": .absent(.notReported), "implausible": .absent(.implausible), "length": .length,
  ]

  enum Function: String, CaseIterable {
    case signed, signed8, signed16, signed24, signed32, float32, abs, min, max, int, round

    /// The arguments, for error messages: values, or the bytes of a number, most significant first.
    var argumentsText: String {
      switch self {
      case .signed: "a byte, or a number and its width in bits, as in signed(A) or signed(A*256+B, 16)"
      case .signed8: "one value, as in signed8(A)"
      case .signed16: "a number or two bytes, as in signed16(A,B)"
      case .signed24: "a number or three bytes, as in signed24(A,B,C)"
      case .signed32: "a number or four bytes, as in signed32(A,B,C,D)"
      case .float32: "four bytes, as in float32(A,B,C,D)"
      case .abs, .int, .round: "one value, as in \(rawValue)(A-40)"
      case .min, .max: "two or more values, as in \(rawValue)(A,B)"
      }
    }

    /// Whether the function can have this many arguments.
    func accepts(_ count: Int) -> Bool {
      switch self {
      case .signed: count == 1 || count == 2
      case .signed16: count == 1 || count == 2
      case .signed24: count == 1 || count == 3
      case .signed32: count == 1 || count == 4
      case .float32: count == 4
      case .signed8, .abs, .int, .round: count == 1
      case .min, .max: count >= 2
      }
    }

    static let names = allCases.map(\.rawValue).joined(separator: ", ")
  }
}
