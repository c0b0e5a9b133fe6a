// Decodes terminal input into keys. Pure; input may be split anywhere, as in the three bytes of an arrow key. Unknown sequences are ignored.
// Sources: ECMA-48 section 5.4 (CSI, final byte 40 to 7E); xterm's cursor keys: CSI A or, in application mode, SS3 A.

/// The left and right button of the car. In the original app each is one half of the screen.
enum ScreenHalf: String, CaseIterable { case left, right }

enum Key: Equatable {
  case direction(Steering.Direction)
  case stop
  /// Runs the action `continue`.
  case go
  /// Toggles the button, because a terminal does not report when a key is released.
  case button(ScreenHalf)
  /// Sets the tilt of a pressed key, as a fraction of the maximum, 0 to 1.
  case limit(Double)
  case end
}

struct KeyDecoder {
  /// After ESC, in a CSI sequence, or after SS3.
  private enum State { case plain, escape, sequence, single }
  private var state = State.plain

  /// Returns the keys in these bytes.
  mutating func decode(_ bytes: some Sequence<UInt8>) -> [Key] { bytes.compactMap { decode($0) } }

  private mutating func decode(_ byte: UInt8) -> Key? {
    switch state {
    case .escape where byte == UInt8(ascii: "["): state = .sequence
    case .escape where byte == UInt8(ascii: "O"): state = .single
    case .sequence where (0x20..<0x40).contains(byte): break  // parameters, such as a modifier
    case .sequence, .single:
      state = byte == 0x1B ? .escape : .plain
      return Self.arrow(byte)
    case .plain, .escape:
      state = byte == 0x1B ? .escape : .plain
      return Self.plain(byte)
    }
    return nil
  }

  private static func arrow(_ byte: UInt8) -> Key? {
    switch byte {
    case UInt8(ascii: "A"): .direction(.forward)
    case UInt8(ascii: "B"): .direction(.backward)
    case UInt8(ascii: "C"): .direction(.right)
    case UInt8(ascii: "D"): .direction(.left)
    case 0x03: .end
    default: nil
    }
  }

  private static func plain(_ byte: UInt8) -> Key? {
    switch byte {
    case UInt8(ascii: "w"), UInt8(ascii: "W"): .direction(.forward)
    case UInt8(ascii: "s"), UInt8(ascii: "S"): .direction(.backward)
    case UInt8(ascii: "d"), UInt8(ascii: "D"): .direction(.right)
    case UInt8(ascii: "a"), UInt8(ascii: "A"): .direction(.left)
    case UInt8(ascii: " "): .stop
    case UInt8(ascii: "c"), UInt8(ascii: "C"), UInt8(ascii: "\r"), UInt8(ascii: "\n"): .go
    case UInt8(ascii: ","), UInt8(ascii: "<"): .button(.left)
    case UInt8(ascii: "."), UInt8(ascii: ">"): .button(.right)
    case UInt8(ascii: "0"): .limit(1)
    case UInt8(ascii: "1")...UInt8(ascii: "9"): .limit(Double(byte - UInt8(ascii: "0")) / 10)
    case UInt8(ascii: "q"), UInt8(ascii: "Q"), 0x03, 0x04: .end  // Ctrl-C, Ctrl-D
    default: nil
    }
  }
}
