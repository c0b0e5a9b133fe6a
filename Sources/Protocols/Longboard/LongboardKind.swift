// The configuration of the `longboard` kind: an Arduino that speaks ELComm, or a VESC. This file declares which keys belong to which
// protocol; each machine reads its own keys.

extension Kind {
  /// Electric longboards.
  public static let longboard = Kind(
    name: "longboard",
    summary: "An electric longboard: a Torq longboard (ELComm), or a VESC",
    links: [LinkRole(schemes: ["ble", "serial", "tcp"], gatt: .longboard)],
    options: [
      Option("protocol", ValueRule(.string, choices: ["elcomm", "vesc"]), default: .string("elcomm"), help: "Protocol of the board"),
      Option(
        "rate", ValueRule(.float, unit: "Hz", range: 0.1...50),
        help: "Maximum polls per second; default: 5 with elcomm (maximum 10), 20 with vesc"),
    ] + elcommOptions + vescOptions,
    sections: [
      Section(
        "mode",
        options: [
          Option(
            "current", ValueRule(.float, unit: "%", range: 0...100), default: .float(100),
            help: "Motor current limit for driving, relative to the VESC's own limit"),
          Option("speed", ValueRule(.float, unit: "km/h", range: 1...200), help: "Maximum speed, forwards and backwards"),
        ], help: "A speed mode of a VESC; select it with vehiclectl set mode NAME")
    ]
  ) { setup throws(OptionError) in
    let isVESC = setup.options["protocol"] == .string("vesc")
    for option in isVESC ? elcommOptions : vescOptions where setup.options[option.name] != nil {
      throw OptionError(option.name, "valid only with protocol = \"\(isVESC ? "elcomm" : "vesc")\"; remove it")
    }
    if !isVESC, let modes = setup.sections["mode"], !modes.isEmpty {
      throw OptionError("mode", "valid only with protocol = \"vesc\"; remove it")
    }
    return isVESC ? try VESCMachine(setup) : try ELCommMachine(setup)
  }

  private static let elcommOptions = [
    Option(
      "dialect", ValueRule(.string, choices: ["auto", "as-built", "documented"]),
      help: "Side that sends first: as-built (the daemon), documented (the board), or auto (detect; default)"),
    Option("buzzer-on", ValueRule(.int, range: 0...999), help: "Value that switches the buzzer on (documented dialect); default: 1"),
    Option("buzzer-off", ValueRule(.int, range: 0...999), help: "Value that switches the buzzer off (documented dialect); default: 0"),
    Option(
      "buzzer-limit", ValueRule(.float, unit: "s", range: 1...600),
      help: "Maximum time that the buzzer stays on, unless a client holds it; default: 10"),
  ]

  private static let vescOptions = [
    Option("can-id", ValueRule(.int, range: 0...254), help: "CAN ID of the VESC, if it is reached through the connected VESC"),
    Option("pole-pairs", ValueRule(.int, range: 1...100), help: "Motor pole pairs (magnets divided by 2); overrides the VESC's setting"),
    Option("wheel-diameter", ValueRule(.float, unit: "mm", range: 10...1000), help: "Diameter of the driven wheel"),
    Option("gear-ratio", ValueRule(.float, range: 0.1...100), help: "Motor revolutions per wheel revolution"),
    Option("cells", ValueRule(.int, range: 1...40), help: "Battery cells in series"),
    Option("allow-motion", ValueRule(.bool), help: "Allow driving under the motion lease"),
    Option(
      "max-motor-current", ValueRule(.float, unit: "A", range: 0.1...300), help: "Maximum motor current; default: 10"),
    Option(
      "max-duty-cycle", ValueRule(.float, unit: "%", range: 1...100),
      help: "Maximum duty cycle; without it target-duty is rejected, because max-motor-current has no effect in duty cycle mode"),
  ]
}

extension PeripheralDescription {
  /// HM-10 modules and their clones; Nordic UART as on VESC's own modules. Source: Torq's app, vesc_tool's bleuart.cpp.
  public static let longboard = PeripheralDescription(
    profiles: [.hm10, .nordicUART],
    names: ["HMSoft", "HM-10", "BT05", "MLT-BT05", "VESC"], isStream: true, prefersAcknowledgedWrites: false)
}
