// Parser of formulas. Precedence, lowest first: ? :, ||, &&, comparisons (not chained), |, ^, &, shifts, + and -, * / and %, unary - ~ !.
// Bit operations bind more tightly than comparisons, unlike in C. Length, nesting and stack are bounded. An error contains its position and
// the remedy.

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
    self = try parser.parseExpression()
  }
}

struct ExpressionParser {
  let bytes: [UInt8]
  /// The offset of the next character.
  private(set) var position = 0
  private(set) var steps: [Expression.Step] = []
  /// The stack depth at this point of the program.
  private(set) var depth = 0
  private(set) var readsResponse = false
  private var nesting = 0
  private static let maxNesting = 40

  init(_ text: String) { bytes = Array(text.utf8) }

  mutating func parseExpression() throws(ExpressionError) -> Expression {
    guard bytes.count <= Expression.maxLength else {
      throw ExpressionError(offset: 0, message: "a formula has at most \(Expression.maxLength) characters; shorten it")
    }
    guard peek() != nil else { throw ExpressionError(offset: 0, message: "the formula is empty; write one, as in (A*256+B)/10") }
    try parseConditional()
    guard peek() == nil else { throw unexpected() }
    guard readsResponse else {
      throw ExpressionError(
        offset: 0, message: "the formula reads no byte of the response; use A for the first byte, then B to Z, AA to ZZ")
    }
    return Expression(steps: steps)
  }

  mutating func parseConditional() throws(ExpressionError) {
    try enterNesting()
    defer { nesting -= 1 }
    try parseLogicalOr()
    guard consume("?") else { return }
    let test = appendJumpIfZero()
    try parseConditional()
    guard consume(":") else { throw missing("\":\" and the other value") }
    let end = appendJump()
    setDestination(of: test)
    try parseConditional()
    setDestination(of: end)
  }

  /// Parses ||, whose right side is evaluated only if the left side is 0. The result is 1 or 0.
  private mutating func parseLogicalOr() throws(ExpressionError) {
    try parseLogicalAnd()
    while consume("||") {
      let test = appendJumpIfZero()
      try push(.number(1))
      let end = appendJump()
      setDestination(of: test)
      try parseLogicalAnd()
      steps += [.unary(.not), .unary(.not)]
      setDestination(of: end)
    }
  }

  /// Parses &&, whose right side is evaluated only if the left side is not 0. The result is 1 or 0.
  private mutating func parseLogicalAnd() throws(ExpressionError) {
    try parseComparison()
    while consume("&&") {
      let test = appendJumpIfZero()
      try parseComparison()
      steps += [.unary(.not), .unary(.not)]
      let end = appendJump()
      setDestination(of: test)
      try push(.number(0))
      setDestination(of: end)
    }
  }

  private mutating func parseComparison() throws(ExpressionError) {
    try parseBinary(level: 0)
    guard let operation = consume(oneOf: Self.comparisons) else {
      if peek() == UInt8(ascii: "=") { throw ExpressionError(offset: position, message: "= is not a comparison; write ==") }
      return
    }
    try parseBinary(level: 0)
    apply(operation)
    let next = position
    if consume(oneOf: Self.comparisons) != nil {
      throw ExpressionError(offset: next, message: "comparisons cannot be chained; write them separately, as in (1 < A) && (A < 9)")
    }
  }

  /// Parses the binary operators of this and of higher precedence.
  private mutating func parseBinary(level: Int) throws(ExpressionError) {
    guard level < Self.levels.count else { return try parseUnary() }
    try parseBinary(level: level + 1)
    while let operation = consume(oneOf: Self.levels[level]) {
      _ = peek()
      let (start, operandPosition) = (steps.count, position)
      try parseBinary(level: level + 1)
      if steps.count == start + 1, case .number(let constant) = steps[start] { try check(operation, by: constant, operandPosition) }
      apply(operation)
    }
  }

