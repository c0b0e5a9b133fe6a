// The text form of frames in logs of can-utils (candump -L), in which CAN traffic is recorded and replayed.
// Source: can-utils, lib.c (parse_canframe, sprint_canframe).
//
//   (1436509052.249713) can0 7E0#0322010100000000     29-bit identifiers have 8 digits · remote frames are 7E0#R or 7E0#R8
//   (1436509052.250001) can0 20000080#0000000000000000     error frames: the flag 20000000 and the classes of the error
//   (1436509052.250123) can0 7E0#0322010100000000 T     newer logs end with the direction: R received, T sent

/// A line of a log.
package struct CandumpLine: Equatable, Sendable {
  /// The time in µs. Logs count from the Unix epoch, or from their start.
  package var time: Int64
  package var interface: String
  package var frame: CANFrame
  /// Whether the frame was sent, which `T` after the frame says.
  package var isSent: Bool

  package init(time: Int64, interface: String, _ frame: CANFrame, isSent: Bool = false) {
    (self.time, self.interface, self.frame, self.isSent) = (time, interface, frame, isSent)
  }

  private static let maxInterfaceLength = 16
  /// The maximum time (the year 2116), so that the nanoseconds between two lines can be added to any time.
  private static let maxTime = Int64.max / 2000

  /// The line without a line end.
  package var text: String {
    let fraction = String(time % 1_000_000)
    let zeros = String(repeating: "0", count: 6 - fraction.utf8.count)
    return "(\(time / 1_000_000).\(zeros)\(fraction)) \(interface) \(frame.candumpText)\(isSent ? " T" : "")"
  }

  /// Parses a line without its line end. Nil if it is not a line of a log of classical CAN.
  package init?(_ line: some Sequence<UInt8>) {
    let fields = Array(line).split(whereSeparator: { $0 == space || $0 == tab || $0 == carriageReturn })
    guard fields.count >= 3, fields[1].count <= Self.maxInterfaceLength, fields[1].allSatisfy({ $0 > space && $0 < 0x7F }),
      let time = Self.time(fields[0]),
      let frame = CANFrame(candump: fields[2])
    else { return nil }
    let isSent = fields.count > 3 && fields[3].elementsEqual([UInt8(ascii: "T")])
    self.init(time: time, interface: String(decoding: fields[1], as: UTF8.self), frame, isSent: isSent)
  }

  /// Whether a line contains a frame of CAN FD: `123##1AABB`.
  package static func isCANFD(_ line: some Collection<UInt8>) -> Bool { line.contains([UInt8(ascii: "#"), UInt8(ascii: "#")]) }

  /// The time in parentheses: seconds, a dot, and six digits.
  private static func time(_ field: ArraySlice<UInt8>) -> Int64? {
    guard field.count > 2, field.first == UInt8(ascii: "("), field.last == UInt8(ascii: ")") else { return nil }
    let parts = field.dropFirst().dropLast().split(separator: dot, omittingEmptySubsequences: false)
    guard parts.count == 2, parts[1].count == 6, (1...12).contains(parts[0].count), parts.joined().allSatisfy(isDigit) else { return nil }
    let time = parts.joined().reduce(0) { $0 * 10 + Int64(hexValue($1)) }
    return time <= maxTime ? time : nil
  }
}

extension CANFrame {
  /// The flag of error frames in the text form.
  private static let errorFlag: UInt32 = 0x2000_0000

  /// The frame as in a log: `7E0#0322010100000000`.
  package var candumpText: String {
    switch kind {
    case .data: "\(identifier.text)#\(String(decoding: hexText(bytes), as: UTF8.self))"
    case .remote: "\(identifier.text)#R\(count == 0 ? "" : String(count))"
    case .error:
      CANIdentifier(number: identifier.number | Self.errorFlag, is29Bit: true).text + "#" + String(decoding: hexText(bytes), as: UTF8.self)
    }
  }

  /// Parses the form of a log; nil for anything else, also for frames of CAN FD.
  package init?(candump text: some Collection<UInt8>) {
    let parts = text.split(separator: UInt8(ascii: "#"), maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].count == 3 || parts[0].count == 8, parts[0].allSatisfy(isHexDigit) else { return nil }
    let number = parts[0].reduce(UInt32(0)) { $0 << 4 | UInt32(hexValue($1)) }
    let is29Bit = parts[0].count == 8
    let isError = is29Bit && number & Self.errorFlag != 0
    let identifier = CANIdentifier(number: isError ? number & ~Self.errorFlag : number, is29Bit: is29Bit)
    guard identifier.number <= (is29Bit ? 0x1FFF_FFFF : 0x7FF) else { return nil }
    if let first = parts[1].first, first == UInt8(ascii: "R") || first == UInt8(ascii: "r") {
      let digits = parts[1].dropFirst()
      let count = Int(digits.first.map(hexValue) ?? 0)
      guard !isError, digits.count <= 1, digits.allSatisfy(isDigit), count <= Self.maxCount else { return nil }
      self.init(identifier, .remote, remoteCount: count)
      return
    }
    // Dots between bytes are permitted.
    let digits = parts[1].filter { $0 != dot }
    guard digits.count.isMultiple(of: 2), digits.count <= 2 * Self.maxCount, digits.allSatisfy(isHexDigit) else { return nil }
    let bytes = stride(from: 1, to: digits.count, by: 2).map { hexValue(digits[$0 - 1]) << 4 | hexValue(digits[$0]) }
    self.init(identifier, isError ? .error : .data, bytes)
  }
}
