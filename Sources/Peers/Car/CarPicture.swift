// The picture of the simulated camera: a grey landscape with a moving ball, as a baseline JPEG with one grey value per 8 x 8 block.
// Source: ITU-T T.81: markers (annex B), Huffman tables K.3 and K.5, coding of DC differences (F.1.2.1).
//
//   SOI | APP0 JFIF 1.1 | DQT | SOF0 8 bit, 1 component | DHT DC 0 | DHT AC 0 | SOS | a difference and EOB for each block | EOI

/// The quality setting of the camera.
enum CarPictureSize: Sendable, Equatable {
  case high, medium, low

  var width: Int { self == .high ? 760 : self == .medium ? 568 : 360 }
  var height: Int { self == .high ? 460 : self == .medium ? 300 : 240 }
  /// The quantization step: 2 for quality 95, 23 for quality 35.
  fileprivate var step: Int { self == .low ? 23 : 2 }
}

/// One picture.
struct CarPicture: Sendable {
  let size: CarPictureSize
  /// The number of the picture, which determines the position of the ball.
  let number: Int

  private var columns: Int { (size.width + 7) / 8 }
  private var rows: Int { (size.height + 7) / 8 }

  /// The grey value of one block, 0 (black) to 255.
  func grey(column: Int, row: Int) -> Int {
    let ball = (column: number % columns, row: rows * 2 / 3)
    if abs(column - ball.column) < 3, abs(row - ball.row) < 3 { return 250 }
    let horizon = rows / 2
    return row < horizon ? 200 - row * 60 / max(1, horizon) : 60 + (row - horizon) * 50 / max(1, rows - horizon)
  }

  var jpeg: [UInt8] {
    var out = header
    var bits = BitWriter()
    var last = 0
    for row in 0..<rows {
      for column in 0..<columns {
        // The DC coefficient of a uniform block is 8 times its value, here divided by the quantization step.
        let value = ((grey(column: column, row: row) - 128) * 8 + (size.step * 512) + size.step / 2) / size.step - 512
        let difference = value - last
        last = value
        let length = Int.bitWidth - abs(difference).leadingZeroBitCount
        let code = CarPicture.dcCodes[length]
        bits.append(code.bits, code.length)
        if length > 0 { bits.append(difference < 0 ? difference - 1 : difference, length) }
        bits.append(CarPicture.endOfBlock.bits, CarPicture.endOfBlock.length)
      }
    }
    out += bits.finished
    return out + [0xFF, 0xD9]
  }

  private var header: [UInt8] {
    func segment(_ marker: UInt8, _ body: [UInt8]) -> [UInt8] {
      [0xFF, marker, UInt8((body.count + 2) >> 8), UInt8((body.count + 2) & 0xFF)] + body
    }
    let (high, low) = ({ (number: Int) in UInt8(number >> 8) }, { (number: Int) in UInt8(number & 0xFF) })
    return [0xFF, 0xD8]
      + segment(0xE0, Array("JFIF".utf8) + [0, 1, 1, 0, 0, 1, 0, 1, 0, 0])
      + segment(0xDB, [0] + [UInt8](repeating: UInt8(size.step), count: 64))
      + segment(0xC0, [8, high(size.height), low(size.height), high(size.width), low(size.width), 1, 1, 0x11, 0])
      + segment(0xC4, [0x00] + CarPicture.dcCounts + CarPicture.dcValues)
      + segment(0xC4, [0x10] + CarPicture.acCounts + CarPicture.acValues)
      + segment(0xDA, [1, 1, 0x00, 0, 63, 0])
  }

  // MARK: Tables of annex K: the number of codes of each length, and their values

  private static let dcCounts: [UInt8] = [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
  private static let dcValues: [UInt8] = Array(0...11)
  private static let acCounts: [UInt8] = [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7D]
  private static let acValues: [UInt8] =
    [
      0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71, 0x14, 0x32, 0x81, 0x91,
      0xA1, 0x08, 0x23, 0x42, 0xB1, 0xC1, 0x15, 0x52, 0xD1, 0xF0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0A,
    ] + acRuns.flatMap { Array($0) }
  private static let acRuns: [ClosedRange<UInt8>] = [
    0x16...0x1A, 0x25...0x2A, 0x34...0x3A, 0x43...0x4A, 0x53...0x5A, 0x63...0x6A, 0x73...0x7A, 0x83...0x8A, 0x92...0x9A, 0xA2...0xAA,
    0xB2...0xBA, 0xC2...0xCA, 0xD2...0xDA, 0xE1...0xEA, 0xF1...0xFA,
  ]

  /// The codes of DC differences, by the number of bits of the difference.
  private static let dcCodes = codes(dcCounts)
  /// The code of 0x00 (end of block), the fourth value of the AC table.
  private static let endOfBlock = codes(acCounts)[3]

  /// Codes of a table in the order of its values (annex C).
  private static func codes(_ counts: [UInt8]) -> [(bits: Int, length: Int)] {
    var code = 0
    var codes: [(bits: Int, length: Int)] = []
    for (index, count) in counts.enumerated() {
      for _ in 0..<count {
        codes.append((code, index + 1))
        code += 1
      }
      code <<= 1
    }
    return codes
  }
}

/// Writes bits, most significant first, with a zero byte after each FF (byte stuffing).
private struct BitWriter {
  private var bytes: [UInt8] = []
  /// The last bits, which do not fill a byte yet.
  private var pending = 0
  private var count = 0

  mutating func append(_ bits: Int, _ length: Int) {
    pending = pending << length | bits & (1 << length - 1)
    count += length
    while count >= 8 {
      count -= 8
      let byte = UInt8(pending >> count & 0xFF)
      bytes.append(byte)
      if byte == 0xFF { bytes.append(0) }
    }
    pending &= 1 << count - 1
  }

  /// All bytes, the last one padded with ones.
  var finished: [UInt8] {
    var copy = self
    if copy.count > 0 { copy.append(0xFF, 8 - copy.count) }
    return copy.bytes
  }
}
