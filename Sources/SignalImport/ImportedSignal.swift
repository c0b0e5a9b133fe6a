// An imported signal, with the keys of its configuration section, and the text of the section in TOML.

import Protocols

struct ImportedSignal: Sendable, Equatable {
  var name = ""
  var request: String
  var header: String?
  var reply: String?
  /// The address bytes of frames, two hex digits each.
  var extendedAddress: String?
  var testerAddress: String?
  var value: String
  var type = ValueType.float
  var unit: String?
  var minimum: Double?
  var maximum: Double?
  var period: Double?
  var help: String?
  /// Whether the signal is valid only for certain model years.
  var hasModelYears = false
  /// The comment lines above the keys.
  var comments: [String] = []

  /// The section as the configuration parser would return it.
  var section: Setup.Subsection {
    var options: [String: Value] = ["request": .string(request), "value": .string(value), "type": .string(type.rawValue)]
    for (key, text) in [
      ("header", header), ("reply", reply), ("extended-address", extendedAddress), ("tester-address", testerAddress), ("unit", unit),
      ("help", help),
    ] {
      if let text { options[key] = .string(text) }
    }
    for (key, number) in [("min", minimum), ("max", maximum), ("period", period)] {
      if let number { options[key] = .float(number) }
    }
    return Setup.Subsection(name, options)
  }

  var lines: [String] {
    var lines = comments.map { "# \(visible($0, limit: 300))" } + ["[signal.\(name)]", "request = \(quoted(request))"]
    if let header { lines.append("header = \(quoted(header))") }
    if let reply { lines.append("reply = \(quoted(reply))") }
    if let extendedAddress { lines.append("extended-address = \(quoted(extendedAddress))") }
    if let testerAddress { lines.append("tester-address = \(quoted(testerAddress))") }
    lines.append("value = \(quoted(value))")
    if type != .float { lines.append("type = \(quoted(type.rawValue))") }
    if let unit { lines.append("unit = \(quoted(unit))") }
    if let minimum { lines.append("min = \(Value.text(minimum))") }
    if let maximum { lines.append("max = \(Value.text(maximum))") }
    if let period { lines.append("period = \(Value.text(period))") }
    if let help { lines.append("help = \(quoted(help))") }
    return lines
  }
}
