// Texts to and from the car. What a person sends must not look like a mark of the protocol, and what the car sends must not
// steer a terminal: escape sequences and control characters are taken out, and every text has an end.

enum CarText {
  /// Why a text cannot be sent, or nil where it can. The car knows no way to write a mark inside a text.
  static func refusal(_ text: String) -> String? {
    let bytes = Array(text.utf8)
    if bytes.isEmpty { return "there is nothing in it" }
    if bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) { return "it has a control character or a line end; write it in one line" }
    if bytes.contains(where: { $0 > 0x7F }) { return "it has a character that is not ASCII, and the car knows nothing else" }
    if bytes[...].firstIndex(of: CarFrame.bodyMark) != nil { return "it has #$# in it, which begins the body of a message" }
    // An end that begins the mark would end the message too early.
    if (bytes + CarFrame.endMark)[...].firstIndex(of: CarFrame.endMark) != bytes.count {
      return "it has %^% in it, or ends with %^: that ends a message"
    }
    let frame = CarWord.message(text).frame(.asBuilt)
    if frame.count > CarFrame.longest { return "it is \(frame.count - CarFrame.longest) characters too long" }
    return nil
  }

  /// What the car says, for people: without escape sequences and control characters, at most so many characters.
  static func clean(_ bytes: ArraySlice<UInt8>, limit: Int) -> String {
    var rest = bytes[...]
    var plain: [UInt8] = []
    while let byte = rest.popFirst() {
      if byte == 0x1B { dropSequence(&rest) } else if byte >= 0x20, byte != 0x7F { plain.append(byte) }
      // Four bytes are the longest character; what is beyond is cut in any case.
      if plain.count >= 4 * limit { break }
    }
    var text = String.UnicodeScalarView()
    for scalar in String(decoding: plain, as: UTF8.self).unicodeScalars.prefix(limit) {
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: break
      default: text.append(scalar)
      }
    }
    return String(text).trimmed
  }

  /// What follows an escape character: `[` and up to a letter, `]` and up to a bell, or one character.
  private static func dropSequence(_ rest: inout ArraySlice<UInt8>) {
    switch rest.popFirst() {
    case UInt8(ascii: "["):
      while let byte = rest.first, byte < 0x40 { rest = rest.dropFirst(byte == 0x1B ? 0 : 1); if byte == 0x1B { return } }
      rest = rest.dropFirst()
    case UInt8(ascii: "]"):
      while let byte = rest.popFirst() { if byte == 0x07 || byte == 0x1B { return } }
    default: break
    }
  }

  /// The parts of a list, cleaned; empty ones stay, for their places count.
  static func list(_ body: ArraySlice<UInt8>, most: Int, limit: Int) -> [String] {
    guard !body.isEmpty else { return [] }
    let parts = body.split(separator: UInt8(ascii: ";"), maxSplits: most, omittingEmptySubsequences: false)
    return parts.prefix(most).map { clean($0, limit: limit) }
  }
}

extension ArraySlice<UInt8> {
  /// Where these bytes stand first.
  func firstIndex(of mark: [UInt8]) -> Int? {
    guard let head = mark.first, count >= mark.count else { return nil }
    var index = startIndex
    while index <= endIndex - mark.count {
      if self[index] == head, self[index..<index + mark.count].elementsEqual(mark) { return index }
      index += 1
    }
    return nil
  }
}
