// Tokens of formulas: numbers, bytes, bit tests, functions and operators, and the errors for invalid characters.

extension ExpressionParser {
  private typealias Binary = Expression.Binary

  /// Longer operators before their prefixes.
  static let comparisons: [(String, Expression.Binary)] = [
    ("==", .equal), ("!=", .unequal), ("<=", .lessOrEqual), (">=", .greaterOrEqual), ("<", .less), (">", .greater),
  ]

  /// By precedence, lowest first.
  static let levels: [[(String, Expression.Binary)]] = [
    [("|", .or)], [("^", .xor)], [("&", .and)], [("<<", .shiftLeft), (">>", .shiftRight)], [("+", .plus), ("-", .minus)],
    [("*", .times), ("/", .over), ("%", .modulo)],
  ]

  private static let operators = ["||", "&&", "==", "!=", "<=", ">=", "<<", ">>"]

  /// The arguments of functions: values, or the bytes of a number, most significant first.
  enum Function: String, CaseIterable {
    case signed, signed8, signed16, signed24, signed32, float32, abs, min, max, int, round

    var form: String {
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

    func takes(_ count: Int) -> Bool {
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

  mutating func name() throws(ExpressionError) {
    let place = at
    let word = word()
    if let offset = Self.byteOffset(word) {
      readsReply = true
      return try push(.byte(offset))
    }
    if word.lowercased() == "absent" { return try push(.absent) }
    guard let function = Function(rawValue: word.lowercased()) else {
      throw ExpressionError(
        offset: place,
        message: "\"\(word.prefix(30))\" is neither a byte (A to Z, AA to ZZ) nor a function; use one of \(Function.names)")
    }
    try call(function, place)
  }

  private mutating func call(_ function: Function, _ place: Int) throws(ExpressionError) {
    guard take("(") else { throw missing("\"(\" after \(function.rawValue)") }
    var count = 0
    repeat {
      if count > 0, [.signed16, .signed24, .signed32].contains(function) {
        try push(.number(256))
        apply(.times)
      }
      try conditional()
      count += 1
      guard count > 1 else { continue }
      switch function {
      case .signed16, .signed24, .signed32: apply(.plus)
      case .min: apply(.minimum)
      case .max: apply(.maximum)
      case .signed, .signed8, .float32, .abs, .int, .round: break
      }
    } while take(",")
    guard take(")") else { throw missing("\",\" or \")\"") }
    guard function.takes(count) else {
      throw ExpressionError(offset: place, message: "\(function.rawValue) does not take \(count) arguments; it takes \(function.form)")
    }
    try finish(function, count, place)
  }

  private mutating func finish(_ function: Function, _ count: Int, _ place: Int) throws(ExpressionError) {
    switch function {
    case .signed where count == 2:
      if case .number(let bits)? = steps.last, Expression.widths.allSatisfy({ Double($0) != bits }) {
        throw ExpressionError(offset: place, message: "width out of range; write 2 to 53 bits")
      }
      apply(.signed)
    case .signed, .signed8: steps.append(.one(.signed(8)))
    case .signed16: steps.append(.one(.signed(16)))
    case .signed24: steps.append(.one(.signed(24)))
    case .signed32: steps.append(.one(.signed(32)))
    case .float32:
      steps.append(.float32)
      depth -= 3
    case .abs: steps.append(.one(.absolute))
    case .int: steps.append(.one(.truncated))
    case .round: steps.append(.one(.rounded))
    case .min, .max: break
    }
  }

  /// `{A:3}` is bit 3 of A; 0 is the lowest.
  mutating func bitTest() throws(ExpressionError) {
    at += 1
    _ = peek()
    let place = at
    guard let offset = Self.byteOffset(word()) else {
      throw ExpressionError(offset: place, message: "a bit test needs a byte and a bit; write it as in {A:3}")
    }
    guard take(":") else { throw missing("\":\" and a bit, as in {A:3}") }
    _ = peek()
    guard at < bytes.count, bytes[at] &- UInt8(ascii: "0") < 8, at + 1 == bytes.count || !isDigit(bytes[at + 1]) else {
      throw ExpressionError(offset: at, message: "bit out of range; use bits 0 to 7")
    }
    let bit = bytes[at] &- UInt8(ascii: "0")
    at += 1
    guard take("}") else { throw missing("\"}\"") }
    readsReply = true
    try push(.bit(offset, bit))
  }

  /// Decimals with a point and an optional exponent; or hex digits after 0x.
  mutating func number() throws(ExpressionError) -> Double {
    let start = at
    var value: Double?
    if bytes[at] == UInt8(ascii: "0"), at + 1 < bytes.count, bytes[at + 1] | 0x20 == UInt8(ascii: "x") {
      at += 2
      let first = at
      while at < bytes.count, isHexDigit(bytes[at]) { at += 1 }
      value = UInt64(String(decoding: bytes[first..<at], as: UTF8.self), radix: 16).flatMap { $0 < 1 << 53 ? Double($0) : nil }
    } else {
      digits()
      if at < bytes.count, bytes[at] == dot {
        at += 1
        digits()
      }
      if at + 1 < bytes.count, bytes[at] | 0x20 == UInt8(ascii: "e") {
        let sign = bytes[at + 1] == UInt8(ascii: "-") || bytes[at + 1] == UInt8(ascii: "+") ? 1 : 0
        if at + 1 + sign < bytes.count, isDigit(bytes[at + 1 + sign]) {
          at += 2 + sign
          digits()
        }
      }
      // A number may begin or end with a point.
      if bytes[start..<at].contains(where: isDigit) {
        value = Double("0\(String(decoding: bytes[start..<at], as: UTF8.self))\(bytes[at - 1] == dot ? "0" : "")")
      }
    }
    guard let value, value.isFinite else {
      throw ExpressionError(offset: start, message: "not a valid number; write one as in 10, 0.5 or 0x1F")
    }
    return value
  }

  private mutating func digits() { while at < bytes.count, isDigit(bytes[at]) { at += 1 } }

  private mutating func word() -> String {
    let start = at
    while at < bytes.count, isLetter(bytes[at]) || isDigit(bytes[at]) || bytes[at] == UInt8(ascii: "_") { at += 1 }
    return String(decoding: bytes[start..<at], as: UTF8.self)
  }

  /// The offset of a byte name: A 0, Z 25, AA 26, ZZ 701.
  static func byteOffset(_ name: String) -> Int? {
    let letters = name.utf8.map { ($0 | 0x20) &- UInt8(ascii: "a") }
    guard letters.count == 1 || letters.count == 2, letters.allSatisfy({ $0 < 26 }), name.utf8.allSatisfy(isLetter) else { return nil }
    return letters.reduce(0) { $0 * 26 + Int($1) + 1 } - 1
  }

  /// The name of the byte at this offset.
  static func byteName(_ offset: Int) -> String? {
    guard (0...701).contains(offset) else { return nil }
    let letters = offset < 26 ? [offset] : [offset / 26 - 1, offset % 26]
    return String(decoding: letters.map { UInt8(ascii: "A") + UInt8($0) }, as: UTF8.self)
  }
}

extension ExpressionParser {
  /// The next character that is not blank; nil at the end.
  mutating func peek() -> UInt8? {
    while at < bytes.count, isBlank(bytes[at]) { at += 1 }
    return at < bytes.count ? bytes[at] : nil
  }

  /// Consumes this operator, unless a longer operator begins here.
  mutating func take(_ text: String) -> Bool {
    guard peek() != nil, bytes[at...].starts(with: text.utf8) else { return false }
    let longer = Self.operators.first { $0.utf8.count > text.utf8.count && $0.hasPrefix(text) && bytes[at...].starts(with: $0.utf8) }
    guard longer == nil else { return false }
    at += text.utf8.count
    return true
  }

  mutating func take(oneOf operators: [(String, Expression.Binary)]) -> Expression.Binary? {
    for (text, operation) in operators where take(text) { return operation }
    return nil
  }

  mutating func missing(_ what: String) -> ExpressionError {
    ExpressionError(offset: peek() == nil ? bytes.count : at, message: "\(what) is missing here; add it")
  }

  mutating func unexpected() -> ExpressionError {
    guard let byte = peek() else {
      return ExpressionError(offset: bytes.count, message: "a value is missing at the end; add it, or remove the operator")
    }
    let message =
      switch byte {
      case UInt8(ascii: ","): "a comma separates function arguments; write decimals with a point, as in 0.5"
      case UInt8(ascii: ")"), UInt8(ascii: "}"): "unmatched \"\(Character(UnicodeScalar(byte)))\"; remove it"
      case UInt8(ascii: "["): "other signals cannot be read; write the formula with bytes"
      case _ where isLetter(byte) || isDigit(byte) || byte == UInt8(ascii: "(") || byte == UInt8(ascii: "{"):
        "an operator is missing before this; add one of + - * / % << >> & | ^"
      case 0x21..<0x7F: "\"\(Character(UnicodeScalar(byte)))\" is not valid here; write a number, a byte, or ( and a formula"
      default: "invalid character; use only ASCII letters, digits and operators"
      }
    return ExpressionError(offset: at, message: message)
  }
}

func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- UInt8(ascii: "a") < 26 }
