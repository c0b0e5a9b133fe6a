// The `longboard` kind as the configuration knows it: an Arduino that speaks ELComm, or the VESC itself. Which keys belong
// to which protocol stands here; each machine reads its own.

extension Kind {
  /// Electric longboards.
  public static let longboard = Kind(
    name: "longboard",
    summary: "An electric longboard: Torq's Arduino over ELComm, or the VESC itself",
    links: [LinkRole(schemes: ["ble", "serial", "tcp"], gatt: .longboard)],
    options: [
      Option("protocol", ValueRule(.string, choices: ["elcomm", "vesc"]), default: .string("elcomm"), help: "What the board speaks"),
      Option(
        "rate", ValueRule(.float, unit: "Hz", range: 0.1...50),
        help: "Questions a second at most: usually 5 with elcomm (10 at the most), 20 with vesc"),
    ] + elcommOptions + vescOptions,
    sections: [
      Section(
        "mode",
        options: [
          Option(
            "current", ValueRule(.float, unit: "%", range: 0...100), default: .float(100),
            help: "Part of the VESC's own motor current limit"),
          Option("speed", ValueRule(.float, unit: "km/h", range: 1...200), help: "Top speed, both ways"),
        ], help: "A speed mode of a VESC, for vehiclectl set mode NAME")
    ]
  ) { setup throws(OptionError) in
    let isVESC = setup.options["protocol"] == .string("vesc")
    for option in isVESC ? elcommOptions : vescOptions where setup.options[option.name] != nil {
      throw OptionError(option.name, "only with protocol = \"\(isVESC ? "elcomm" : "vesc")\"; leave it out")
    }
    if !isVESC, let modes = setup.sections["mode"], !modes.isEmpty {
      throw OptionError("mode", "ELComm carries no speed mode; only with protocol = \"vesc\"")
    }
    return isVESC ? try VESCMachine(setup) : try ELCommMachine(setup)
  }

  private static let elcommOptions = [
    Option(
      "dialect", ValueRule(.string, choices: ["auto", "as-built", "documented"]),
      help: "Who begins: the host (as-built), the board (documented), or whichever is found out (auto, the usual one)"),
    Option("buzzer-on", ValueRule(.int, range: 0...999), help: "The number that switches a documented board's buzzer on; usually 1"),
    Option("buzzer-off", ValueRule(.int, range: 0...999), help: "The number that switches it off; usually 0"),
    Option(
      "buzzer-limit", ValueRule(.float, unit: "s", range: 1...600),
      help: "How long the buzzer may stay on unless somebody holds it; usually 10"),
  ]

  private static let vescOptions = [
    Option("can-id", ValueRule(.int, range: 0...254), help: "Speak to the VESC with this number on the CAN bus behind the one on the link"),
    Option("pole-pairs", ValueRule(.int, range: 1...100), help: "Magnet pairs of the motor, where the VESC does not know its board"),
    Option("wheel-diameter", ValueRule(.float, unit: "mm", range: 10...1000), help: "Diameter of the driven wheel"),
    Option("gear-ratio", ValueRule(.float, range: 0.1...100), help: "Turns of the motor for one of the wheel"),
    Option("cells", ValueRule(.int, range: 1...40), help: "Battery cells in series"),
    Option("allow-motion", ValueRule(.bool), help: "Let whoever holds the motion lease turn the motor"),
    Option(
      "motion-current", ValueRule(.float, unit: "A", range: 0.1...300), help: "The most motor current that may be asked for; usually 10"),
    Option(
      "motion-duty", ValueRule(.float, unit: "%", range: 1...100),
      help: "The highest duty cycle that may be asked for; without it target-duty is refused, for motion-current does not limit it"),
  ]
}

extension GATTRole {
  /// HM-10 modules and their clones; Nordic UART as on VESC's own modules. Facts: Torq's app, vesc_tool's bleuart.cpp.
  public static let longboard = GATTRole(
    profiles: [.hm10, .nordicUART],
    names: ["HMSoft", "HM-10", "BT05", "MLT-BT05", "VESC"], isStream: true, prefersResponse: false)
}
