// A signal imported from a DBC file, with the keys of its configuration section, and the text of the section in TOML.

import Protocols

struct ImportedCANSignal: Sendable, Equatable {
  var name = ""
  private let identifier: String
  private let bits: String
  private let conditions: [String]
  private let isFloat: Bool
  private let factor: Double
  private let offset: Double
  private let type: ValueType
  private let labels: [String]
  private let unit: String?
  private let minimum: Double?
  private let maximum: Double?
  private let cycleTime: Double?
  private let help: String
  /// The texts of numbers that are valid values, and therefore not labels.
  let unusedLabels: [String]

  init(_ signal: DBCSignal, of message: DBCMessage, conditions: [CANCondition]) throws(ValueError) {
    guard signal.factor != 0 else { throw ValueError("the factor is 0; correct it") }
    identifier = message.identifier.text
    bits = signal.field.text
    self.conditions = conditions.map(\.text)
    (isFloat, factor, offset) = (signal.isFloat, signal.factor, signal.offset)
    let isPlain = factor == 1 && offset == 0 && !isFloat
    let unit = DBCUnits.unit(signal.unit)
    let texts = try DBCLabels(of: signal, hasUnit: unit != nil)
    self.unit = texts.isEnumeration ? nil : unit
    labels = texts.used.map { "\($0.value): \($0.text)" }
    unusedLabels = texts.unused.map { "\($0.value): \($0.text)" }
    if texts.isEnumeration {
      type = .string
    } else if isPlain, unit == nil, signal.field.length == 1, labels.isEmpty {
      type = .bool
    } else {
      let isWhole = factor.rounded() == factor && offset.rounded() == offset && abs(factor) < 0x1p53 && abs(offset) < 0x1p53
      type = isWhole && !isFloat && (signal.field.length < 64 || signal.field.isSigned) ? .int : .float
    }
    // A minimum of 0 with a maximum of 0 means that there is no range. Limits that the bits cannot exceed are not needed.
    let ends = [signal.field.range.lowerBound, signal.field.range.upperBound].map { $0 * signal.factor + signal.offset }.sorted()
    let hasRange = signal.minimum < signal.maximum && type != .bool && type != .string
    minimum = hasRange && (isFloat || signal.minimum > ends[0]) ? signal.minimum : nil
    maximum = hasRange && (isFloat || signal.maximum < ends[1]) ? signal.maximum : nil
    cycleTime = message.cycleTime.flatMap { $0 >= 1 ? min($0, 3_600_000) : nil }
    let comment = visible((signal.comment ?? "").split(whereSeparator: \.isWhitespace).joined(separator: " "), limit: 200)
    help = comment.isEmpty ? visible("\(signal.fullName) of \(message.fullName)", limit: 200) : comment
  }

  /// The section as the configuration parser would return it.
  var section: Setup.Subsection {
    var options: [String: Value] = [
      "can-id": .string(identifier), "bits": .string(bits), "encoding": .string(isFloat ? "float" : "integer"), "factor": .float(factor),
      "offset": .float(offset), "type": .string(type.rawValue), "retained": .bool(false), "help": .string(help),
    ]
    if !conditions.isEmpty { options["when"] = .list(conditions) }
    if !labels.isEmpty { options["labels"] = .list(labels) }
    if let unit { options["unit"] = .string(unit) }
    for (key, number) in [("min", minimum), ("max", maximum), ("cycle-time", cycleTime)] {
      if let number { options[key] = .float(number) }
    }
    return Setup.Subsection(name, options)
  }

  var lines: [String] {
    var lines = ["[can-signal.\(name)]", "can-id = \(quoted(identifier))", "bits = \(quoted(bits))"]
    if !conditions.isEmpty { lines.append("when = \(Self.list(conditions))") }
    if isFloat { lines.append("encoding = \"float\"") }
    if factor != 1 { lines.append("factor = \(Value.text(factor))") }
    if offset != 0 { lines.append("offset = \(Value.text(offset))") }
    if type != .float { lines.append("type = \(quoted(type.rawValue))") }
    if !labels.isEmpty { lines.append("labels = \(Self.list(labels))") }
    if let unit { lines.append("unit = \(quoted(unit))") }
    if let minimum { lines.append("min = \(Value.text(minimum))") }
    if let maximum { lines.append("max = \(Value.text(maximum))") }
    if let cycleTime { lines.append("cycle-time = \(Value.text(cycleTime))") }
    lines.append("help = \(quoted(help))")
    return lines
  }

  private static func list(_ texts: [String]) -> String { "[" + texts.map(quoted).joined(separator: ", ") + "]" }
}
