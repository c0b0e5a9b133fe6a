// Decodes terminal input into key presses. No I/O; input may be split anywhere, as in the three bytes of an arrow key. Unknown sequences,
// replies of the terminal and invalid UTF-8 are ignored.
// Sources: ECMA-48 section 5.4 (CSI, final byte 40 to 7E); the key sequences of xterm, such as CSI A (SS3 A in application mode) and CSI
// 5 ~; DEC private mode 1004 (CSI O).

enum KeyPress: Equatable {
  case character(Unicode.Scalar)
  case up, down, left, right, pageUp, pageDown, home, end
  case tab, backTab, enter, backspace, escape
  /// The terminal has lost the focus, if `FullScreen` requests such reports.
  case focusLost
  /// Ctrl with a letter, such as `control("C")`.
  case control(Unicode.Scalar)
}

struct KeyDecoder {
  private enum State {
    case plain, escape
    /// In a CSI sequence, with its parameters and intermediate bytes so far.
    case sequence([UInt8])
    /// After SS3.
    case single
    /// In a string such as OSC or DCS, up to BEL or ESC.
    case string
    /// In a character of UTF-8, with the number of missing bytes.
    case character([UInt8], Int)
  }
  private var state = State.plain
  private static let maxParameters = 16

  /// Returns the key presses in these bytes.
  mutating func decode(_ bytes: some Sequence<UInt8>) -> [KeyPress] { bytes.compactMap { decode($0) } }

  /// Returns the Esc key if the last byte was ESC. Call this after a moment without input: the ESC then does not start a sequence.
  mutating func finishEscape() -> KeyPress? {
    guard case .escape = state else { return nil }
    state = .plain
    return .escape
  }

  private mutating func decode(_ byte: UInt8) -> KeyPress? {
    if byte == 0x1B {
      state = .escape
      return nil
    }
    if byte == 0x03 {
      state = .plain
      return .control("C")
    }
    switch state {
    case .plain: return plain(byte)
    case .escape: return afterEscape(byte)
    case .single:
      state = .plain
      return Self.cursor(byte)
    case .sequence(let parameters):
      if (0x20..<0x40).contains(byte) {
        state = .sequence(parameters.count < Self.maxParameters ? parameters + [byte] : parameters)
        return nil
      }
      state = .plain
      if parameters.isEmpty, byte == UInt8(ascii: "O") { return .focusLost }
      return byte == UInt8(ascii: "~") ? Self.numbered(parameters) : Self.cursor(byte)
    case .string:
      if byte == 0x07 { state = .plain }
      return nil
    case .character(var bytes, let missing):
      guard byte & 0xC0 == 0x80 else {
        state = .plain
        return plain(byte)
      }
      bytes.append(byte)
      state = missing == 1 ? .plain : .character(bytes, missing - 1)
      guard missing == 1, let text = String(validating: bytes, as: UTF8.self) else { return nil }
      return text.unicodeScalars.first.map { .character($0) }
    }
  }

  private mutating func afterEscape(_ byte: UInt8) -> KeyPress? {
    switch byte {
    case UInt8(ascii: "["): state = .sequence([])
    case UInt8(ascii: "O"): state = .single
    case UInt8(ascii: "]"), UInt8(ascii: "P"), UInt8(ascii: "_"), UInt8(ascii: "^"): state = .string
    case UInt8(ascii: "\\"): state = .plain  // the end of a string
    default:
      state = .plain
      return plain(byte)
    }
    return nil
  }

  private mutating func plain(_ byte: UInt8) -> KeyPress? {
    switch byte {
    case UInt8(ascii: "\t"): return .tab
    case UInt8(ascii: "\r"), UInt8(ascii: "\n"): return .enter
    case 0x08, 0x7F: return .backspace
    case 0x01...0x1A: return .control(Unicode.Scalar(byte + 0x40))
    case 0x20..<0x7F: return .character(Unicode.Scalar(byte))
    case 0xC2...0xDF: state = .character([byte], 1)
    case 0xE0...0xEF: state = .character([byte], 2)
    case 0xF0...0xF4: state = .character([byte], 3)
    default: break
    }
    return nil
  }

  /// The key of a final byte of CSI or SS3.
  private static func cursor(_ byte: UInt8) -> KeyPress? {
    switch byte {
    case UInt8(ascii: "A"): .up
    case UInt8(ascii: "B"): .down
    case UInt8(ascii: "C"): .right
    case UInt8(ascii: "D"): .left
    case UInt8(ascii: "H"): .home
    case UInt8(ascii: "F"): .end
    case UInt8(ascii: "Z"): .backTab
    default: nil
    }
  }

  /// The key of a sequence such as CSI 5 ~; a modifier follows after a semicolon.
  private static func numbered(_ parameters: [UInt8]) -> KeyPress? {
    switch String(decoding: parameters.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self) {
    case "1", "7": .home
    case "4", "8": .end
    case "5": .pageUp
    case "6": .pageDown
    default: nil
    }
  }
}