  /// Checks a constant second operand: rejects a division by zero, and invalid shifts.
  private func check(_ operation: Expression.Binary, by constant: Double, _ offset: Int) throws(ExpressionError) {
    switch operation {
    case .divide, .modulo: if constant == 0 { throw ExpressionError(offset: offset, message: "division by zero; write another divisor") }
    case .shiftLeft, .shiftRight:
      if Expression.shifts.allSatisfy({ Double($0) != constant }) {
        throw ExpressionError(offset: offset, message: "shift out of range; write 0 to 52 bits")
      }
    default: break
    }
  }

  private mutating func parseUnary() throws(ExpressionError) {
    try enterNesting()
    defer { nesting -= 1 }
    let operation: Expression.Unary
    switch peek() {
    case UInt8(ascii: "-"): operation = .negative
    case UInt8(ascii: "~"): operation = .complement
    case UInt8(ascii: "!"): operation = .not
    case UInt8(ascii: "+"):
      position += 1
      return try parseUnary()
    default: return try parsePrimary()
    }
    position += 1
    let start = steps.count
    try parseUnary()
    if operation == .negative, steps.count == start + 1, case .number(let constant) = steps[start] {
      steps[start] = .number(-constant)
    } else {
      steps.append(.unary(operation))
    }
  }

  private mutating func parsePrimary() throws(ExpressionError) {
    switch peek() {
    case UInt8(ascii: "("):
      position += 1
      try parseConditional()
      guard consume(")") else { throw missing("\")\"") }
    case UInt8(ascii: "{"): try parseBitTest()
    case let digit? where isDigit(digit) || digit == dot: try push(.number(try parseNumber()))
    case let letter? where isLetter(letter): try parseName()
    default: throw unexpected()
    }
  }

  private mutating func enterNesting() throws(ExpressionError) {
    nesting += 1
    guard nesting <= Self.maxNesting else {
      throw ExpressionError(offset: min(position, bytes.count), message: "nested too deeply; simplify the formula")
    }
  }
}

extension ExpressionParser {
  /// Appends a step that pushes one value.
  mutating func push(_ step: Expression.Step) throws(ExpressionError) {
    guard depth < Expression.maxDepth else {
      throw ExpressionError(
        offset: min(position, bytes.count), message: "the formula is too complex here; move parenthesised parts to the front")
    }
    steps.append(step)
    depth += 1
  }

  /// Appends an operation on the two topmost values.
  mutating func apply(_ operation: Expression.Binary) {
    steps.append(.binary(operation))
    depth -= 1
  }

  /// Appends a jump that is taken if the top of the stack is zero. Returns its index in `steps`; its destination is set later.
  private mutating func appendJumpIfZero() -> Int {
    steps.append(.jumpIfZero(to: 0))
    depth -= 1
    return steps.count - 1
  }

  /// Appends a jump past the other branch, which pushes its value in place of this one. Returns the jump's index in `steps`.
  private mutating func appendJump() -> Int {
    steps.append(.jump(to: 0))
    depth -= 1
    return steps.count - 1
  }

  /// Makes the next step the destination of a jump.
  private mutating func setDestination(of jump: Int) {
    if case .jumpIfZero = steps[jump] { steps[jump] = .jumpIfZero(to: steps.count) } else { steps[jump] = .jump(to: steps.count) }
  }
}

extension ExpressionParser {
  /// Parses a byte, a constant or a function call.
  mutating func parseName() throws(ExpressionError) {
    let start = position
    let word = parseWord()
    if let offset = Self.byteOffset(word) {
      readsResponse = true
      return try push(.byte(offset))
    }
    if let constant = Self.constants[word.lowercased()] { return try push(constant) }
    guard let function = Function(rawValue: word.lowercased()) else {
      throw ExpressionError(
        offset: start,
        message: "\"\(word.prefix(30))\" is neither a byte (A to Z, AA to ZZ) nor a function; use one of \(Function.names)")
    }
    try parseCall(function, start)
  }

