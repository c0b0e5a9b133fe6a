// Parses a DBC file: messages, signals, multiplexing, value tables, comments, cycle times. A statement with a mistake is skipped, and
// reported with its line and the remedy; the others are read.
// Source: Vector, DBC File Format Documentation 1.0.5.

import Protocols

/// A signal as in a DBC file.
struct DBCSignal {
  enum Multiplexing: Equatable {
    case none
    /// `M`: selects signals.
    case selector
    /// `m3`, or `m3M` if it selects signals as well.
    case selected(UInt64, isSelector: Bool)

    var isSelector: Bool {
      switch self {
      case .none: false
      case .selector: true
      case .selected(_, let isSelector): isSelector
      }
    }
  }

  var name: String
  var line: Int
  var multiplexing: Multiplexing
  var field: CANBitField
  var factor: Double
  var offset: Double
  var minimum: Double
  var maximum: Double
  var unit: String
  var isFloat = false
  /// The values of another multiplexer than the message's only one (SG_MUL_VAL_).
  var selection: (selector: String, ranges: [ClosedRange<UInt64>])?
  var labels: [(Int, String)] = []
  var comment: String?
  /// The whole name, if the statement shortens it to 32 characters.
  var longName: String?
}

/// A message as in a DBC file.
struct DBCMessage {
  var identifier: CANIdentifier
  /// Whether the identifier is taken for one of 29 bits because it does not fit into 11, although the file does not say so.
  var isAssumed29Bit = false
  var name: String
  var line: Int
  /// The number of bytes.
  var length: Int
  var signals: [DBCSignal] = []
  /// In ms; nil if the file does not give it.
  var cycleTime: Double?
  var longName: String?
}

struct DBCFile {
  private(set) var messages: [DBCMessage] = []
  /// The mistakes, in the order of their lines.
  private(set) var errors: [DBCError] = []
  /// Whether reading stopped because of too many mistakes.
  private(set) var isAbandoned = false

  /// The position of each message by the number in the file, and of its signals by name.
  private var positions: [UInt64: (message: Int, signals: [String: Int])] = [:]
  private var identifiers: Set<CANIdentifier> = []
  private var defaultCycleTime: Double?
  private var scanner: DBCScanner
  /// The next token.
  private var token: DBCToken?
  /// The line in which the current statement begins.
  private var statementLine = 0
  /// The number of the message to which signals belong; nil: to a message that could not be read.
  private var openMessage: UInt64?
  private var signalCount = 0

  private static let maxErrors = 500
  private static let (maxMessages, maxSignals, maxRanges) = (20_000, 50_000, 1000)
  /// The number of the pseudo message for signals without a message.
  private static let orphans: UInt64 = 0xC000_0000
  /// The bit in the number of a message that says that its identifier has 29 bits.
  private static let extended: UInt64 = 0x8000_0000
  /// The words that begin a statement.
  private static let keywords: Set<String> = [
    "VERSION", "NS_", "BS_", "BU_", "BO_", "SG_", "EV_", "VAL_", "VAL_TABLE_", "BO_TX_BU_", "ENVVAR_DATA_", "SGTYPE_", "SIG_GROUP_", "CM_",
    "BA_DEF_", "BA_", "BA_DEF_DEF_", "BA_DEF_REL_", "BA_REL_", "BA_DEF_DEF_REL_", "SIG_VALTYPE_", "SG_MUL_VAL_", "SIGTYPE_VALTYPE_",
    "SIG_TYPE_REF_", "CAT_DEF_", "CAT_", "FILTER", "BA_DEF_SGTYPE_", "BA_SGTYPE_", "BU_SG_REL_", "BU_EV_REL_", "BU_BO_REL_",
  ]

  /// Whether a file begins as a DBC file does.
  static func isDBC(_ bytes: [UInt8]) -> Bool {
    var scanner = DBCScanner(Array(bytes.prefix(4096)))
    guard let token = (try? scanner.next()) ?? nil, case .word(let word) = token.content else { return false }
    return keywords.contains(word)
  }

