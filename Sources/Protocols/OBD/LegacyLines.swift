// Lines of the networks before CAN, as an ELM327 prints them with headers: three bytes of header, the message, one byte of check.
// Nothing is used whose check does not hold; what is said in several lines stays several messages, which the readers of trouble
// codes and vehicle information put together. Of an adapter that leaves the check out, a line is used whose length is what it tells itself
// or what the standard says of its message. Facts: ISO 14230-2, ISO 9141-2, SAE J1850, the ELM327 data sheet's examples.

extension CANReader.Octets {
  /// The sum of all but the last byte is the last one (ISO 9141-2 and 14230-2).
  var hasSum: Bool {
    var sum: UInt8 = 0
    for index in 0..<max(count - 1, 0) { sum &+= self[index] }
    return count > 1 && sum == self[count - 1]
  }

  /// The last byte is the CRC of the others (SAE J1850: polynomial 1D, begun with FF, inverted).
  var hasCRC: Bool {
    var crc: UInt8 = 0xFF
    for index in 0..<max(count - 1, 0) {
      crc ^= self[index]
      for _ in 0..<8 { crc = crc & 0x80 != 0 ? crc << 1 ^ 0x1D : crc << 1 }
    }
    return count > 1 && ~crc == self[count - 1]
  }
}

extension CANReader {
  private static let maxMessageLength = 7

  /// ISO 14230: format and length, target, source, a length byte where the format has none, data, sum of all.
  mutating func takeKLine(_ octets: Octets) throws(Unreadable) {
    let isLong = octets[0] & 0x3F == 0
    let head = isLong ? 4 : 3
    let length = Int(isLong ? octets[3] : octets[0] & 0x3F)
    let isWhole = length >= 1 && octets.count == head + length + 1 && octets.hasSum
    guard isWhole || length >= 1 && octets.count == head + length else { throw Unreadable("K-line frame with wrong checksum") }
    try see(check: isWhole)
    try begin(source: UInt32(octets[2]), length: length)
    append(octets, from: head, to: messages.count - 1)
  }

  /// ISO 9141-2 (sum) and SAE J1850 (CRC): priority, target, source, up to seven bytes, check.
  mutating func takeHeaded(_ octets: Octets) throws(Unreadable) {
    let standard = Self.length(of: octets, from: 3)
    // The last byte of a message may hold as a check by chance.
    let isChecked = (octets.hasSum || octets.hasCRC) && standard != octets.count - 3
    let length = octets.count - (isChecked ? 4 : 3)
    guard length >= 1, length <= Self.maxMessageLength else { throw Unreadable("frame of wrong length") }
    guard isChecked || length == standard else { throw Unreadable("frame with wrong checksum") }
    try see(check: isChecked)
    try begin(source: UInt32(octets[2]), length: length)
    append(octets, from: 3, to: messages.count - 1)
  }

  /// A line's check held, or it is whole without one.
  private mutating func see(check isThere: Bool) throws(Unreadable) {
    if isThere { return checkHeld() }
    checkMissed()
    guard hasNoChecks else { throw Unreadable("frame without checksum") }
  }

  /// How long the standard's message is that begins there: before CAN there is one parameter in each, or a full line.
  private static func length(of octets: Octets, from start: Int) -> Int? {
    guard octets.count >= start + 2 else { return nil }
    switch octets[start] {
    case 0x41: return StandardParameter.bytes(of: octets[start + 1]).map { 2 + $0 }
    case 0x43, 0x47, 0x49, 0x4A: return maxMessageLength
    case 0x7F: return 3
    default: return nil
    }
  }

  /// Where a message came from, as testers write it: `7E8`, `18DAF110`, on an older network `10`; empty: the adapter does not show it.
  static func name(of source: UInt32?) -> String {
    source.map { $0 > 0xFF ? CANIdentifier($0).text : spacedHex([UInt8($0)]) } ?? ""
  }

  /// Whether a message comes from a controller that answers the emission standard's requests: 7E8 to 7EF, 18DAF1xx, an address of an
  /// older network, or nobody who is named.
  static func isController(_ source: UInt32?) -> Bool {
    guard let source else { return true }
    return (0x7E8...0x7EF).contains(source) || source & 0xFFFF_FF00 == 0x18DA_F100 || source <= 0xFF
  }
}
