// The meaning of standard responses as text: PIDs of services 01 and 02, trouble codes, test results, vehicle information, negative
// responses.

enum ResponseDescription {
  /// The text for a response; empty if unknown.
  static func of(_ message: ArraySlice<UInt8>, _ scales: Scales = Scales(), from source: UInt32? = nil) -> String {
    let start = message.startIndex
    switch message.first {
    case 0x7F where message.count >= 3: return "negative response: \(NegativeResponse.name(of: message[start + 2]))"
    case 0x41, 0x42: return parameters(message, scales, from: source)
    case 0x43, 0x47, 0x4A: return codes(message)
    case 0x44 where message.count == 1: return "trouble codes cleared"
    case 0x46: return tests(message)
    case 0x49 where message.count >= 3: return information(message, of: message[start + 1])
    case 0x62 where message.starts(with: [0x62, 0xF1, 0x90]): return information(message, of: 0x02)
    default: return ""
    }
  }

  private static func parameters(_ message: ArraySlice<UInt8>, _ scales: Scales, from source: UInt32?) -> String {
    var found: [String] = []
    let problem = StandardParameter.split(message) { number, data in
      if number % 0x20 == 0 {
        found.append("supported \(spacedHex([number &+ 1]))-\(spacedHex([number &+ 0x20])): \(spacedHex(message[data]))")
      } else if let parameter = StandardParameter.all[number] {
        let texts = message[data].withUnsafeBufferPointer { bytes in
          parameter.rows.compactMap { text(for: $0, bytes, scales, from: source) }
        }
        found += texts.isEmpty ? ["PID \(spacedHex([number])): \(spacedHex(message[data]))"] : texts
      }
    }
    return problem == nil ? found.joined(separator: ", ") : ""
  }

  /// The name and the value: `coolant temperature 90 °C`; nil for absent and unscaled values.
  private static func text(for row: DataRow, _ data: UnsafeBufferPointer<UInt8>, _ scales: Scales, from source: UInt32?) -> String? {
    guard case .value(let value) = row.value(data, scales, from: source) else { return nil }
    let property = row.property
    let name = String(property.name.map { $0 == "-" ? " " : $0 })
    if case .list(let items) = value { return items.isEmpty ? nil : "\(name): \(items.joined(separator: "; "))" }
    guard let unit = property.unit, unit != name else { return "\(name) \(value.text)" }
    return "\(name) \(value.text)\(unit == "°" ? "" : " ")\(unit)"
  }

  private static func codes(_ message: ArraySlice<UInt8>) -> String {
    guard case .codes(let codes) = TroubleCode.read(message) else { return "" }
    if codes.isEmpty { return "no trouble codes" }
    return codes.map { code in code.meaning.map { "\(code.text) (\($0))" } ?? code.text }.joined(separator: ", ")
  }

  private static func tests(_ message: ArraySlice<UInt8>) -> String {
    guard case .results(let results) = TestResult.read(message) else { return "" }
    return results.map { result in
      let name = result.monitorName ?? "monitor \(spacedHex([result.monitor]))"
      let unit = result.unit.map { " \($0)" } ?? (result.isScaled ? "" : " raw")
      let limits = "\(Value.text(result.minimum)) to \(Value.text(result.maximum))"
      return "\(name), test \(spacedHex([result.test])): \(Value.text(result.value))\(unit) (\(limits)), "
        + (result.hasRun ? result.hasPassed ? "passed" : "failed" : "not run")
    }.joined(separator: "; ")
  }

  private static func information(_ message: ArraySlice<UInt8>, of type: UInt8) -> String {
    let name: String
    switch type {
    case 0x02: name = "VIN"
    case 0x04: name = "calibration"
    case 0x06: name = "calibration verification number"
    case 0x0A: name = "ECU"
    default: return ""
    }
    guard case .texts(let texts) = VehicleInformation.read([message]) else { return "" }
    return "\(name) \(texts.joined(separator: ", "))"
  }
}