  init(_ bytes: [UInt8]) {
    scanner = DBCScanner(bytes)
    var hasFailed = false
    while errors.count < Self.maxErrors {
      do throws(DBCError) {
        if hasFailed { try resume() } else { try advance() }
        while token != nil { try readStatement() }
        break
      } catch {
        errors.append(error)
        hasFailed = true
      }
    }
    isAbandoned = errors.count >= Self.maxErrors
    positions = [:]
    for index in messages.indices where messages[index].cycleTime == nil { messages[index].cycleTime = defaultCycleTime }
  }

  /// Skips the rest of a statement with a mistake.
  private mutating func resume() throws(DBCError) {
    if startsStatement, let line = token?.line, line > statementLine { return }
    repeat { try advance() } while token != nil && !startsStatement
  }

  private var startsStatement: Bool {
    if let token, token.isFirst, case .word(let word) = token.content { Self.keywords.contains(word) } else { false }
  }

  // MARK: Statements

  private mutating func readStatement() throws(DBCError) {
    guard let token else { return }
    statementLine = token.line
    guard case .word(let keyword) = token.content, Self.keywords.contains(keyword) else {
      throw DBCError(token.line, "not a statement of a DBC file; remove it, or comment it out with //")
    }
    try advance()
    switch keyword {
    case "BO_": try readMessage()
    case "SG_": try readSignal()
    case "NS_":
      if self.token?.content == .mark(UInt8(ascii: ":")) { scanner.skipSingleWords() }
      try skipToStatement()
    case "CM_": try readComment()
    case "VAL_": try readLabels()
    case "SIG_VALTYPE_": try readValueType()
    case "SG_MUL_VAL_": try readSelection()
    case "BA_": try readAttribute()
    case "BA_DEF_DEF_": try readDefault()
    default: try skipToStatement()
    }
  }

  private mutating func readMessage() throws(DBCError) {
    openMessage = nil
    let line = statementLine
    let number = try integer("the number of the message")
    let name = try word("the name of the message")
    try mark(":")
    let length = try integer("the length of the message in bytes")
    try skipToStatement()
    guard number != Self.orphans else { return }
    guard let identifier = Self.identifier(number) else {
      throw DBCError(line, "\(number) is not the number of a message; use the identifier, plus 2147483648 if it has 29 bits")
    }
    guard identifiers.insert(identifier).inserted else {
      throw DBCError(line, "message \(number) is already defined; remove one of the two")
    }
    guard messages.count < Self.maxMessages else { throw DBCError(line, "more than \(Self.maxMessages) messages; split the file") }
    positions[number] = (messages.count, [:])
    messages.append(
      DBCMessage(
        identifier: identifier, isAssumed29Bit: identifier.is29Bit && number & Self.extended == 0, name: name, line: line,
        length: Int(clamping: length)))
    openMessage = number
  }

  private static func identifier(_ number: UInt64) -> CANIdentifier? {
    let identifier = number & ~extended
    guard identifier <= 0x1FFF_FFFF else { return nil }
    return CANIdentifier(number: UInt32(identifier), is29Bit: number & extended != 0 || identifier > 0x7FF)
  }

