// The PIDs of services 01 and 02 (SAE J1979, ISO 15031-5): length and meaning. Several PIDs in one response can be separated only by their
// lengths, so a response of wrong length is rejected. The table is Vehicles/sae-j1979.toml.

/// One PID of SAE J1979.
struct StandardParameter: Sendable {
  let number: UInt8
  /// The length of the data in bytes.
  let length: Int
  /// The poll period on CAN.
  let period: Nanoseconds
  let rows: [DataRow]

  init(_ number: UInt8, _ length: Int, every period: Nanoseconds, _ rows: [DataRow]) {
    (self.number, self.length, self.period, self.rows) = (number, length, period, rows)
  }

  /// All PIDs by number, without the bitmaps of supported PIDs.
  static let all = Dictionary(uniqueKeysWithValues: table.map { ($0.number, $0) })

  /// The data length of each PID in bytes; 0 if unknown.
  private static let lengths: [UInt8] = (0...255).map { number in
    if number % 0x20 == 0 { return 4 }
    return UInt8(truncatingIfNeeded: all[UInt8(number)]?.length ?? 0)
  }

  /// The data length of a PID in bytes, including the PIDs that report the bitmaps of supported PIDs; nil if unknown.
  static func length(of number: UInt8) -> Int? {
    let length = lengths[Int(number)]
    return length > 0 ? Int(length) : nil
  }

  /// The PIDs that the four-byte bitmap `base` (00, 20, 40 …) lists as supported, including the PID of the next bitmap.
  static func supported(_ bitmap: some Sequence<UInt8>, base: UInt8) -> [UInt8] {
    var found: [UInt8] = []
    for (index, byte) in bitmap.prefix(4).enumerated() {
      for bit in 0..<8 where byte << bit & 0x80 != 0 {
        if let number = UInt8(exactly: Int(base) + index * 8 + bit + 1) { found.append(number) }
      }
    }
    return found
  }

  /// Splits a response of service 01 or 02 into PIDs, and calls `body` with each PID and the range of its data in `answer`. If the lengths
  /// do not match, or if a PID was not requested, returns an error message and does not call `body`.
  static func split(
    _ answer: ArraySlice<UInt8>, where isRequested: (UInt8) -> Bool = { _ in true },
    _ body: (_ number: UInt8, _ data: Range<Int>) -> Void
  ) -> String? {
    guard answer.first == 0x41 || answer.first == 0x42 else { return "not a service 01 or 02 response" }
    // Service 02 has the frame number after each PID.
    let headerLength = answer.first == 0x42 ? 2 : 1
    var position = answer.startIndex + 1
    guard position < answer.endIndex else { return "response without a PID" }
    while position < answer.endIndex {
      let number = answer[position]
      guard isRequested(number) else { return "PID \(spacedHex([number])) was not requested" }
      guard let length = length(of: number) else { return "PID \(spacedHex([number])) is unknown" }
      guard answer.endIndex - position >= headerLength + length else { return "PID \(spacedHex([number])) is truncated" }
      position += headerLength + length
    }
    position = answer.startIndex + 1
    while position < answer.endIndex {
      let start = position + headerLength
      position = start + (length(of: answer[position]) ?? 1)
      body(answer[start - headerLength], start..<min(position, answer.endIndex))
    }
    return nil
  }
}
