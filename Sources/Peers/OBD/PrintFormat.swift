// The printed form of frames under the settings of the adapter: headers, spaces, linefeeds and auto formatting.
// Source: output of real adapters.
//
//   H1 S1 `7EC 10 3E 62 01 01 EF FB E7 `    H1 S0 `7EC103E620101EFFBE7`    H0 `03E`, `0: 62 01 01 EF FB E7 `, `1: …`
//   H0, single frame: only the message `41 0D 32 `    CAF0: all eight bytes as received
//   29-bit and K-lines under H1: `18 DA F1 10 04 41 0C 0D 74 `, `86 F1 10 41 00 BE 3E F8 11 CD ` with the checksum; H0: the data

extension AdapterSettings {
  var endOfLine: [UInt8] { losesLineEnds ? [] : linefeeds ? [0x0D, 0x0A] : [0x0D] }

  /// The end of every reply: an empty line and the prompt.
  var prompt: [UInt8] { endOfLine + [0x3E] }

  /// Formats a text as one line.
  func line(_ text: String) -> [UInt8] { Array(text.utf8) + endOfLine }

  /// Formats a frame as one line. With auto formatting and without headers, a line with the length of a
  /// long message precedes the first frame.
  func line(_ frame: OBDFrame) -> [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(40)
    func digits(_ text: some Sequence<UInt8>) {
      for nibble in text { out.append(HexDigits.digit(nibble)) }
      if spaces { out.append(0x20) }
    }
    func bytes(_ part: ArraySlice<UInt8>) {
      for byte in part { digits([byte >> 4, byte]) }
    }
    if headers {
      if frame.bus == .can11 { digits([UInt8(frame.id >> 8 & 0xF), UInt8(frame.id >> 4 & 0xF), UInt8(frame.id & 0xF)]) }
      bytes(frame.header[...])
      if displaysDLC, frame.bus.isCAN { digits([UInt8(frame.data.count & 0xF)]) }
    }
    guard !headers, autoFormat, frame.bus.isCAN, let first = frame.data.first else {
      bytes(frame.data[...])
      if headers, !omitsChecksums, let checksum = frame.checksum { bytes([checksum]) }
      return out + endOfLine
    }
    func lineNumber(_ count: UInt8) {
      out += [HexDigits.digit(count), 0x3A]
      if spaces { out.append(0x20) }
    }
    switch first >> 4 {
    case 1:
      out += [first, (frame.data.dropFirst().first ?? 0) >> 4, frame.data.dropFirst().first ?? 0].map(HexDigits.digit)
      out += endOfLine
      lineNumber(0)
      bytes(frame.data.dropFirst(2))
    case 2:
      lineNumber(first & 0x0F)
      bytes(frame.data.dropFirst())
    default:
      let message = frame.data.dropFirst().prefix(Int(first & 0x0F))
      bytes(message + Array(repeating: 0, count: padsWithoutHeaders ? max(0, 7 - message.count) : 0))
    }
    return out + endOfLine
  }
}
