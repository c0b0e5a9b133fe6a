// Parser of formulas. Precedence, lowest first: ? :, ||, &&, comparisons (not chained), |, ^, &, shifts, + and -, * / and %, unary - ~ !.
// Bit operations bind closer than comparisons, unlike in C. Length, nesting and stack are bounded; errors give position and remedy.

/// An error in a formula: the offset in bytes, and the message with the remedy.
struct ExpressionError: Error, Equatable {
  var offset: Int
  var message: String
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
  var at = 0
  var steps: [Expression.Step] = []
  /// The stack depth at this point of the program.
  var depth = 0
  var readsReply = false
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

  /// The right side of || and && is evaluated only if it matters.
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

  /// Checks what is known before any response.
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

  /// Jumps if the value on top is zero; patched to its destination later.
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
