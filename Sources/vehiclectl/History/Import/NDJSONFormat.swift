// Reads JSON lines written by `history export`: one sample per line. No I/O except for the file.

import Protocols
import Varlink

struct NDJSONFormat: SampleFormat {
  private let known: [HistoryContract.Series]

  init(_ known: [HistoryContract.Series]) { self.known = known }

  func next(_ file: ImportFile) throws(Failure) -> [ImportedSample]? {
    guard let bytes = try file.nextLine() else { return nil }
    if bytes.isEmpty { return [] }
    guard let json = JSON(String(decoding: bytes, as: UTF8.self)) else { throw file.failure("not JSON") }
    guard case .int(let time)? = json["time"], let device = json["device"]?.string, let property = json["property"]?.string else {
      throw file.failure("\"time\", \"device\" or \"property\" is missing")
    }
    let unit = json["unit"]?.string
    let given = json["type"]?.string.flatMap(ValueType.init)
    let type =
      given
      ?? known.first { $0.device == device && $0.property == property && $0.unit == unit }.flatMap { ValueType(rawValue: $0.type) }
    let value = json["value"] ?? .null
    if value == .null {
      guard let type else { return [] }  // an absent value of unknown type: there is no series to add it to
      return [
        ImportedSample(
          device: device, property: property, type: type, unit: unit, time: time, content: .absent(json["reason"]?.string ?? "absent"))
      ]
    }
    guard let parsed = Self.value(value, type) else {
      throw file.failure("the value of \(property) is not \(type?.article ?? "a value")")
    }
    return [
      ImportedSample(device: device, property: property, type: parsed.type, unit: unit, time: time, content: .value(parsed))
    ]
  }

  private static func value(_ json: JSON, _ type: ValueType?) -> Value? {
    switch (json, type) {
    case (.bool(let flag), .bool?), (.bool(let flag), nil): .bool(flag)
    case (.int(let number), .int?), (.int(let number), nil): .int(number)
    case (.int(let number), .float?): .float(Double(number))
    case (.float(let number), .float?), (.float(let number), nil): .float(number)
    case (.string(let text), .string?), (.string(let text), nil): .string(text)
    case (.array(let elements), .list?), (.array(let elements), nil):
      elements.allSatisfy { $0.string != nil } ? .list(elements.compactMap(\.string)) : nil
    default: nil
    }
  }
}
