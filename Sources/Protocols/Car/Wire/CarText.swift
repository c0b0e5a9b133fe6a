// Text to and from the car. Text to the car must not contain the delimiter or the terminator of the protocol. Text from the car is
// stripped of escape sequences and control characters, and its length is limited.

enum CarText {
  /// Checks the argument of the action `send-message`.
  static func outbound(_ text: Value?, isAllowed: Bool) -> Result<String, CommandError> {
    guard isAllowed else {
      let message = "messages are disabled: set allow-messages = true if the car supports them; AutoTT's program does not"
      return .failure(.refused(code: .notAllowed, message))
    }
    guard case .string(let text)? = text else { return .failure(.invalid(argument: "text", "is missing")) }
    if let message = refusal(text) { return .failure(.invalid(argument: "text", message)) }
    return .success(text)
  }

  /// Why a text cannot be sent; nil if it can. The protocol cannot escape its delimiter and terminator.
  static func refusal(_ text: String) -> String? {
    let bytes = Array(text.utf8)
    if bytes.isEmpty { return "must not be empty" }
    if bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) { return "must not contain control characters or line ends" }
    if bytes.contains(where: { $0 > 0x7F }) { return "must be ASCII" }
    if bytes[...].firstIndex(of: CarFrame.delimiter) != nil { return "must not contain #$#, which starts the body of a message" }
    // A text that ends with part of the terminator would end the message too early.
    if (bytes + CarFrame.terminator)[...].firstIndex(of: CarFrame.terminator) != bytes.count {
      return "must not contain %^% or end with %^, which ends a message"
    }
    let frame = CarOutboundMessage.message(text).frame(.asBuilt)
    if frame.count > CarFrame.maxLength { return "is \(frame.count - CarFrame.maxLength) characters too long" }
    return nil
  }

  /// Text from the car without escape sequences and control characters, truncated to `limit` characters.
  static func clean(_ bytes: ArraySlice<UInt8>, limit: Int) -> String {
    var rest = bytes[...]
    var plain: [UInt8] = []
    while let byte = rest.popFirst() {
      if byte == 0x1B { dropSequence(&rest) } else if byte >= 0x20, byte != 0x7F { plain.append(byte) }
      // A character has at most four bytes, so this is enough for `limit` characters.
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

  /// Removes the rest of an escape sequence: from `[` up to a letter, from `]` up to a bell, or one character.
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

  /// The cleaned elements of a list; empty ones are kept, because positions matter.
  static func list(_ body: ArraySlice<UInt8>, maxCount: Int, limit: Int) -> [String] {
    guard !body.isEmpty else { return [] }
    let parts = body.split(separator: UInt8(ascii: ";"), maxSplits: maxCount, omittingEmptySubsequences: false)
    return parts.prefix(maxCount).map { clean($0, limit: limit) }
  }
}

extension ArraySlice<UInt8> {
  /// The first position of these bytes.
  func firstIndex(of pattern: [UInt8]) -> Int? {
    guard let head = pattern.first, count >= pattern.count else { return nil }
    var index = startIndex
    while index <= endIndex - pattern.count {
      if self[index] == head, self[index..<index + pattern.count].elementsEqual(pattern) { return index }
      index += 1
    }
    return nil
  }
}
