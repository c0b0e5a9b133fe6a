// What the bytes of an answer say in words, where the standard fixes it (SAE J1979 services 01 and 09, negative
// responses). A table of lengths is the parser: several parameters in one answer can only be told apart by it, so an
// unknown one ends the reading. It never guesses.

enum OBDMeaning {
  /// A parameter of service 01: value = (first one or two bytes as a number) * scale + offset.
  private struct Parameter {
    let name: String
    let bytes: Int
    /// Bytes that make the number; 0 shows the data as hex.
    let width: Int
    let scale: Double
    let offset: Double
    let unit: String

    init(_ name: String, _ bytes: Int, width: Int? = nil, _ scale: Double = 1, _ offset: Double = 0, _ unit: String = "") {
      self.name = name
      self.bytes = bytes
      self.width = width ?? bytes
      self.scale = scale
      self.offset = offset
      self.unit = unit
    }
  }

  private static let percent = 100.0 / 255
  private static let trim = 100.0 / 128

  /// Service 01 by parameter number. Bit fields and enumerations keep their bytes.
  private static let parameters: [UInt8: Parameter] = [
    0x02: Parameter("freeze frame code", 2, width: 0),
    0x03: Parameter("fuel system status", 2, width: 0),
    0x04: Parameter("load", 1, percent, 0, " %"),
    0x05: Parameter("coolant", 1, 1, -40, " °C"),
    0x06: Parameter("short fuel trim 1", 1, trim, -100, " %"),
    0x07: Parameter("long fuel trim 1", 1, trim, -100, " %"),
    0x08: Parameter("short fuel trim 2", 1, trim, -100, " %"),
    0x09: Parameter("long fuel trim 2", 1, trim, -100, " %"),
    0x0A: Parameter("fuel pressure", 1, 3, 0, " kPa"),
    0x0B: Parameter("intake pressure", 1, 1, 0, " kPa"),
    0x0C: Parameter("engine speed", 2, 0.25, 0, " rpm"),
    0x0D: Parameter("speed", 1, 1, 0, " km/h"),
    0x0E: Parameter("timing advance", 1, 0.5, -64, "°"),
    0x0F: Parameter("intake air", 1, 1, -40, " °C"),
    0x10: Parameter("air flow", 2, 0.01, 0, " g/s"),
    0x11: Parameter("throttle", 1, percent, 0, " %"),
    0x12: Parameter("secondary air", 1, width: 0),
    0x13: Parameter("oxygen sensors", 1, width: 0),
    0x1C: Parameter("OBD standard", 1),
    0x1F: Parameter("run time", 2, 1, 0, " s"),
    0x21: Parameter("distance with fault", 2, 1, 0, " km"),
    0x2F: Parameter("fuel level", 1, percent, 0, " %"),
    0x30: Parameter("warm-ups since clear", 1),
    0x31: Parameter("distance since clear", 2, 1, 0, " km"),
    0x33: Parameter("air pressure", 1, 1, 0, " kPa"),
    0x42: Parameter("supply", 2, 0.001, 0, " V"),
    0x43: Parameter("absolute load", 2, percent, 0, " %"),
    0x45: Parameter("relative throttle", 1, percent, 0, " %"),
    0x46: Parameter("ambient", 1, 1, -40, " °C"),
    0x49: Parameter("pedal D", 1, percent, 0, " %"),
    0x4A: Parameter("pedal E", 1, percent, 0, " %"),
    0x4C: Parameter("commanded throttle", 1, percent, 0, " %"),
    0x51: Parameter("fuel type", 1),
    0x5B: Parameter("hybrid battery life", 1, percent, 0, " %"),
    0x5C: Parameter("oil", 1, 1, -40, " °C"),
    0x5E: Parameter("fuel rate", 2, 0.05, 0, " L/h"),
    0xA6: Parameter("odometer", 4, 0.1, 0, " km"),
  ]

  /// The words for an answer; empty where there are none.
  static func of(_ message: ArraySlice<UInt8>) -> String {
    let bytes = Array(message)
    switch bytes.first {
    case 0x7F where bytes.count >= 3: return "refused: \(NegativeResponse.name(of: bytes[2]))"
    case 0x41: return currentData(bytes)
    case 0x49 where bytes.count >= 3 && bytes[1] == 0x02: return vehicleNumber(bytes.dropFirst(3))
    case 0x62 where bytes.count >= 3 && bytes[1] == 0xF1 && bytes[2] == 0x90: return vehicleNumber(bytes.dropFirst(3))
    default: return ""
    }
  }

  private static func currentData(_ bytes: [UInt8]) -> String {
    var found: [String] = []
    var rest = bytes.dropFirst()
    while let number = rest.popFirst() {
      let count = number % 0x20 == 0 || number == 0x01 ? 4 : parameters[number]?.bytes ?? .max
      guard rest.count >= count else { break }
      found.append(words(for: number, Array(rest.prefix(count))))
      rest = rest.dropFirst(count)
    }
    return found.joined(separator: ", ")
  }

  private static func words(for number: UInt8, _ data: [UInt8]) -> String {
    if number % 0x20 == 0 { return "supported \(spacedHex([number &+ 1]))-\(spacedHex([number &+ 0x20])): \(spacedHex(data))" }
    if number == 0x01 { return "fault lamp \(data[0] >> 7 == 1 ? "on" : "off"), \(data[0] & 0x7F) codes" }
    guard let parameter = parameters[number] else { return "" }
    if parameter.width == 0 { return "\(parameter.name) \(spacedHex(data))" }
    let raw = data.prefix(parameter.width).reduce(0) { $0 << 8 | Int($1) }
    let value = ((Double(raw) * parameter.scale + parameter.offset) * 100).rounded() / 100
    return "\(parameter.name) \(Value.text(value))\(parameter.unit)"
  }

  /// Seventeen letters and digits; older networks pad with zeros.
  private static func vehicleNumber(_ bytes: ArraySlice<UInt8>) -> String {
    let text = bytes.filter { $0 != 0 && $0 != 0xFF }
    let isNumber = text.count == 17 && text.allSatisfy { isDigit($0) || (0x41...0x5A).contains($0) && !"IOQ".utf8.contains($0) }
    return isNumber ? "vehicle number \(String(decoding: text, as: UTF8.self))" : ""
  }
}
