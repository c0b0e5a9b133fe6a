// Finds the last byte of a JPEG picture by its markers, without decoding pixels. The end of an embedded thumbnail is not mistaken for the
// end of the picture.
// Source: ITU-T T.81 annex B.1.1: FF and a code; then, except for SOI, EOI, TEM and RSTn, two bytes of length that count themselves.
//
//   FF D8 | FF E0 len … | FF DB len … | … | FF DA len … entropy-coded data, FF 00 and FF D0…D7 belong to it | FF D9

extension MotionJPEG {
  struct Scan: Sendable {
    enum Phase: Sendable, Equatable {
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
      case invalid
    }

    private(set) var phase = Phase.beginning
    /// Whether the scan has reached the pixels.
    private(set) var hasData = false
    /// Whether the current segment is SOS, which is followed by pixels.
    private var isScanHeader = false

    mutating func read(_ byte: UInt8) {
      switch phase {
      case .beginning: phase = byte == 0xFF ? .begun : .invalid
      case .begun: phase = byte == 0xD8 ? .marker : .invalid
      case .marker: phase = byte == 0xFF ? .code : .invalid
      case .code: phase = after(code: byte)
      case .length: phase = .lengthEnd(high: byte)
      case .lengthEnd(let high):
        let left = Int(high) << 8 + Int(byte) - 2
        phase = left < 0 ? .invalid : left == 0 ? afterSegment() : .segment(left: left)
      case .segment(let left): phase = left == 1 ? afterSegment() : .segment(left: left - 1)
      case .data: if byte == 0xFF { phase = .escape }
      case .escape: phase = byte == 0 || (0xD0...0xD7).contains(byte) ? .data : byte == 0xFF ? .escape : after(code: byte)
      case .ended, .invalid: break
      }
    }

    private mutating func after(code: UInt8) -> Phase {
      switch code {
      case 0xFF: return .code  // fill bytes may precede a code
      case 0x01, 0xD0...0xD7: return .marker
      case 0xD9: return .ended
      case 0, 0xD8: return .invalid
      default:
        isScanHeader = code == 0xDA
        return .length
      }
    }

    private mutating func afterSegment() -> Phase {
      guard isScanHeader else { return .marker }
      hasData = true
      return .data
    }
  }
}
