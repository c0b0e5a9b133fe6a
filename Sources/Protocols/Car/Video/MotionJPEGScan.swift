// Finds the last byte of a JPEG by its markers, without decoding pixels. The end of an embedded thumbnail is not mistaken for the end of
// the picture.
// Source: ITU-T T.81 annex B.1.1: FF and a code; then, except for SOI, EOI, TEM and RSTn, two bytes of length that count themselves.
//
//   FF D8 | FF E0 len … | FF DB len … | … | FF DA len … entropy-coded data, FF 00 and FF D0…D7 belong to it | FF D9

extension MotionJPEG {
  struct Scan: Sendable {
    enum Place: Sendable, Equatable {
      /// Before or between the two bytes of SOI.
      case beginning, begun
      /// Before a marker's FF, or before its code.
      case marker, code
      /// Before or between the two bytes of a segment's length, and within the segment with this many bytes left.
      case length, lengthEnd(high: UInt8), segment(left: Int)
      /// In entropy-coded data, and after an FF in it.
      case data, escape
      case ended
      /// Not a JPEG, or damaged: its end cannot be found.
      case astray
    }

    private(set) var place = Place.beginning
    /// Whether the scan has reached the pixels.
    private(set) var hasData = false
    /// Whether the current segment is SOS, which is followed by pixels.
    private var isScanHeader = false

    mutating func take(_ byte: UInt8) {
      switch place {
      case .beginning: place = byte == 0xFF ? .begun : .astray
      case .begun: place = byte == 0xD8 ? .marker : .astray
      case .marker: place = byte == 0xFF ? .code : .astray
      case .code: place = after(code: byte)
      case .length: place = .lengthEnd(high: byte)
      case .lengthEnd(let high):
        let left = Int(high) << 8 + Int(byte) - 2
        place = left < 0 ? .astray : left == 0 ? afterSegment() : .segment(left: left)
      case .segment(let left): place = left == 1 ? afterSegment() : .segment(left: left - 1)
      case .data: if byte == 0xFF { place = .escape }
      case .escape: place = byte == 0 || (0xD0...0xD7).contains(byte) ? .data : byte == 0xFF ? .escape : after(code: byte)
      case .ended, .astray: break
      }
    }

    private mutating func after(code: UInt8) -> Place {
      switch code {
      case 0xFF: return .code  // fill bytes may precede a code
      case 0x01, 0xD0...0xD7: return .marker
      case 0xD9: return .ended
      case 0, 0xD8: return .astray
      default:
        isScanHeader = code == 0xDA
        return .length
      }
    }

    private mutating func afterSegment() -> Place {
      guard isScanHeader else { return .marker }
      hasData = true
      return .data
    }
  }
}