  private mutating func readSignal() throws(DBCError) {
    let line = statementLine
    guard let number = openMessage, let message = positions[number]?.message else { return try skipToStatement() }
    let name = try word("the name of the signal")
    let multiplexing = try multiplexing()
    try mark(":")
    let start = try integer("the start bit")
    try mark("|")
    let length = try integer("the length in bits")
    try mark("@")
    let order = try integer("the byte order, 0 or 1")
    let isSigned: Bool
    switch token?.content {
    case .mark(UInt8(ascii: "+")): isSigned = false
    case .mark(UInt8(ascii: "-")): isSigned = true
    default: throw expected("+ (unsigned) or - (signed) after the byte order")
    }
    try advance()
    try mark("(")
    let factor = try decimal("the factor")
    try mark(",")
    let offset = try decimal("the offset")
    try mark(")")
    try mark("[")
    let minimum = try decimal("the minimum")
    try mark("|")
    let maximum = try decimal("the maximum")
    try mark("]")
    let unit = try text("the unit in quotes")
    try skipToStatement()
    guard order <= 1 else { throw DBCError(line, "\(name): unknown byte order \(order); write 1 (Intel) or 0 (Motorola)") }
    guard length > 0 else { throw DBCError(line, "\(name): the signal has no bits; correct its length") }
    let limit = messages[message].length
    let field = CANBitField(start: Int(clamping: start), length: Int(clamping: length), isLittleEndian: order == 1, isSigned: isSigned)
    guard let field, field.minCount <= limit else {
      let reason = limit > CANFrame.maxCount ? "only classical CAN with 8 bytes is supported" : "correct them, or the length of the message"
      let room = min(limit, CANFrame.maxCount)
      throw DBCError(line, "\(name): bits \(start)|\(length) are not within the \(room) bytes of the message; \(reason)")
    }
    guard positions[number]?.signals[name] == nil else { throw DBCError(line, "signal \(name) is already defined; remove one of the two") }
    signalCount += 1
    guard signalCount <= Self.maxSignals else { throw DBCError(line, "more than \(Self.maxSignals) signals; split the file") }
    positions[number]?.signals[name] = messages[message].signals.count
    messages[message].signals.append(
      DBCSignal(
        name: name, line: line, multiplexing: multiplexing, field: field, factor: factor, offset: offset, minimum: minimum,
        maximum: maximum, unit: unit))
  }

  /// `M`, `m3`, `m3M`, or nothing before the colon.
  private mutating func multiplexing() throws(DBCError) -> DBCSignal.Multiplexing {
    guard let token, case .word(let word) = token.content else { return .none }
    try advance()
    if word == "M" { return .selector }
    let isSelector = word.hasSuffix("M")
    let digits = word.dropFirst().dropLast(isSelector ? 1 : 0)
    guard word.hasPrefix("m"), let value = UInt64(digits) else {
      throw DBCError(token.line, "\(Self.shown(word)) is not a multiplexer indicator; write M, m0 or m0M before the colon")
    }
    return .selected(value, isSelector: isSelector)
  }

  private mutating func readComment() throws(DBCError) {
    guard case .word(let object)? = token?.content, object == "SG_" else { return try skipToStatement() }
    try advance()
    let position = try signal()
    let comment = try text("the comment in quotes")
    try endStatement()
    if let position { messages[position.message].signals[position.signal].comment = comment }
  }

  private mutating func readLabels() throws(DBCError) {
    // Otherwise these are the values of an environment variable.
    guard case .number? = token?.content else { return try skipToStatement() }
    let position = try signal()
    var labels: [(Int, String)] = []
    while let next = token, next.content != .mark(UInt8(ascii: ";")) {
      let value = try decimal("a value, or ; at the end of the statement")
      let label = try text("the text of the value in quotes")
      if let whole = Int(exactly: value) { labels.append((whole, label)) }
    }
    try endStatement()
    if let position { messages[position.message].signals[position.signal].labels = labels }
  }

  private mutating func readValueType() throws(DBCError) {
    let position = try signal()
    if token?.content == .mark(UInt8(ascii: ":")) { try advance() }
    let type = try integer("the type of the value, 0 to 3")
    try endStatement()
    guard let position, type == 1 || type == 2 else { return }
    let signal = messages[position.message].signals[position.signal]
    guard signal.field.length == (type == 1 ? 32 : 64) else {
      let bits = "\(signal.field.length) bits, not \(type == 1 ? 32 : 64)"
      throw DBCError(statementLine, "\(signal.name) has \(bits); correct its length, or the type of its value")
    }
    messages[position.message].signals[position.signal].isFloat = true
  }