  /// Parses the arguments of a function, whose name is at `start`.
  private mutating func parseCall(_ function: Function, _ start: Int) throws(ExpressionError) {
    guard consume("(") else { throw missing("\"(\" after \(function.rawValue)") }
    var count = 0
    repeat {
      if count > 0, [.signed16, .signed24, .signed32].contains(function) {
        try push(.number(256))
        apply(.multiply)
      }
      try parseConditional()
      count += 1
      guard count > 1 else { continue }
      switch function {
      case .signed16, .signed24, .signed32: apply(.add)
      case .min: apply(.minimum)
      case .max: apply(.maximum)
      case .signed, .signed8, .float32, .abs, .int, .round: break
      }
    } while consume(",")
    guard consume(")") else { throw missing("\",\" or \")\"") }
    guard function.accepts(count) else {
      throw ExpressionError(
        offset: start, message: "wrong number of arguments for \(function.rawValue): \(count); write \(function.argumentsText)")
    }
    try appendSteps(of: function, count, start)
  }

  /// Appends the steps after the arguments of a function.
  private mutating func appendSteps(of function: Function, _ count: Int, _ start: Int) throws(ExpressionError) {
    switch function {
    case .signed where count == 2:
      if case .number(let bits)? = steps.last, Expression.widths.allSatisfy({ Double($0) != bits }) {
        throw ExpressionError(offset: start, message: "width out of range; write 2 to 53 bits")
      }
      apply(.signed)
    case .signed, .signed8: steps.append(.unary(.signed(8)))
    case .signed16: steps.append(.unary(.signed(16)))
    case .signed24: steps.append(.unary(.signed(24)))
    case .signed32: steps.append(.unary(.signed(32)))
    case .float32:
      steps.append(.float32)
      depth -= 3
    case .abs: steps.append(.unary(.absolute))
    case .int: steps.append(.unary(.truncated))
    case .round: steps.append(.unary(.rounded))
    case .min, .max: break
    }
  }

  /// Parses a bit test: `{A:3}` is bit 3 of A; bit 0 is the least significant one.
  mutating func parseBitTest() throws(ExpressionError) {
    position += 1
    _ = peek()
    let start = position
    guard let offset = Self.byteOffset(parseWord()) else {
      throw ExpressionError(offset: start, message: "a bit test needs a byte and a bit; write it as in {A:3}")
    }
    guard consume(":") else { throw missing("\":\" and a bit, as in {A:3}") }
    _ = peek()
    guard position < bytes.count, bytes[position] &- UInt8(ascii: "0") < 8, position + 1 == bytes.count || !isDigit(bytes[position + 1])
    else {
      throw ExpressionError(offset: position, message: "bit out of range; use bits 0 to 7")
    }
    let bit = bytes[position] &- UInt8(ascii: "0")
    position += 1
    guard consume("}") else { throw missing("\"}\"") }
    readsResponse = true
    try push(.bit(offset, bit))
  }

  /// Parses a decimal number, with an optional point and exponent, or hex digits after 0x.
  mutating func parseNumber() throws(ExpressionError) -> Double {
    let start = position
    var value: Double?
    if bytes[position] == UInt8(ascii: "0"), position + 1 < bytes.count, bytes[position + 1] | 0x20 == UInt8(ascii: "x") {
      position += 2
      let first = position
      while position < bytes.count, isHexDigit(bytes[position]) { position += 1 }
      value = UInt64(String(decoding: bytes[first..<position], as: UTF8.self), radix: 16).flatMap { $0 < 1 << 53 ? Double($0) : nil }
    } else {
      skipDigits()
      if position < bytes.count, bytes[position] == dot {
        position += 1
        skipDigits()
      }
      if position + 1 < bytes.count, bytes[position] | 0x20 == UInt8(ascii: "e") {
        let sign = bytes[position + 1] == UInt8(ascii: "-") || bytes[position + 1] == UInt8(ascii: "+") ? 1 : 0
        if position + 1 + sign < bytes.count, isDigit(bytes[position + 1 + sign]) {
          position += 2 + sign
          skipDigits()
        }
      }
      // A number may begin or end with a decimal point, which Double does not accept.
      if bytes[start..<position].contains(where: isDigit) {
        value = Double("0\(String(decoding: bytes[start..<position], as: UTF8.self))\(bytes[position - 1] == dot ? "0" : "")")
      }
    }
    guard let value, value.isFinite else {
      throw ExpressionError(offset: start, message: "not a valid number; write one as in 10, 0.5 or 0x1F")
    }
    return value
  }

