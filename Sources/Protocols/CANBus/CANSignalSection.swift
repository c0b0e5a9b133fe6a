// The configuration section `[can-signal.NAME]`: the keys of a signal on a CAN bus, and their validation.

extension CANSignal {
  static let section = Section(
    "can-signal",
    options: [
      Option("can-id", ValueRule(.string), help: "CAN identifier of the message, 3 or 8 hex digits"),
      Option("bits", ValueRule(.string), help: "Bits of the signal as in a DBC file: START|LENGTH@ORDER and + or -, such as 16|12@1+"),
      Option(
        "multiplier", ValueRule(.string), help: "Bits of a second number, by which the first one is multiplied before factor and offset"),
      Option("when", ValueRule(.list), help: "Conditions on multiplexers, which must all be met, such as 0|8@1+: 3, 5-7"),
      Option(
        "encoding", ValueRule(.string, choices: ["integer", "float"]), default: .string("integer"),
        help: "What the bits are: an integer, or a number of IEEE 754 (32 or 64 bits)"),
      Option("factor", ValueRule(.float), default: .float(1), help: "Factor by which the number is multiplied"),
      Option("offset", ValueRule(.float), default: .float(0), help: "Number that is added to the product"),
      Option("decimals", ValueRule(.int, range: 0...9), help: "Number of decimals to which the value is rounded"),
      Option(
        "type", ValueRule(.string, choices: ["float", "int", "bool", "string"]), default: .string("float"), help: "Type of the value"),
      Option(
        "labels", ValueRule(.list),
        help: "Strings for numbers before factor and offset, such as 1: park; on or off for type bool; for numbers, why there is no value"),
      Option("unit", ValueRule(.string), help: "Unit of the value, such as °C"),
      Option("min", ValueRule(.float), help: "Minimum; a lower value is absent"),
      Option("max", ValueRule(.float), help: "Maximum; a higher value is absent"),
      Option(
        "cycle-time", ValueRule(.float, unit: "ms", range: 1...3_600_000),
        help: "Milliseconds between two messages; a value expires after three of them, but not within 300 ms; default: after 3 s"),
      Option("retained", ValueRule(.bool), default: .bool(false), help: "Keep the last value, with its age, when messages stop"),
    ] + CustomSignal.displayOptions,
    help: "A signal on a CAN bus: a property that a message contains", folder: "signals.d", maxNameLength: CustomSignal.maxNameLength
  ) { section, _ in
    var problems: [OptionError] = []
    _ = CANSignal(section, &problems)
    return problems
  }

  /// Parses a section or reports its problems.
  package init?(_ section: Setup.Subsection, _ problems: inout [OptionError]) {
    let before = problems.count
    let options = section.options
    let text = { (key: String) -> String? in if case .string(let text)? = options[key] { text } else { nil } }
    if CANBusProperty.names.contains(section.name) {
      problems.append(OptionError(nil, "\(section.name) is a property of every device of kind can; give the signal another name"))
    }
    let identifier = Self.parse("can-id", text("can-id"), example: "3E9", &problems) { text throws(ValueError) in
      guard let identifier = CANIdentifier(text) else {
        throw ValueError("not a CAN identifier; write 3 or 8 hex digits, as in 3E9 or 18FEF100")
      }
      return identifier
    }
    let field = Self.parse("bits", text("bits"), example: "16|12@1+", &problems) { text throws(ValueError) in try CANBitField(text) }
    var conditions: [CANCondition] = []
    if case .list(let entries)? = options["when"] {
      for entry in entries {
        do throws(ValueError) { conditions.append(try CANCondition(entry)) } catch {
          problems.append(OptionError("when", error.description))
        }
      }
    }
    let multiplier = text("multiplier").flatMap { text in
      Self.parse("multiplier", text, example: "0|16@1+", &problems) { text throws(ValueError) in try CANBitField(text) }
    }
    let isFloat = text("encoding") == "float"
    if isFloat, let field, field.length != 32, field.length != 64 {
      problems.append(OptionError("encoding", "a float has 32 or 64 bits, not \(field.length); correct bits, or remove the key"))
    }
    let type = text("type").flatMap(ValueType.init) ?? .float
    let range = CustomSignal.range(options, type, &problems)
    let (factor, offset) = (options["factor"]?.number ?? 1, options["offset"]?.number ?? 0)
    let form = Self.form(type, factor, offset, isFloat: isFloat, &problems)
    let decimals = options["decimals"]?.number.map { Int($0) }
    for (key, isSet) in [("decimals", decimals != nil), ("multiplier", options["multiplier"] != nil)] where isSet && type != .float {
      problems.append(OptionError(key, "only type float has it; remove the key, or set type = \"float\""))
    }
    let labels = Self.labels(options["labels"], type, &problems)
    for key in ["unit", "help"] { CustomSignal.check(key, text(key), maxLength: key == "unit" ? 16 : 200, &problems) }
    guard problems.count == before, let identifier, let field, let form else { return nil }
    self.identifier = identifier
    self.field = field
    self.conditions = conditions
    cycleTime = options["cycle-time"]?.number.map { Nanoseconds(min(max($0, 1), 3_600_000) * 1e6) }
    reader = CANValueReader(
      field: field, multiplier: multiplier, isFloat: isFloat, form: form,
      scale: decimals.map { (0..<max($0, 0)).reduce(1.0) { power, _ in power * 10 } }, labels: labels, range: range)
    property = Property(
      section.name, type, unit: text("unit").flatMap { $0.isEmpty ? nil : $0 }, range: range,
      choices: type == .string ? Set(labels.values).sorted() : [],
      lifetime: options["retained"] == .bool(true) ? .retained : .whileUp,
      group: text("group").flatMap(PropertyGroup.init) ?? .general,
      rank: options["rank"]?.number.flatMap { PropertyRank(rawValue: Int($0)) } ?? .main,
      help: text("help") ?? "Signal in message \(identifier.text)")
  }

