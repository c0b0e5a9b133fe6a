// Splits a DBC file into words, numbers, texts and marks, with their lines. The file is untrusted: nothing is assumed about its order, its
// size or its encoding.

import Protocols

struct DBCToken: Equatable {
  enum Content: Equatable {
    case word(String)
    case number(String)
    /// The contents of a quoted text.
    case text(String)
    case mark(UInt8)
  }

  var content: Content
  var line: Int
  /// Whether it is the first one in its line.
  var isFirst: Bool
}

/// A mistake in a DBC file.
struct DBCError: Error, Equatable {
  var line: Int
  var message: String

  init(_ line: Int, _ message: String) { (self.line, self.message) = (line, message) }
}

struct DBCScanner {
  private let bytes: [UInt8]
  private let isUTF8: Bool
  private var position = 0
  private var line = 1
  private var isAtLineStart = true

  /// The maximum length of a quoted text, in bytes.
  private static let maxTextLength = 1 << 16

  /// Texts that are not UTF-8 are Windows-1252, as most tools write them.
  init(_ bytes: [UInt8]) {
    self.bytes = Self.withLineFeeds(bytes)
    isUTF8 = String(validating: bytes, as: UTF8.self) != nil
  }

  /// The bytes with lines that end with a line feed, instead of CR LF, or of CR as in files of old Macs.
  private static func withLineFeeds(_ bytes: [UInt8]) -> [UInt8] {
    guard bytes.contains(carriageReturn) else { return bytes }
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    var previous: UInt8 = 0
    for byte in bytes {
      if byte != lineFeed || previous != carriageReturn { result.append(byte == carriageReturn ? lineFeed : byte) }
      previous = byte
    }
    return result
  }

  /// The next token, or nil at the end of the file. After an error, the rest of the line is skipped.
  mutating func next() throws(DBCError) -> DBCToken? {
    skipBlanks()
    guard position < bytes.count else { return nil }
    let isFirst = isAtLineStart
    isAtLineStart = false
    let (start, first) = (line, bytes[position])
    let content: DBCToken.Content
    if first == UInt8(ascii: "\"") {
      content = .text(try text())
    } else if Self.isWord(first) {
      content = .word(string(take { Self.isWord($0) || isDigit($0) }))
    } else if isNumberStart(first) {
      content = .number(number())
    } else {
      position += 1
      content = .mark(first)
    }
    return DBCToken(content: content, line: start, isFirst: isFirst)
  }

  /// Skips to the end of the line.
  private mutating func skipLine() {
    while position < bytes.count, bytes[position] != lineFeed { position += 1 }
  }

  /// Skips the lines that have at most one word: the list after NS_, whose words are keywords of statements.
  mutating func skipSingleWords() {
    while position < bytes.count {
      let rest = bytes[position...].prefix { $0 != lineFeed }
      guard rest.count < 200, rest.split(whereSeparator: isBlank).count <= 1, rest.allSatisfy({ isBlank($0) || Self.isWord($0) }) else {
        return
      }
      position = min(rest.endIndex + 1, bytes.count)
      (line, isAtLineStart) = (line + 1, true)
    }
  }

  private mutating func skipBlanks() {
    while position < bytes.count {
      if bytes[position] == UInt8(ascii: "/"), position + 1 < bytes.count, bytes[position + 1] == UInt8(ascii: "/") {
        skipLine()
      } else if isBlank(bytes[position]) || bytes[position] == 0x1A {
        // 1A ends files of DOS.
        if bytes[position] == lineFeed { (line, isAtLineStart) = (line + 1, true) }
        position += 1
      } else {
        return
      }
    }
  }

  private mutating func take(_ isPart: (UInt8) -> Bool) -> ArraySlice<UInt8> {
    let start = position
    while position < bytes.count, isPart(bytes[position]) { position += 1 }
    return bytes[start..<position]
  }

  private static func isWord(_ byte: UInt8) -> Bool { isLetter(byte) || byte == UInt8(ascii: "_") || byte >= 0x80 }

  private func isNumberStart(_ byte: UInt8) -> Bool {
    if isDigit(byte) { return true }
    let isSign = byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+")
    guard isSign || byte == UInt8(ascii: "."), position + 1 < bytes.count else { return false }
    return isDigit(bytes[position + 1]) || (isSign && bytes[position + 1] == UInt8(ascii: "."))
  }

  private mutating func number() -> String {
    var digits: [UInt8] = []
    while position < bytes.count, digits.count < 64 {
      let byte = bytes[position]
      let isSign = byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+")
      let followsExponent = digits.last.map { $0 | 0x20 } == UInt8(ascii: "e")
      let isExponent = byte | 0x20 == UInt8(ascii: "e") && !digits.isEmpty
      guard isDigit(byte) || byte == UInt8(ascii: ".") || isExponent || isSign && (digits.isEmpty || followsExponent) else { break }
      digits.append(byte)
      position += 1
    }
    return String(decoding: digits, as: UTF8.self)
  }

  private mutating func text() throws(DBCError) -> String {
    let start = line
    position += 1
    var inside: [UInt8] = []
    var end = position
    while end < bytes.count, inside.count <= Self.maxTextLength {
      let byte = bytes[end]
      if byte == UInt8(ascii: "\"") {
        position = end + 1
        return string(inside[...])
      }
      if byte == UInt8(ascii: "\\"), end + 1 < bytes.count, bytes[end + 1] == UInt8(ascii: "\"") { end += 1 }
      if bytes[end] == lineFeed { line += 1 }
      inside.append(bytes[end])
      end += 1
    }
    // Only this line is unusable, not the rest of the file.
    line = start
    skipLine()
    throw DBCError(start, "the quoted text is not closed, or longer than 64 KiB; add \" at its end")
  }

  private func string(_ bytes: ArraySlice<UInt8>) -> String {
    if isUTF8 { return String(decoding: bytes, as: UTF8.self) }
    var text = ""
    for byte in bytes { text.unicodeScalars.append(Windows1252.scalar(byte)) }
    return text
  }
}

/// Windows-1252: Latin-1 with more characters in place of the control characters from 80 to 9F.
/// Source: Unicode, MAPPINGS/VENDORS/MICSFT/WINDOWS/CP1252.TXT.
private enum Windows1252 {
  /// The characters from 80 on; U+FFFD for the five bytes that have none.
  private static let extras = Array("€\u{FFFD}‚ƒ„…†‡ˆ‰Š‹Œ\u{FFFD}Ž\u{FFFD}\u{FFFD}‘’“”•–—˜™š›œ\u{FFFD}žŸ".unicodeScalars)

  static func scalar(_ byte: UInt8) -> Unicode.Scalar { (0x80..<0xA0).contains(byte) ? extras[Int(byte - 0x80)] : Unicode.Scalar(byte) }
}
