// Decodes terminal input into keys. Pure; input may be split anywhere, as in the three bytes of an arrow key. Unknown sequences are ignored.
// Sources: ECMA-48 section 5.4 (CSI, final byte 40 to 7E); xterm's cursor keys: CSI A or, in application mode, SS3 A.

/// The left and right button: each is one half of the screen in the original app.
enum ScreenHalf: String, CaseIterable { case left, right }

enum Key: Equatable {
  case direction(Steering.Direction)
  case stop
  case go
  /// Toggle the button; a terminal does not report that a key is released.
  case button(ScreenHalf)
  /// Set the tilt of a pressed key, 0 to 1.
  case limit(Double)
  case end
}

struct KeyDecoder {
  private enum Place { case plain, escape, sequence, single }
  private var place = Place.plain

  /// Returns the keys in these bytes.
  mutating func take(_ bytes: some Sequence<UInt8>) -> [Key] { bytes.compactMap { take($0) } }

  private mutating func take(_ byte: UInt8) -> Key? {
    switch place {
    case .escape where byte == UInt8(ascii: "["): place = .sequence
    case .escape where byte == UInt8(ascii: "O"): place = .single
    case .sequence where (0x20..<0x40).contains(byte): break  // parameters, such as a modifier
    case .sequence, .single:
      place = byte == 0x1B ? .escape : .plain
      return Self.arrow(byte)
    case .plain, .escape:
      place = byte == 0x1B ? .escape : .plain
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
