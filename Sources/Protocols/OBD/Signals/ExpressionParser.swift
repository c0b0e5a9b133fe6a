// Parser of formulas. Precedence, lowest first: ? :, ||, &&, comparisons (not chained), |, ^, &, shifts, + and -, * / and %, unary - ~ !.
// Bit operations bind more tightly than comparisons, unlike in C. Length, nesting and stack are bounded. An error contains its position and
// what to do.

/// An error in a formula: the offset in bytes, and the message with the remedy.
struct ExpressionError: Error, Equatable {
  let offset: Int
  let message: String
}

extension Expression {
  static let maxLength = 1000

  /// Parses a formula.
  init(_ text: String) throws(ExpressionError) {
    var parser = ExpressionParser(text)
    self = try parser.expression()
  }
}

struct ExpressionParser {
  let bytes: [UInt8]
  private(set) var at = 0
  private(set) var steps: [Expression.Step] = []
  /// The stack depth at this point of the program.
  private(set) var depth = 0
  private(set) var readsReply = false
  private var nesting = 0
  private static let deepestNesting = 40

  init(_ text: String) { bytes = Array(text.utf8) }

  mutating func expression() throws(ExpressionError) -> Expression {
    guard bytes.count <= Expression.maxLength else {
      throw ExpressionError(offset: 0, message: "a formula has at most \(Expression.maxLength) characters; shorten it")
    }
    guard peek() != nil else { throw ExpressionError(offset: 0, message: "the formula is empty; write one, as in (A*256+B)/10") }
    try conditional()
    guard peek() == nil else { throw unexpected() }
    guard readsReply else {
      throw ExpressionError(
        offset: 0, message: "the formula reads no byte of the response; use A for the first byte, then B to Z, AA to ZZ")
    }
    return Expression(steps: steps)
  }

  mutating func conditional() throws(ExpressionError) {
    try enter()
    defer { nesting -= 1 }
    try either()
    guard take("?") else { return }
    let test = skipIfZero()
    try conditional()
    guard take(":") else { throw missing("\":\" and the other value") }
    let end = skip()
    land(test)
    try conditional()
    land(end)
  }

  /// Parses || or &&, whose right side is evaluated only if the left side does not decide the result.
  private mutating func either() throws(ExpressionError) {
    try both()
    while take("||") {
      let test = skipIfZero()
      try push(.number(1))
      let end = skip()
      land(test)
      try both()
      steps += [.one(.not), .one(.not)]
      land(end)
    }
  }

  private mutating func both() throws(ExpressionError) {
    try comparison()
    while take("&&") {
      let test = skipIfZero()
      try comparison()
      steps += [.one(.not), .one(.not)]
      let end = skip()
      land(test)
      try push(.number(0))
      land(end)
    }
  }

  private mutating func comparison() throws(ExpressionError) {
    try binary(level: 0)
    guard let operation = take(oneOf: Self.comparisons) else {
      if peek() == UInt8(ascii: "=") { throw ExpressionError(offset: at, message: "= is not a comparison; write ==") }
      return
    }
    try binary(level: 0)
    apply(operation)
    let next = at
    if take(oneOf: Self.comparisons) != nil {
      throw ExpressionError(offset: next, message: "comparisons cannot be chained; write them separately, as in (1 < A) && (A < 9)")
    }
  }

  private mutating func binary(level: Int) throws(ExpressionError) {
    guard level < Self.levels.count else { return try unary() }
    try binary(level: level + 1)
    while let operation = take(oneOf: Self.levels[level]) {
      _ = peek()
      let (start, place) = (steps.count, at)
      try binary(level: level + 1)
      if steps.count == start + 1, case .number(let constant) = steps[start] { try check(operation, by: constant, place) }
      apply(operation)
    }
  }

  /// Checks a constant second operand: rejects a division by zero, and invalid shifts and widths.
  private func check(_ operation: Expression.Binary, by constant: Double, _ place: Int) throws(ExpressionError) {
    switch operation {
    case .over, .modulo: if constant == 0 { throw ExpressionError(offset: place, message: "division by zero; write another divisor") }
    case .shiftLeft, .shiftRight:
      if Expression.shifts.allSatisfy({ Double($0) != constant }) {
        throw ExpressionError(offset: place, message: "shift out of range; write 0 to 52 bits")
      }
    default: break
    }
  }

  private mutating func unary() throws(ExpressionError) {
    try enter()
    defer { nesting -= 1 }
    let operation: Expression.Unary
    switch peek() {
    case UInt8(ascii: "-"): operation = .negative
    case UInt8(ascii: "~"): operation = .complement
    case UInt8(ascii: "!"): operation = .not
    case UInt8(ascii: "+"):
      at += 1
      return try unary()
    default: return try primary()
    }
    at += 1
    let start = steps.count
    try unary()
    if operation == .negative, steps.count == start + 1, case .number(let constant) = steps[start] {
      steps[start] = .number(-constant)
    } else {
      steps.append(.one(operation))
    }
  }

  private mutating func primary() throws(ExpressionError) {
    switch peek() {
    case UInt8(ascii: "("):
      at += 1
      try conditional()
      guard take(")") else { throw missing("\")\"") }
    case UInt8(ascii: "{"): try bitTest()
    case let digit? where isDigit(digit) || digit == dot: try push(.number(try number()))
    case let letter? where isLetter(letter): try name()
    default: throw unexpected()
    }
  }

  private mutating func enter() throws(ExpressionError) {
    nesting += 1
    guard nesting <= Self.deepestNesting else {
      throw ExpressionError(offset: min(at, bytes.count), message: "nested too deeply; simplify the formula")
    }
  }
}

extension ExpressionParser {
  mutating func push(_ step: Expression.Step) throws(ExpressionError) {
    guard depth < Expression.deepest else {
      throw ExpressionError(
        offset: min(at, bytes.count), message: "the formula is too complex here; move parenthesised parts to the front")
    }
    steps.append(step)
    depth += 1
  }

  mutating func apply(_ operation: Expression.Binary) {
    steps.append(.two(operation))
    depth -= 1
  }

  /// Appends a jump that is taken if the top of the stack is zero. Returns its position; its destination is set later.
  private mutating func skipIfZero() -> Int {
    steps.append(.skipIfZero(to: 0))
    depth -= 1
    return steps.count - 1
  }

  /// Sets the destination of a jump; the stack depth continues from there.
  private mutating func skip() -> Int {
    steps.append(.skip(to: 0))
    depth -= 1
    return steps.count - 1
  }

  private mutating func land(_ jump: Int) {
    if case .skipIfZero = steps[jump] { steps[jump] = .skipIfZero(to: steps.count) } else { steps[jump] = .skip(to: steps.count) }
  }
}

extension ExpressionParser {
  mutating func name() throws(ExpressionError) {
    let place = at
    let word = word()
    if let offset = Self.byteOffset(word) {
      readsReply = true
      return try push(.byte(offset))
    }
    if let constant = Self.constants[word.lowercased()] { return try push(constant) }
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

  /// Parses a bit test: `{A:3}` is bit 3 of A; bit 0 is the least significant one.
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

  /// Parses a decimal number, with an optional point and exponent, or hex digits after 0x.
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
  /// The next character that is not blank, or nil at the end.
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