  private mutating func readSelection() throws(DBCError) {
    let position = try signal()
    let selector = try word("the name of the multiplexer")
    var ranges: [ClosedRange<UInt64>] = []
    while let next = token, next.content != .mark(UInt8(ascii: ";")) {
      if next.content == .mark(UInt8(ascii: ",")) { try advance() }
      let low = try integer("a value of the multiplexer")
      // The scanner reads the end of 3-5 as a negative number.
      if token?.content == .mark(UInt8(ascii: "-")) { try advance() }
      let high = UInt64(exactly: abs(try decimal("the end of the range, as in 3-5"))) ?? .max
      guard low <= high, ranges.count < Self.maxRanges else {
        throw DBCError(next.line, "\(low)-\(high) is not a range of a multiplexer; write it as in 3-5")
      }
      ranges.append(low...high)
    }
    try endStatement()
    if let position { messages[position.message].signals[position.signal].selection = (selector, ranges) }
  }

  private mutating func readAttribute() throws(DBCError) {
    let attribute = try text("the name of the attribute in quotes")
    guard case .word(let object)? = token?.content else { return try skipToStatement() }
    switch (attribute, object) {
    case ("GenMsgCycleTime", "BO_"):
      try advance()
      let number = try integer("the number of the message")
      let time = try decimal("the cycle time in ms")
      if let position = positions[number]?.message { messages[position].cycleTime = time }
    case ("SystemMessageLongSymbol", "BO_"):
      try advance()
      let number = try integer("the number of the message")
      let name = try text("the whole name in quotes")
      if let position = positions[number]?.message { messages[position].longName = name }
    case ("SystemSignalLongSymbol", "SG_"):
      try advance()
      let position = try signal()
      let name = try text("the whole name in quotes")
      if let position { messages[position.message].signals[position.signal].longName = name }
    default: return try skipToStatement()
    }
    try endStatement()
  }

  private mutating func readDefault() throws(DBCError) {
    let attribute = try text("the name of the attribute in quotes")
    guard attribute == "GenMsgCycleTime" else { return try skipToStatement() }
    defaultCycleTime = try decimal("the default cycle time in ms")
    try endStatement()
  }

  // MARK: Parts of statements

  private mutating func advance() throws(DBCError) { token = try scanner.next() }

  private mutating func skipToStatement() throws(DBCError) {
    while token != nil, !startsStatement { try advance() }
  }

  private mutating func endStatement() throws(DBCError) {
    guard token?.content == .mark(UInt8(ascii: ";")) else { throw expected("; at the end of the statement") }
    try advance()
  }

  /// A message number and the name of a signal; nil if the file has no such signal, as in files that were shortened.
  private mutating func signal() throws(DBCError) -> (message: Int, signal: Int)? {
    let number = try integer("the number of the message")
    let name = try word("the name of the signal")
    guard let position = positions[number], let signal = position.signals[name] else { return nil }
    return (position.message, signal)
  }

  private mutating func word(_ what: String) throws(DBCError) -> String {
    guard case .word(let word)? = token?.content else { throw expected(what) }
    try advance()
    return word
  }

  private mutating func text(_ what: String) throws(DBCError) -> String {
    guard case .text(let text)? = token?.content else { throw expected(what) }
    try advance()
    return text
  }

  private mutating func decimal(_ what: String) throws(DBCError) -> Double {
    guard case .number(let digits)? = token?.content, let number = Double(digits), number.isFinite else { throw expected(what) }
    try advance()
    return number
  }

  private mutating func integer(_ what: String) throws(DBCError) -> UInt64 {
    guard case .number(let digits)? = token?.content, let number = UInt64(digits) else { throw expected(what) }
    try advance()
    return number
  }

  private mutating func mark(_ mark: Unicode.Scalar) throws(DBCError) {
    guard token?.content == .mark(UInt8(ascii: mark)) else { throw expected(String(mark)) }
    try advance()
  }

  private func expected(_ what: String) -> DBCError {
    guard let token else { return DBCError(statementLine, "the file ends within this statement; expected \(what)") }
    let found =
      switch token.content {
      case .word(let text), .number(let text): Self.shown(text)
      case .text(let text): "\"\(Self.shown(text))\""
      case .mark(let mark): Self.shown(String(Unicode.Scalar(mark)))
      }
    return DBCError(token.line, "expected \(what), not \(found)")
  }

  private static func shown(_ text: String) -> String { visible(text, limit: 40) }
}
