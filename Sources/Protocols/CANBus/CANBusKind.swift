// The configuration of the `can` kind.

extension Kind {
  /// Signals on a CAN bus, which is only listened to.
  public static let can = Kind(
    name: "can",
    summary: "Signals on a CAN bus, of a known vehicle or as a DBC file defines them; only listens",
    links: [LinkRole(schemes: ["slcan", "can"], example: "slcan:serial:/dev/ttyACM0", onlyReceives: true)],
    options: [
      Option(
        vehicle, ValueRule(.string, choices: CANProfile.all.map(\.name)),
        help: "Vehicle whose signals are known: tesla-model-3 (Model 3, Model Y); configured signals replace those of the same name"),
      Option(
        bitRate, ValueRule(.int, unit: "bit/s", range: 10_000...1_000_000), describesLink: true,
        implication: Option.Implication(
          vehicle, Dictionary(uniqueKeysWithValues: CANProfile.all.map { ($0.name, .int($0.bitRate)) })),
        help: "Bit rate that a slcan adapter sets when its channel is opened, 500000 in most cars; for can: links, that of the interface"),
    ],
    sections: [CANSignal.section]
  ) { setup throws(OptionError) in
    var problems: [OptionError] = []
    let signals = (setup.sections[CANSignal.section.name] ?? []).compactMap { CANSignal($0, &problems) }
    if let first = problems.first { throw first }
    let profile = setup.options[vehicle].flatMap { CANProfile(name: $0.text) }
    let rate = setup.options[bitRate]?.number.map { Int($0) } ?? profile?.bitRate
    let link = setup.links[.main] ?? ""
    let port: CANBusMachine.Port =
      if link.hasPrefix("can:") {
        .socket
      } else if link.hasPrefix("replay:") || link.hasPrefix("slcan:replay:") {
        .recording
      } else {
        .slcan
      }
    if port == .slcan, let rate, SLCAN.setBitRate(rate) == nil {
      let rates = SLCAN.bitRates.map { "\($0)" }.joined(separator: ", ")
      throw OptionError(bitRate, "a slcan adapter has no bit rate \(rate); use one of \(rates)")
    }
    return CANBusMachine(profile?.signals(with: signals) ?? signals, port, bitRate: rate)
  }

  private static let vehicle = "vehicle"
  private static let bitRate = "bit-rate"
}
