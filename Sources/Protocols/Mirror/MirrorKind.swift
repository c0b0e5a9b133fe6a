// The `mirror` kind as the configuration knows it, and how the ESP32 in the mirror is found: by its name alone, for it
// advertises no service, and one characteristic that is written and never notifies.
// Facts: ISM-Embedded's main.cpp (name, C0FE, 3DEE), ISM-App's BLE.swift.

extension Kind {
  /// Smart mirrors.
  public static let mirror = Kind(
    name: "mirror",
    summary: "The smart mirror of ISM-App: light, name, health and weather, through its ESP32",
    links: [LinkRole(schemes: ["ble"], gatt: .mirror)],
    options: [
      Option(
        "profile", ValueRule(.string, choices: ["stock", "plain"]), default: .string("stock"),
        help: "Whether the firmware decrypts (stock: since April 2024) or does not (plain: March 2024, to 1 April)"),
      Option("username", ValueRule(.string), help: "Whom the mirror greets until somebody sets another name"),
      Option(
        "interval", ValueRule(.int, unit: "s", range: MirrorSignal.intervals), default: .int(60),
        help: "Between two waves of values, until somebody sets another"),
      Option(
        "health", ValueRule(.list), default: .list([]), reference: .properties,
        help: "What can be shown of other devices: heart-rate, active-energy, steps and distance, as in phone.steps"),
      Option(
        "weather", ValueRule(.string), reference: .device(with: MirrorMetric.weather.map(\.rawValue)),
        help: "The device whose temperature, humidity, condition and uv-index can be shown"),
    ],
    secrets: [
      Secret("key-file", help: "The firmware's key: ascii: and 16 characters, or hex: and 32 digits"),
      Secret("iv-file", help: "The firmware's initialization vector, in the same form"),
    ],
    caution: { setup in
      setup.options["profile"] == .string("plain")
        ? "nothing protects the link to the mirror: whoever is near reads names, health and weather, and can write them"
        : "the link to the mirror is disguised rather than protected: one IV serves every message, and the published firmware's key is "
          + "known to all, unless yours was given another (README, Smart mirror)"
    }
  ) { setup throws(OptionError) in try MirrorMachine(setup) }
}

extension GATTRole {
  /// The ESP32 in the mirror.
  public static let mirror = GATTRole(
    profiles: [GATTProfile("C0FE", notify: nil, write: "3DEE")], names: ["ESP32-BLE-Server"], isStream: false, prefersResponse: true)
}

/// What the configuration says of a mirror.
struct MirrorSettings: Sendable {
  /// The device's own name.
  let device: String
  let profile: MirrorProfile
  let username: String?
  /// Seconds.
  let interval: Int
  /// What can be shown, and the property of another device that tells it.
  let sources: [MirrorMetric: String]

  var hasHealth: Bool { MirrorMetric.health.contains { sources[$0] != nil } }
  var hasWeather: Bool { sources[.temperature] != nil }

  init(_ setup: Setup) throws(OptionError) {
    device = setup.device
    profile = try Self.profile(setup)
    if case .string(let name)? = setup.options["username"] {
      if let words = MirrorMessage.refusal(name: name) { throw OptionError("username", words) }
      username = name
    } else {
      username = nil
    }
    if case .int(let seconds)? = setup.options["interval"] { interval = seconds } else { interval = 60 }
    var sources: [MirrorMetric: String] = [:]
    if case .list(let references)? = setup.options["health"] {
      for reference in references {
        guard let metric = reference.split(separator: ".").last.flatMap({ MirrorMetric(rawValue: String($0)) }), metric.isHealth else {
          let known = MirrorMetric.health.map(\.rawValue).joined(separator: ", ")
          throw OptionError("health", "the mirror cannot show \"\(reference)\"; name properties called \(known), as in phone.steps")
        }
        if let other = sources.updateValue(reference, forKey: metric) {
          throw OptionError("health", "\(other) and \(reference) are the same to the mirror; name one of them")
        }
      }
    }
    if case .string(let device)? = setup.options["weather"] {
      guard Self.isDeviceName(device) else {
        throw OptionError(
          "weather", "\"\(device)\" is not the name of a device; write the NAME of a section [device.NAME] that has the weather")
      }
      for metric in MirrorMetric.weather { sources[metric] = "\(device).\(metric.rawValue)" }
    }
    self.sources = sources
  }

  private static func profile(_ setup: Setup) throws(OptionError) -> MirrorProfile {
    let isPlain = setup.options["profile"] == .string("plain")
    var sixteens: [[UInt8]] = []
    for option in ["key-file", "iv-file"] {
      guard let secret = setup.secrets[option] else {
        if isPlain { continue }
        throw OptionError(
          option, "it is missing, and the firmware has one; write it into a file of mode 0600 and name that, or profile = \"plain\"")
      }
      if isPlain { throw OptionError(option, "firmware of profile = \"plain\" has none; leave it out") }
      do throws(ValueError) {
        sixteens.append(try MirrorCipher.sixteen(secret.bytes))
      } catch {
        throw OptionError(option, "\(error)")
      }
    }
    guard sixteens.count == 2, let cipher = MirrorCipher(key: sixteens[0], iv: sixteens[1]) else { return .plain }
    return .stock(cipher)
  }

  private static func isDeviceName(_ name: String) -> Bool {
    let bytes = name.utf8
    let isLetter = { (byte: UInt8) in byte &- 0x61 < 26 }
    return (1...32).contains(bytes.count) && bytes.first.map(isLetter) == true
      && bytes.allSatisfy { isLetter($0) || isDigit($0) || $0 == 0x2D }
  }
}
