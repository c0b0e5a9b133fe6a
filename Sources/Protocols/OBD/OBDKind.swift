// The `obd` kind: links, options, and the construction of its protocol state machine, `OBDMachine`.

extension Kind {
  /// Cars through an ELM327 adapter, or a CAN interface.
  public static let obd = Kind(
    name: "obd",
    summary: "A car with OBD-II, through an ELM327 or CAN adapter; electric Hyundai and Kia in detail",
    links: [LinkRole(schemes: ["serial", "tcp", "ble", "slcan", "can"], gatt: .elm327)],
    options: [
      Option(
        "rate", ValueRule(.float, unit: "Hz", range: 0...1000), default: .float(20),
        help: "Maximum polls per second; 0: as fast as possible"),
      Option(
        "vehicle", ValueRule(.string, choices: VehicleChoice.all.map(\.name)), default: .string(VehicleChoice.auto.name),
        help:
          "Vehicle type: auto (detected), e-gmp (Ioniq 5, EV6), hkmc-ev (other electric Hyundai and Kia), generic (OBD-II only), or a model"
      ),
      Option(
        "poll", ValueRule(.string, choices: ["all", "fast"]), default: .string("all"),
        help: "Properties to poll: all (every supported one), or fast (only custom signals and those that are polled at rate)"),
      Option(
        "probe-interval", ValueRule(.float, unit: "s", range: 30...3600), default: .float(30),
        help: "Interval between probes while the vehicle is asleep or polling is suspended"),
      Option(
        "min-voltage", ValueRule(.float, unit: "V", range: 0...30), default: .float(11.8),
        help: "Suspend polling of an unused vehicle if its 12 V battery is below this for 30 s, until it is 0.3 V higher; 0: never"),
      Option(
        voltageProperty, ValueRule(.string),
        help: "Property of this device with the voltage of the 12 V battery, for CAN adapters, which do not measure it"),
      Option(
        "idle-after", ValueRule(.float, unit: "s", range: 0...86400), default: .float(600),
        help: "Suspend polling if the vehicle has not been driven, charged or switched on for this time, so that it can sleep; 0: never"),
      Option(
        "low-power", ValueRule(.bool), default: .bool(false),
        help: "Put the adapter to sleep between probes while polling is suspended, if it supports AT LP"),
      Option(
        "allow-raw", ValueRule(.bool), default: .bool(false),
        help: "Allow requests that are not read-only, which can change the state of the vehicle"),
      Option(
        bitRate, ValueRule(.int, unit: "bit/s", range: 10_000...1_000_000), describesLink: true,
        help: "Bit rate that a slcan adapter sets when its channel is opened, 500000 in most cars; for can: links, that of the interface"),
      Option(
        maxBusLoad, ValueRule(.int, unit: "%", range: 0...100), default: .int(30),
        help: "Maximum share of the CAN bus for requests and their responses, over slcan: and can: links; 0: no limit"),
    ],
    sections: [CustomSignal.section, PropertyOverride.section]
  ) { setup throws(OptionError) in
    let allowRaw = setup.options["allow-raw"] == .bool(true)
    var problems: [OptionError] = []
    let signals = (setup.sections[CustomSignal.section.name] ?? []).compactMap { CustomSignal($0, of: setup, &problems) }
    let overrides = (setup.sections[PropertyOverride.section.name] ?? []).compactMap { PropertyOverride($0, of: setup, &problems) }
    if let first = problems.first { throw first }
    let choice = VehicleChoice.all.first { $0.name == setup.options["vehicle"]?.text } ?? .auto
    // A recording contains only the answers to its own requests, so no other requests are sent in the gaps.
    let isReplay = ["replay:", "slcan:replay:"].contains { setup.links[.main]?.hasPrefix($0) ?? false }
    let defaults = PauseConditions()
    let time = { (key: String) in setup.options[key]?.number.map { Nanoseconds($0 * 1e9) } }
    let pauseConditions = PauseConditions(
      minVoltage: setup.options["min-voltage"]?.number ?? defaults.minVoltage,
      probeInterval: time("probe-interval") ?? defaults.probeInterval,
      idleAfter: time("idle-after") ?? defaults.idleAfter, usesLowPower: setup.options["low-power"] == .bool(true))
    let link = setup.links[.main] ?? ""
    func machine<Dialogue: AdapterDialogue>(_ dialogue: Dialogue) -> VehicleMachine<Dialogue> {
      VehicleMachine(
        dialogue, rate: setup.options["rate"]?.number ?? 20, allowRaw: allowRaw, phase: setup.phase, vehicle: choice,
        isFastOnly: isReplay || setup.options["poll"] == .string("fast"), signals: isReplay ? [] : signals,
        overrides: PropertyOverrides(overrides), pauseConditions: isReplay ? nil : pauseConditions,
        voltageProperty: setup.options[voltageProperty]?.text)
    }
    let rate = setup.options[bitRate]?.number.map { Int($0) }
    let maxLoad = (setup.options[maxBusLoad]?.number ?? 30) / 100
    if link.hasPrefix("can:") { return machine(FramesSession(.socket(bitRate: rate), maxLoad: maxLoad)) }
    guard link.hasPrefix("slcan:") else {
      if rate != nil { throw OptionError(bitRate, "bit-rate is for CAN interfaces (slcan: and can: links); remove it") }
      return machine(AdapterSession(link: link))
    }
    if let rate, SLCAN.setBitRate(rate) == nil {
      let rates = SLCAN.bitRates.map { "\($0)" }.joined(separator: ", ")
      throw OptionError(bitRate, "a slcan adapter has no bit rate \(rate); use one of \(rates)")
    }
    return machine(FramesSession(.slcan(bitRate: rate), maxLoad: maxLoad))
  }

  private static let voltageProperty = "voltage-property"
  private static let bitRate = "bit-rate"
  private static let maxBusLoad = "max-bus-load"
}

extension OBDQuery {
  static let action = Action(
    "query",
    arguments: [
      Argument(argumentNames.request, .string, help: "Read request in hex digits, such as 010C, or ATI, ATRV, ATDPN or STI"),
      Argument(argumentNames.header, .string, optional: true, help: "CAN identifier of the ECU, such as 7E4; 6F1/07 with an address byte"),
    ],
    help: "Send a request to the vehicle or the adapter between two polls")
}
