// The configuration section `[signal.NAME]`: the keys of a custom signal, and their validation. Each problem names the key and, in a
// formula, the position.

extension CustomSignal {
  /// The maximum length of a name; imported names can be longer than built-in ones.
  static let maxNameLength = 64

  /// The keys of every signal that say how clients show it.
  static let displayOptions = [
    Option(
      "group", ValueRule(.string, choices: PropertyGroup.allCases.map(\.rawValue)), help: "Group in which clients show the value"),
    Option(
      "rank", ValueRule(.int, range: 1...4),
      help: "Importance: 1 also in one-line summaries, 2 and 3 in the group, 4 only on request"),
    Option("help", ValueRule(.string), help: "One-line description"),
  ]

  static let section = Section(
    "signal",
    options: [
      Option("request", ValueRule(.string), help: "Request: service and identifier, two hex digits per byte, such as 220101"),
      Option("header", ValueRule(.string), help: "CAN identifier to which the request is sent, 3 or 8 hex digits"),
      Option("reply", ValueRule(.string), help: "CAN identifier of the response, 3 or 8 hex digits"),
      Option(
        "extended-address", ValueRule(.string),
        help: "First byte of each frame sent, two hex digits: the address of the ECU, or an address extension"),
      Option(
        "tester-address", ValueRule(.string),
        help: "First byte of each frame received, two hex digits; default F1. Only with extended-address"),
      Option("value", ValueRule(.string), help: "Formula over the data bytes A to ZZ, such as (A*256+B)/10"),
      Option(
        "type", ValueRule(.string, choices: ["float", "int", "bool", "string"]), default: .string("float"), help: "Type of the value"),
      Option("decimals", ValueRule(.int, range: 0...9), help: "Number of decimals to which the value is rounded"),
      Option("labels", ValueRule(.list), help: "Strings for the results of the formula, such as 1: park; only for type string"),
      Option("unit", ValueRule(.string), help: "Unit of the value, such as °C"),
      Option("min", ValueRule(.float), help: "Minimum; a lower value is absent"),
      Option("max", ValueRule(.float), help: "Maximum; a higher value is absent"),
      Option(
        "length", ValueRule(.int, unit: "bytes", range: 1...4095),
        help: "Number of data bytes that a response must have; otherwise the value is absent"),
      Option("valid", ValueRule(.string), help: "Formula that checks the response; if its result is 0, the value is absent"),
      Option("retained", ValueRule(.bool), default: .bool(false), help: "Keep the last value, with its age, while the vehicle is silent"),
      Option("period", ValueRule(.float, unit: "s", range: 0.05...3600), default: .float(1), help: "Seconds between two polls"),
    ] + displayOptions,
    help: "A custom signal: a property that you define", folder: "signals.d", maxNameLength: maxNameLength
  ) { section, setup in
    var problems: [OptionError] = []
    _ = CustomSignal(section, of: setup, &problems)
    return problems
  }

  /// Parses a section or reports its problems.
  init?(_ section: Setup.Subsection, of setup: Setup, _ problems: inout [OptionError]) {
    let before = problems.count
    let text = { (key: String) -> String? in if case .string(let text)? = section.options[key] { text } else { nil } }
    if OBDMachine.ownProperties.contains(section.name) {
      problems.append(OptionError(nil, "\(section.name) is a property of every device of kind obd; give the signal another name"))
    }
    let request = Self.request(text("request"), of: setup, &problems)
    let expression = Self.expression("value", text("value"), &problems)
    let valid = section.options["valid"].map { Self.expression("valid", $0.text, &problems) }
    let header = Self.identifier("header", text("header"), &problems)
    let reply = Self.identifier("reply", text("reply"), &problems)
    if let header, let reply, header.is29Bit != reply.is29Bit {
      problems.append(
        OptionError("reply", "\(reply.text) cannot be the response identifier of \(header.text); write both with 3 or both with 8 digits"))
    }
    let addressBytes = Self.addressBytes(text("extended-address"), text("tester-address"), request, &problems)
    let type = text("type").flatMap(ValueType.init) ?? .float
    let range = Self.range(section.options, type, &problems)
    let labels = Self.labels(section.options["labels"], type, &problems)
    let (decimals, length) = (section.options["decimals"]?.number.map { Int($0) }, section.options["length"]?.number.map { Int($0) })
    if decimals != nil, type != .float {
      problems.append(OptionError("decimals", "only numbers of type float have decimals; remove the key, or set type = \"float\""))
    }
    for key in ["unit", "help"] { Self.check(key, text(key), maxLength: key == "unit" ? 16 : 200, &problems) }
    guard problems.count == before, let request, let expression else { return nil }
    let seconds = section.options["period"]?.number ?? 1
    let period = Nanoseconds(min(max(seconds, 0.05), 3600) * 1e9)
    let property = Property(
      section.name, type, unit: text("unit").flatMap { $0.isEmpty ? nil : $0 }, range: range, choices: Set(labels.values).sorted(),
      lifetime: section.options["retained"] == .bool(true) ? .retained : Self.lifetime(period),
      group: text("group").flatMap(PropertyGroup.init) ?? .general,
      rank: section.options["rank"]?.number.flatMap { PropertyRank(rawValue: Int($0)) } ?? .main,
      help: text("help") ?? "Custom signal: \(text("value") ?? "") of \(request.text)")
    let row = DataRow(
      property, .formula(expression), decimals: decimals, labels: labels, length: length, valid: valid ?? nil, outOfRangeReason: .outOfRange
    )
    self.init(row, request, header: header, reply: reply, addressBytes, period: period)
  }

