// The `obd` kind as the configuration knows it: links, keys, and how its machine is made.

extension Kind {
  /// Cars through an ELM327 adapter.
  public static let obd = Kind(
    name: "obd",
    summary: "A car through an ELM327 adapter: any with OBD-II, and electric Hyundai and Kia in depth",
    links: [LinkRole(schemes: ["serial", "tcp", "ble"], gatt: .elm327)],
    options: [
      Option(
        "rate", ValueRule(.float, unit: "Hz", range: 0...1000), default: .float(20),
        help: "Polls a second at most; 0 polls back to back"),
      Option(
        "vehicle", ValueRule(.string, choices: VehicleChoice.allCases.map(\.rawValue)), default: .string(VehicleChoice.auto.rawValue),
        help: "What is asked: auto finds out; e-gmp (Ioniq 5, EV6), hkmc-ev (other electric Hyundai and Kia), ice (standard OBD-II)"),
      Option(
        "poll", ValueRule(.string, choices: ["all", "fast"]), default: .string("all"),
        help: "all: poll every supported property; fast: only the properties at the device's rate, and your own signals"),
      Option(
        "probe-pause", ValueRule(.float, unit: "s", range: 30...3600), default: .float(30),
        help: "From one question to the next while the vehicle sleeps or is left alone"),
      Option(
        "min-voltage", ValueRule(.float, unit: "V", range: 0...30), default: .float(11.8),
        help: "Below it for 30 s a vehicle that nobody uses is left alone, until its battery has 0.3 V more; 0 never"),
      Option(
        "idle-after", ValueRule(.float, unit: "s", range: 0...86400), default: .float(600),
        help: "Not driven, charged or switched on for so long, the vehicle is left alone, so that it can fall asleep; 0 never"),
      Option(
        "low-power", ValueRule(.bool), default: .bool(false),
        help: "The adapter sleeps from one question to the next while the vehicle is left alone, if it knows how (AT LP)"),
      Option(
        "allow-raw", ValueRule(.bool), default: .bool(false),
        help: "Lets the query action send more than read requests: what it sends can change the vehicle"),
    ],
    sections: [CustomSignal.section, PropertyWish.section]
  ) { setup throws(OptionError) in
    let allowRaw = setup.options["allow-raw"] == .bool(true)
    var problems: [OptionError] = []
    let signals = (setup.sections[CustomSignal.section.name] ?? []).compactMap { CustomSignal($0, of: setup, &problems) }
    let wishes = (setup.sections[PropertyWish.section.name] ?? []).compactMap { PropertyWish($0, &problems) }
    if let first = problems.first { throw first }
    let choice = VehicleChoice(rawValue: setup.options["vehicle"]?.text ?? "") ?? .auto
    // A recording answers what was asked then: the gaps of the fast request were filled with other questions.
    let isReplay = setup.links[.main]?.hasPrefix("replay:") ?? false
    let usual = CarCare()
    let time = { (key: String) in setup.options[key]?.number.map { Nanoseconds($0 * 1e9) } }
    let care = CarCare(
      floor: setup.options["min-voltage"]?.number ?? usual.floor, pause: time("probe-pause") ?? usual.pause,
      idleAfter: time("idle-after") ?? usual.idleAfter, sleepsAdapter: setup.options["low-power"] == .bool(true))
    var machine = OBDMachine(
      rate: setup.options["rate"]?.number ?? 20, allowRaw: allowRaw, phase: setup.phase, vehicle: choice,
      isFastOnly: isReplay || setup.options["poll"] == .string("fast"), signals: isReplay ? [] : signals,
      wishes: PropertyWishes(wishes), care: isReplay ? nil : care)
    machine.line = LineSpeed(of: setup.links[.main] ?? "")
    return machine
  }
}

extension OBDQuery {
  static let action = Action(
    "query",
    arguments: [
      Argument(argumentNames.request, .string, help: "Hex digits of a read request, as in 010C, or ATI, ATRV, ATDPN, STI"),
      Argument(argumentNames.header, .string, optional: true, help: "CAN identifier to ask, 3 or 8 hex digits, as in 7E4"),
    ],
    help: "Asks the vehicle or the adapter between two polls")
}
