// A long history, read in pieces so that nothing else waits for it: the server has no paging, and who has played for years gets
// megabytes. A scanner finds the facts of the list one after the other, and each is read by itself. It is lenient outside them.
// Facts: protocols of the Trivia toy, §B, call 3.

/// The server's answer while it is read.
struct ToyHistoryReader: Sendable {
  /// The longest answer, in bytes.
  static let maxLength = 16 << 20
  /// An answer up to this length is read at once.
  static let maxAtOnce = 1 << 20
  /// Bytes that are read in one turn.
  static let pieceLength = 32 << 10
  private static let maxDepth = 32
  private static let listName = Array("triviaHistory".utf8)

  enum Step {
    case more
    case done([ToyFact])
    /// It is no JSON, or holds no list of facts.
    case failed
  }

  private var body: [UInt8]
  private var next = 0
  /// The brackets that are open.
  private var open: [UInt8] = []
  /// Where the string began that is open, or the last one on the outermost level, which may name the list.
  private var string: Int?
  private var isEscaped = false
  private var name = 0..<0
  /// How many brackets are open around a fact, once the list was found.
  private var listDepth: Int?
  private var isListOver = false
  private var factStart = 0
  private var facts = ToyFactList()

  /// Reads this body.
  init(_ body: [UInt8]) { self.body = body }

  /// Reads the next piece.
  mutating func step() -> Step {
    let end = min(next + Self.pieceLength, body.count)
    while next < end {
      guard take(body[next]) else { return .failed }
      next += 1
    }
    guard next == body.count else { return .more }
    body = []
    return open.isEmpty && string == nil && listDepth != nil ? .done(facts.all) : .failed
  }

  /// Takes a byte; false where it cannot stand here.
  private mutating func take(_ byte: UInt8) -> Bool {
    if let start = string {
      if isEscaped {
        isEscaped = false
      } else if byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else if byte == UInt8(ascii: "\"") {
        string = nil
        if open.count == 1 { name = start + 1..<next }
      }
      return true
    }
    switch byte {
    case UInt8(ascii: "\""): string = next
    case UInt8(ascii: "["), UInt8(ascii: "{"):
      if byte == UInt8(ascii: "["), listDepth == nil, open.isEmpty || open.count == 1 && body[name].elementsEqual(Self.listName) {
        listDepth = open.count + 1
      }
      if open.count == listDepth, !isListOver { factStart = next }
      open.append(byte)
      return open.count <= Self.maxDepth
    case UInt8(ascii: "]"), UInt8(ascii: "}"):
      // In ASCII the closing bracket stands two places behind the opening one.
      guard open.popLast() == byte - 2 else { return false }
      if let listDepth, open.count < listDepth { isListOver = true }
      guard open.count == listDepth, !isListOver, byte == UInt8(ascii: "}") else { return true }
      guard let node = JSONNode(foreign: Array(body[factStart...next])) else { return false }
      if let fact = ToyFact(node) { facts.add(fact) }
    default: break
    }
    return true
  }
}

/// Facts, each once, the last word counting.
struct ToyFactList: Sendable {
  private(set) var all: [ToyFact] = []
  private var places: [Int: Int] = [:]

  mutating func add(_ fact: ToyFact) {
    if let place = places[fact.id] {
      all[place] = fact
    } else {
      places[fact.id] = all.count
      all.append(fact)
    }
  }
}

/// A long history on its way from the server's answer to whoever asked, a piece in each turn.
struct ToyLongHistory: Sendable {
  /// Facts in one step.
  static let stepLength = 200

  let command: CommandID
  let user: Int
  /// The one that is asked for; nil: all.
  let fact: Int?
  var reader: ToyHistoryReader
  /// Once they are read; those up to `rest` are told as steps, from `next` on, and the others with the last report.
  var facts: [ToyFact] = []
  var next = 0
  var rest: Int?

  init(command: CommandID, user: Int, fact: Int?, body: [UInt8]) {
    (self.command, self.user, self.fact, reader) = (command, user, fact, ToyHistoryReader(body))
  }
}