  private static func request(_ text: String?, of setup: Setup, _ problems: inout [OptionError]) -> SignalRequest? {
    guard let text else {
      problems.append(OptionError(nil, "request is missing; add request = \"220101\", or another request"))
      return nil
    }
    do throws(ValueError) {
      return try SignalRequest(text, allowRaw: setup.options["allow-raw"] == .bool(true))
    } catch {
      problems.append(OptionError("request", error.description))
      return nil
    }
  }

  private static func expression(_ key: String, _ text: String?, _ problems: inout [OptionError]) -> Expression? {
    guard let text else {
      problems.append(OptionError(nil, "value is missing; add value = \"A\", or another formula over the bytes of the response"))
      return nil
    }
    do throws(ExpressionError) {
      return try Expression(text)
    } catch {
      problems.append(OptionError(key, error.message, at: error.offset))
      return nil
    }
  }

  private static func identifier(_ key: String, _ text: String?, _ problems: inout [OptionError]) -> CANIdentifier? {
    guard let text else { return nil }
    if let identifier = CANIdentifier(text) { return identifier }
    problems.append(OptionError(key, "not a CAN identifier; write 3 or 8 hex digits, as in 7E4 or 18DA10F1"))
    return nil
  }

  private static func addressBytes(_ sent: String?, _ received: String?, _ request: SignalRequest?, _ problems: inout [OptionError])
    -> ISOTPAddressing
  {
    guard let sent else {
      if received != nil { problems.append(OptionError("tester-address", "only frames with extended-address have it; add that key")) }
      return .normal
    }
    let target = addressByte(sent)
    let tester = received.map { addressByte($0) } ?? ISOTPAddressing.tester
    for (key, byte) in [("extended-address", target), ("tester-address", tester)] where byte == nil {
      problems.append(OptionError(key, "not an address byte; write two hex digits, as in 07"))
    }
    if let request, request.bytes.count > SignalRequest.maxLength - 1 {
      problems.append(
        OptionError("request", "with extended-address a request has at most \(SignalRequest.maxLength - 1) bytes; shorten it"))
    }
    guard let target, let tester else { return .normal }
    return .extended(target: target, tester: tester)
  }

  static func range(_ options: [String: Value], _ type: ValueType, _ problems: inout [OptionError]) -> ClosedRange<Double>? {
    let (low, high) = (options["min"]?.number, options["max"]?.number)
    guard low != nil || high != nil else { return nil }
    if type == .bool || type == .string {
      let what = type == .bool ? "a boolean" : "a string"
      problems.append(OptionError(low == nil ? "max" : "min", "\(what) has no range; leave it out, or set type = \"int\""))
    } else if let low, let high, low > high {
      problems.append(OptionError("max", "\(Value.text(high)) is less than min; swap the two"))
    } else {
      return (low ?? -.infinity)...(high ?? .infinity)
    }
    return nil
  }

  /// Parses `NUMBER: TEXT`.
  static func labels(_ value: Value?, _ type: ValueType, _ problems: inout [OptionError]) -> [Int: String] {
    guard case .list(let entries)? = value else {
      if type == .string { problems.append(OptionError("type", "a string needs labels; add labels = [\"1: park\", \"2: reverse\"]")) }
      return [:]
    }
    if type != .string { problems.append(OptionError("labels", "labels are for type string; set type = \"string\", or remove the key")) }
    if entries.isEmpty { problems.append(OptionError("labels", "the list is empty; write one as in [\"1: park\", \"2: reverse\"]")) }
    var labels: [Int: String] = [:]
    for entry in entries {
      let parts = entry.split(separator: ":", maxSplits: 1)
      guard parts.count == 2, let number = Int(parts[0]), let text = parts.last.map({ String($0.drop { $0 == " " }) }), !text.isEmpty
      else {
        problems.append(
          OptionError("labels", "\"\(visible(entry, limit: 40))\" is not a label; write a number and a string, as in \"1: park\""))
        continue
      }
      if labels[number] != nil { problems.append(OptionError("labels", "\(number) has two labels; remove one")) }
      labels[number] = text
      check("labels", text, maxLength: 64, &problems)
    }
    return labels
  }

  static func check(_ key: String, _ text: String?, maxLength: Int, _ problems: inout [OptionError]) {
    guard let text else { return }
    let isUnprintable = text.unicodeScalars.contains {
      [.control, .format, .lineSeparator, .paragraphSeparator, .surrogate].contains($0.properties.generalCategory)
    }
    if isUnprintable || text.unicodeScalars.count > maxLength {
      problems.append(OptionError(key, "only one line of up to \(maxLength) characters is allowed; shorten it"))
    }
  }
}
