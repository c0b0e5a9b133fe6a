// Payloads of values, as Home Assistant and evcc read them: plain text. No I/O.

import Protocols

enum PayloadText {
  /// What stands for an absent value. Home Assistant shows it as unknown.
  static let absent = "None"

  static func value(_ value: Value?, unit: String?) -> String {
    let text = text(value, unit: unit)
    // An empty message would delete the topic.
    return text.isEmpty ? absent : text
  }

  private static func text(_ value: Value?, unit: String?) -> String {
    switch value {
    case nil: absent
    case .bool(let value): value ? "true" : "false"
    case .int(let value): String(value)
    case .float(let number): Value.text(rounded(number, decimals: Resolution.decimals(of: unit)))
    case .string(let text): text
    case .list(let texts): texts.joined(separator: ",")
    }
  }

  /// Rounds half away from zero, so that a value needs no more digits than are meaningful.
  private static func rounded(_ number: Double, decimals: Int?) -> Double {
    guard let decimals else { return number }
    let scale = (0..<decimals).reduce(1.0) { scale, _ in scale * 10 }
    let scaled = (number * scale).rounded()
    // Dividing gives the number that is closest to the decimal one.
    return abs(scaled) < 0x1p53 ? scaled / scale : number
  }

  /// The attributes of a value: when it was measured, its unit, and why there is none.
  static func attributes(_ reading: CurrentReading, unit: String?) -> String {
    JSON.members([
      "time": reading.time.map { .string(WallTime.isoTime(Int64($0))) }, "unit": unit.map { .string($0) },
      "reason": reading.reason.map { .string($0) },
    ]).text
  }
}