  private mutating func skipDigits() { while position < bytes.count, isDigit(bytes[position]) { position += 1 } }

  private mutating func parseWord() -> String {
    let start = position
    while position < bytes.count, isLetter(bytes[position]) || isDigit(bytes[position]) || bytes[position] == UInt8(ascii: "_") {
      position += 1
    }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  /// The offset of the byte with this name: A 0, Z 25, AA 26, ZZ 701; nil if it names no byte.
  static func byteOffset(_ name: String) -> Int? {
    let letters = name.utf8.map { ($0 | 0x20) &- UInt8(ascii: "a") }
    guard letters.count == 1 || letters.count == 2, letters.allSatisfy({ $0 < 26 }), name.utf8.allSatisfy(isLetter) else { return nil }
    return letters.reduce(0) { $0 * 26 + Int($1) + 1 } - 1
  }

  /// The name of the byte at this offset; nil if it is above 701.
  static func byteName(_ offset: Int) -> String? {
    guard (0...701).contains(offset) else { return nil }
    let letters = offset < 26 ? [offset] : [offset / 26 - 1, offset % 26]
    return String(decoding: letters.map { UInt8(ascii: "A") + UInt8($0) }, as: UTF8.self)
  }
}

extension ExpressionParser {
  /// Skips blanks, and returns the next character without consuming it; nil at the end.
  mutating func peek() -> UInt8? {
    while position < bytes.count, isBlank(bytes[position]) { position += 1 }
    return position < bytes.count ? bytes[position] : nil
  }

  /// Consumes this operator, unless a longer operator begins here.
  mutating func consume(_ text: String) -> Bool {
    guard peek() != nil, bytes[position...].starts(with: text.utf8) else { return false }
    let longer = Self.operators.first { $0.utf8.count > text.utf8.count && $0.hasPrefix(text) && bytes[position...].starts(with: $0.utf8) }
    guard longer == nil else { return false }
    position += text.utf8.count
    return true
  }

  /// Consumes one of these operators if it is next.
  mutating func consume(oneOf operators: [(String, Expression.Binary)]) -> Expression.Binary? {
    for (text, operation) in operators where consume(text) { return operation }
    return nil
  }

  /// The error for a missing token.
  mutating func missing(_ what: String) -> ExpressionError {
    ExpressionError(offset: peek() == nil ? bytes.count : position, message: "\(what) is missing here; add it")
  }

  /// The error for the next character.
  mutating func unexpected() -> ExpressionError {
    guard let byte = peek() else {
      return ExpressionError(offset: bytes.count, message: "a value is missing at the end; add it, or remove the operator")
    }
    let message =
      switch byte {
      case UInt8(ascii: ","): "a comma separates function arguments; write decimals with a point, as in 0.5"
      case UInt8(ascii: ")"), UInt8(ascii: "}"): "unmatched \"\(Character(UnicodeScalar(byte)))\"; remove it"
      case UInt8(ascii: "["): "a formula cannot use other signals; write it with data bytes, as in A*256+B"
      case _ where isLetter(byte) || isDigit(byte) || byte == UInt8(ascii: "(") || byte == UInt8(ascii: "{"):
        "an operator is missing before this; add one of + - * / % << >> & | ^"
      case 0x21..<0x7F: "\"\(Character(UnicodeScalar(byte)))\" is not valid here; write a number, a byte, or ( and a formula"
      default: "invalid character; use only ASCII letters, digits and operators"
      }
    return ExpressionError(offset: position, message: message)
  }
}