  private static func parse<Parsed>(
    _ key: String, _ text: String?, example: String, _ problems: inout [OptionError], _ body: (String) throws(ValueError) -> Parsed
  ) -> Parsed? {
    guard let text else {
      problems.append(OptionError(nil, "\(key) is missing; add \(key) = \"\(example)\", or another one"))
      return nil
    }
    do throws(ValueError) { return try body(text) } catch {
      problems.append(OptionError(key, error.description))
      return nil
    }
  }

  private static func form(
    _ type: ValueType, _ factor: Double, _ offset: Double, isFloat: Bool, _ problems: inout [OptionError]
  ) -> CANValueReader.Form? {
    if factor == 0 { problems.append(OptionError("factor", "the factor must not be 0; write 1, or remove the key")) }
    let isPlain = factor == 1 && offset == 0 && !isFloat
    switch type {
    case .bool, .string:
      guard !isPlain else { return type == .bool ? .bool : .string }
      let key = isFloat ? "encoding" : factor == 1 ? "offset" : "factor"
      problems.append(OptionError(key, "only types float and int have it; remove the key, or set type = \"float\""))
    case .int:
      let limit = 0x1p53
      if isFloat {
        problems.append(OptionError("encoding", "the bits of a whole number are an integer; remove the key, or set type = \"float\""))
      } else if factor.rounded() != factor || offset.rounded() != offset || abs(factor) > limit || abs(offset) > limit {
        let key = factor.rounded() == factor && abs(factor) <= limit ? "offset" : "factor"
        problems.append(OptionError(key, "the result is not a whole number; set type = \"float\""))
      } else {
        return .int(factor: Int(factor), offset: Int(offset))
      }
    case .float, .list: return .linear(factor: factor, offset: offset)
    }
    return nil
  }

  /// Parses `NUMBER: TEXT`. The texts of booleans are `on` and `off`.
  private static func labels(_ value: Value?, _ type: ValueType, _ problems: inout [OptionError]) -> [Int64: String] {
    guard value != nil || type == .string else { return [:] }
    // Labels have the same form for all types.
    let labels = CustomSignal.labels(value, .string, &problems)
    if type == .bool, let other = labels.values.sorted().first(where: { $0 != CANValueReader.on && $0 != CANValueReader.off }) {
      let text = visible(other, limit: 40)
      problems.append(OptionError("labels", "\"\(text)\" is not on or off; write such as 3: on, or set type = \"string\""))
    }
    return Dictionary(uniqueKeysWithValues: labels.map { (Int64($0.key), $0.value) })
  }
}
