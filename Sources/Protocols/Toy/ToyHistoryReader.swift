// Parses a long history in pieces, so that other devices are not delayed: the server has no paging, and a history can be megabytes long. A
// scanner finds the facts in the list, and each fact is parsed separately. Invalid JSON outside the facts is tolerated.
// Source: neils95/Trivio, the controllers of Server/Trivio.

/// The server's response while it is being read.
struct ToyHistoryReader: Sendable {
  /// The maximum length of a response, in bytes.
  static let maxLength = 16 << 20
  /// The maximum length of a response that is parsed in one step, in bytes.
  static let maxAtOnce = 1 << 20
  /// The number of bytes that are parsed per turn of the event loop.
  static let pieceLength = 32 << 10
  private static let maxDepth = 32
  private static let listName = Array("triviaHistory".utf8)

  enum Step {
    case more
    case done([ToyFact])
    /// The response is not JSON, or contains no list of facts.
    case failed
  }

  private var body: [UInt8]
  /// The position of the next byte.
  private var next = 0
  /// The brackets that have not been closed yet, the outermost first.
  private var openBrackets: [UInt8] = []
  /// The opening quote of the string that is being scanned.
  private var stringStart: Int?
  /// Whether the next byte follows a backslash in a string.
  private var isEscaped = false
  /// The last string on the outermost level, without quotes: it may be the key of the list.
  private var lastKey = 0..<0
  /// The number of open brackets around a fact; nil until the list is found.
  private var listDepth: Int?
  private var isListComplete = false
  private var factStart = 0
  private var facts = ToyFactList()

  /// Creates a reader of this body.
  init(_ body: [UInt8]) { self.body = body }

  /// Reads the next piece.
  mutating func step() -> Step {
    let end = min(next + Self.pieceLength, body.count)
    while next < end {
      guard scan(body[next]) else { return .failed }
      next += 1
    }
    guard next == body.count else { return .more }
    body = []
    return openBrackets.isEmpty && stringStart == nil && listDepth != nil ? .done(facts.all) : .failed
  }

  /// Scans a byte, and parses the fact that it completes. Returns false if it is invalid at this position.
  private mutating func scan(_ byte: UInt8) -> Bool {
    if let start = stringStart {
      if isEscaped {
        isEscaped = false
      } else if byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else if byte == UInt8(ascii: "\"") {
        stringStart = nil
        if openBrackets.count == 1 { lastKey = start + 1..<next }
      }
      return true
    }
    switch byte {
    case UInt8(ascii: "\""): stringStart = next
    case UInt8(ascii: "["), UInt8(ascii: "{"):
      if byte == UInt8(ascii: "["), listDepth == nil,
        openBrackets.isEmpty || openBrackets.count == 1 && body[lastKey].elementsEqual(Self.listName)
      {
        listDepth = openBrackets.count + 1
      }
      if openBrackets.count == listDepth, !isListComplete { factStart = next }
      openBrackets.append(byte)
      return openBrackets.count <= Self.maxDepth
    case UInt8(ascii: "]"), UInt8(ascii: "}"):
      // In ASCII, the code of a closing bracket is the code of the opening bracket plus two.
      guard openBrackets.popLast() == byte - 2 else { return false }
      if let listDepth, openBrackets.count < listDepth { isListComplete = true }
      guard openBrackets.count == listDepth, !isListComplete, byte == UInt8(ascii: "}") else { return true }
      guard let node = JSONNode(untrusted: Array(body[factStart...next])) else { return false }
      if let fact = ToyFact(node) { facts.add(fact) }
    default: break
    }
    return true
  }
}

/// A list of facts; it contains only the last one of duplicate facts.
struct ToyFactList: Sendable {
  private(set) var all: [ToyFact] = []
  private var indices: [Int: Int] = [:]

  mutating func add(_ fact: ToyFact) {
    if let index = indices[fact.id] {
      all[index] = fact
    } else {
      indices[fact.id] = all.count
      all.append(fact)
    }
  }
}
