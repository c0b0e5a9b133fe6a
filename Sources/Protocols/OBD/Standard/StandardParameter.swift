// The PIDs of services 01 and 02 (SAE J1979, ISO 15031-5): length and meaning. Several PIDs in one response can be separated only by their
// lengths, so a response of wrong length is rejected, and a PID with uncertain length or formula is not listed.

/// One PID of SAE J1979.
struct StandardParameter: Sendable {
  let number: UInt8
  /// Its length in bytes.
  let bytes: Int
  let rows: [DataRow]

  init(_ number: UInt8, _ bytes: Int, _ rows: DataRow...) {
    (self.number, self.bytes, self.rows) = (number, bytes, rows)
  }

  init(_ number: UInt8, _ bytes: Int, rows: [DataRow]) {
    (self.number, self.bytes, self.rows) = (number, bytes, rows)
  }

  /// All PIDs by number, without the bitmaps of supported PIDs.
  static let all: [UInt8: StandardParameter] = {
    var table: [UInt8: StandardParameter] = [:]
    for parameter in [status, air, sensors, distances, throttle, engine].joined() { table[parameter.number] = parameter }
    return table
  }()

  /// The length of each PID; 0 if unknown.
  private static let lengths: [UInt8] = (0...255).map { number in
    number % 0x20 == 0 ? 4 : UInt8(truncatingIfNeeded: all[UInt8(number)]?.bytes ?? 0)
  }

  /// The length of a PID, bitmaps included; nil if unknown.
  static func bytes(of number: UInt8) -> Int? {
    let length = lengths[Int(number)]
    return length > 0 ? Int(length) : nil
  }

  /// The PIDs that the four-byte bitmap `base` (00, 20, 40 …) lists as supported, the next bitmap included.
  static func supported(_ bitmap: some Sequence<UInt8>, base: UInt8) -> [UInt8] {
    var found: [UInt8] = []
    for (index, byte) in bitmap.prefix(4).enumerated() {
      for bit in 0..<8 where byte << bit & 0x80 != 0 {
        if let number = UInt8(exactly: Int(base) + index * 8 + bit + 1) { found.append(number) }
      }
    }
    return found
  }

  /// Splits a response of service 01 or 02 into PIDs and passes each with the range of its data in `answer`. Returns an error message, and
  /// passes none, if the lengths do not match.
  static func split(
    _ answer: ArraySlice<UInt8>, where isAsked: (UInt8) -> Bool = { _ in true }, _ part: (_ number: UInt8, _ data: Range<Int>) -> Void
  ) -> String? {
    guard answer.first == 0x41 || answer.first == 0x42 else { return "not a response of service 01 or 02" }
    // Service 02 has the frame number after each PID.
    let head = answer.first == 0x42 ? 2 : 1
    var at = answer.startIndex + 1
    guard at < answer.endIndex else { return "response without a PID" }
    while at < answer.endIndex {
      guard isAsked(answer[at]) else { return "PID \(spacedHex([answer[at]])) was not requested" }
      guard let length = bytes(of: answer[at]) else { return "PID \(spacedHex([answer[at]])) is unknown" }
      guard answer.endIndex - at >= head + length else { return "PID \(spacedHex([answer[at]])) is truncated" }
      at += head + length
    }
    at = answer.startIndex + 1
    while at < answer.endIndex {
      let start = at + head
      at = start + (bytes(of: answer[at]) ?? 1)
      part(answer[start - head], start..<min(at, answer.endIndex))
    }
    return nil
  }
}

/// Shorthands for the rows of the tables.
extension StandardParameter {
  static let percentRange = 0.0...100.0

  static func percent(_ name: String, _ help: String, at: Int = 0) -> DataRow {
    .scaled(Property(name, .float, unit: "%", range: percentRange, help: help), .u8(at), times: 100, over: 255, decimals: 1)
  }

  /// -100 to 99.2 %; 255 may mean that the sensor is not used.
  static func trim(_ name: String, _ help: String, at: Int = 0, absentAtTop: Bool = false) -> DataRow {
    .scaled(
      Property(name, .float, unit: "%", range: -100...100, help: help), .u8(at), times: 100, over: 128, plus: -100, decimals: 2,
      absent: absentAtTop ? (0xFF, .notReported) : nil)
  }

  static func celsius(_ name: String, _ help: String, at: Int = 0) -> DataRow {
    .whole(Property(name, .int, unit: "°C", range: -40...215, help: help), .u8(at), plus: -40)
  }

  static func count(
    _ name: String, _ field: NumberField, unit: String? = nil, times: Int = 1, lifetime: Property.Lifetime = .fresh(2 * .second),
    _ help: String
  ) -> DataRow {
    let top = Double((1 << (8 * field.layout.size)) - 1) * Double(times)
    return .whole(Property(name, .int, unit: unit, range: 0...top, lifetime: lifetime, help: help), field, times: times)
  }

  static func scaled(
    _ name: String, _ field: NumberField, unit: String?, times: Double = 1, over: Double = 1, plus: Double = 0, decimals: Int,
    lifetime: Property.Lifetime = .fresh(2 * .second), _ help: String
  ) -> DataRow {
    let bits = 8 * field.layout.size
    let low = field.layout.isSigned ? -Double(1 << (bits - 1)) : 0
    let high = field.layout.isSigned ? Double(1 << (bits - 1)) : Double(1 << bits)
    let range = low * times / over + plus...high * times / over + plus
    return .scaled(
      Property(name, .float, unit: unit, range: range, lifetime: lifetime, help: help), field, times: times, over: over, plus: plus,
      decimals: decimals)
  }
}
