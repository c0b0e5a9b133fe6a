// Lines of pre-CAN protocols, as an ELM327 prints them with headers: three header bytes, the message, one checksum byte. A line with a
// wrong checksum is rejected; if the adapter omits checksums, the length must match. Source: ISO 14230-2, ISO 9141-2, SAE J1850, the
// examples of the ELM327 data sheet.

extension ReplyReader.Octets {
  /// Whether the last byte is the sum of the others (ISO 9141-2 and 14230-2).
  var hasValidSum: Bool {
    var sum: UInt8 = 0
    for index in 0..<max(count - 1, 0) { sum &+= self[index] }
    return count > 1 && sum == self[count - 1]
  }

  /// Whether the last byte is the CRC of the others (SAE J1850: polynomial 1D, initial value FF, inverted).
  var hasValidCRC: Bool {
    var crc: UInt8 = 0xFF
    for index in 0..<max(count - 1, 0) {
      crc ^= self[index]
      for _ in 0..<8 { crc = crc & 0x80 != 0 ? crc << 1 ^ 0x1D : crc << 1 }
    }
    return count > 1 && ~crc == self[count - 1]
  }
}

extension ReplyReader {
  private static let maxMessageLength = 7

  /// Adds an ISO 14230 frame: format byte, target, source, a length byte if the format byte contains no length, data, checksum.
  mutating func addISO14230Frame(_ octets: Octets) throws(Unreadable) {
    let hasLengthByte = octets[0] & 0x3F == 0
    let headerLength = hasLengthByte ? 4 : 3
    let length = Int(hasLengthByte ? octets[3] : octets[0] & 0x3F)
    let hasChecksum = length >= 1 && octets.count == headerLength + length + 1 && octets.hasValidSum
    guard hasChecksum || length >= 1 && octets.count == headerLength + length else {
      throw Unreadable("ISO 14230 frame with wrong checksum")
    }
    try recordChecksum(isPresent: hasChecksum)
    try begin(source: UInt32(octets[2]), length: length)
    append(octets, from: headerLength, to: messages.count - 1)
  }

  /// Adds a frame of ISO 9141-2 (sum) or SAE J1850 (CRC): priority, target, source, up to seven bytes, checksum.
  mutating func addLegacyFrame(_ octets: Octets) throws(Unreadable) {
    let standardLength = Self.length(of: octets, from: 3)
    // If there is no checksum, the last byte of a complete message may by chance look like a valid checksum.
    let hasChecksum = (octets.hasValidSum || octets.hasValidCRC) && standardLength != octets.count - 3
    let length = octets.count - (hasChecksum ? 4 : 3)
    guard length >= 1, length <= Self.maxMessageLength else { throw Unreadable("frame of wrong length") }
    guard hasChecksum || length == standardLength else { throw Unreadable("frame with wrong checksum") }
    try recordChecksum(isPresent: hasChecksum)
    try begin(source: UInt32(octets[2]), length: length)
    append(octets, from: 3, to: messages.count - 1)
  }

  /// Records whether a complete line had a valid checksum. Throws if it had none although the adapter prints checksums.
  private mutating func recordChecksum(isPresent: Bool) throws(Unreadable) {
    if isPresent { return noteValidChecksum() }
    noteMissingChecksum()
    guard omitsChecksums else { throw Unreadable("frame without checksum") }
  }

  /// The length of the SAE J1979 message that begins at `start`; nil if it is unknown. On pre-CAN protocols, a message holds one PID
  /// or fills the line.
  private static func length(of octets: Octets, from start: Int) -> Int? {
    guard octets.count >= start + 2 else { return nil }
    switch octets[start] {
    case 0x41: return StandardParameter.length(of: octets[start + 1]).map { 2 + $0 }
    case 0x43, 0x47, 0x49, 0x4A: return maxMessageLength
    case 0x7F: return 3
    default: return nil
    }
  }

  /// The displayed form of the source of a message: `7E8`, `18DAF110`, or `10` on a pre-CAN protocol. Empty if the adapter does not
  /// show it.
  static func name(of source: UInt32?) -> String {
    source.map { $0 > 0xFF ? CANIdentifier($0).text : spacedHex([UInt8($0)]) } ?? ""
  }

  /// Whether the source is an ECU that responds to SAE J1979 requests: 7E8 to 7EF, 18DAF1xx, a pre-CAN address, or unknown.
  static func isOBDSource(_ source: UInt32?) -> Bool {
    guard let source else { return true }
    return (0x7E8...0x7EF).contains(source) || source & 0xFFFF_FF00 == 0x18DA_F100 || source <= 0xFF
  }
}
