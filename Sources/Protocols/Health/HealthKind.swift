// The configuration of the `health` kind: a device without a link. Its values are set by users and scripts, or come from exports of
// Gadgetbridge. Live sensors are separate kinds (HeartRate/).

extension Kind {
  /// Daily activity and heart rate of a person, from scripts and exports.
  public static let health = Kind(
    name: "health",
    summary: "Steps, energy, distance and heart rate, set by scripts or read from a Gadgetbridge export",
    links: [],
    options: [
      Option(
        "heart-rate-max-age", ValueRule(.float, unit: "s", range: 5...86_400), default: .float(120),
        help: "Time after which a measured heart rate expires"),
      Option(
        "gadgetbridge", ValueRule(.string), help: "File name of the Gadgetbridge export, in import/ in the state directory"),
      Option("gadgetbridge-device", ValueRule(.string), help: "Name of the device in the export; default: the one with the newest sample"),
      Option(
        "step-length", ValueRule(.float, unit: "m", range: 0.1...3),
        help: "Length of a step, used to estimate the distance if no source reports it"),
    ]
  ) { setup throws(OptionError) in HealthMachine(try HealthSettings(setup)) }
}

/// The configuration of a health device.
struct HealthSettings: Sendable {
  /// The name of the device, for messages.
  var device: String
  var heartRateMaxAge: Nanoseconds
  /// The name of an export in the import directory; nil for none.
  var gadgetbridge: String?
  var gadgetbridgeDevice: String?
  /// The step length in metres.
  var stepLength: Double?

  init(_ setup: Setup) throws(OptionError) {
    func text(_ name: String) -> String? { if case .string(let text)? = setup.options[name] { text } else { nil } }
    device = setup.device
    heartRateMaxAge = Nanoseconds((min(max(setup.options["heart-rate-max-age"]?.number ?? 120, 5), 86_400) * 1e9).rounded())
    gadgetbridge = text("gadgetbridge")
    gadgetbridgeDevice = text("gadgetbridge-device")
    stepLength = setup.options["step-length"]?.number
    if let name = gadgetbridge, name.isEmpty || name.hasPrefix(".") || name.contains("/") {
      throw OptionError(
        "gadgetbridge", "not a file name; copy the file into import/ in the state directory, and give only its name here")
    }
    if gadgetbridgeDevice != nil, gadgetbridge == nil {
      throw OptionError("gadgetbridge-device", "requires an export; add gadgetbridge = \"Gadgetbridge\"")
    }
  }
}
