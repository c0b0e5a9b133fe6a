// The `health` kind as the configuration knows it: a device without a link, whose values come from people, scripts and exports
// of Gadgetbridge. Live sensors are kinds of their own (HeartRate/).

extension Kind {
  /// What a person's body did today, as scripts and exports tell it.
  public static let health = Kind(
    name: "health",
    summary: "Steps, energy, distance and heart rate that scripts set, or that an export of Gadgetbridge holds",
    links: [],
    options: [
      Option(
        "heart-rate-fresh", ValueRule(.float, unit: "s", range: 5...86_400), default: .float(120),
        help: "How long a heart rate is shown after it was measured"),
      Option(
        "gadgetbridge", ValueRule(.string), help: "The name of Gadgetbridge's exported database in the state directory's import folder"),
      Option("gadgetbridge-device", ValueRule(.string), help: "Which of its devices; usually the one with the newest sample"),
      Option(
        "estimate-distance", ValueRule(.float, unit: "m", range: 0.1...3),
        help: "The length of a step: a distance that nobody tells is estimated from the steps"),
    ]
  ) { setup throws(OptionError) in HealthMachine(try HealthSettings(setup)) }
}

/// What the configuration says of a health device.
struct HealthSettings: Sendable {
  var heartRateFresh: Nanoseconds
  /// A file in the import folder.
  var gadgetbridge: String?
  var gadgetbridgeDevice: String?
  /// Metres.
  var stepLength: Double?

  init(_ setup: Setup) throws(OptionError) {
    func text(_ name: String) -> String? { if case .string(let text)? = setup.options[name] { text } else { nil } }
    heartRateFresh = Nanoseconds((min(max(setup.options["heart-rate-fresh"]?.number ?? 120, 5), 86_400) * 1e9).rounded())
    gadgetbridge = text("gadgetbridge")
    gadgetbridgeDevice = text("gadgetbridge-device")
    stepLength = setup.options["estimate-distance"]?.number
    if let name = gadgetbridge, name.isEmpty || name.hasPrefix(".") || name.contains("/") {
      throw OptionError(
        "gadgetbridge", "that is no name of a file; put the file into the state directory's import folder and write its name")
    }
    if gadgetbridgeDevice != nil, gadgetbridge == nil {
      throw OptionError("gadgetbridge-device", "it says which device of an export; name the export with gadgetbridge = \"Gadgetbridge\"")
    }
  }
}
