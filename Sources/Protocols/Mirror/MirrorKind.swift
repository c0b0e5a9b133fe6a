// The configuration of the `mirror` kind, and how the mirror's ESP32 is found: by its name, because it advertises no service. It has one
// characteristic, which is only written and never notifies.
// Source: ISM-Embedded's main.cpp (name, C0FE, 3DEE), ISM-App's BLE.swift.

extension Kind {
  /// Smart mirrors.
  public static let mirror = Kind(
    name: "mirror",
    summary: "The ISM-App smart mirror: light, name, health and weather",
    links: [LinkRole(schemes: ["ble"], gatt: .mirror)],
    options: [
      Option(
        "profile", ValueRule(.string, choices: ["stock", "plain"]), default: .string("stock"),
        help: "Firmware: stock (released after 1 April 2024; encrypts) or plain (earlier; does not encrypt)"),
      Option("username", ValueRule(.string), help: "Name with which the mirror greets you, until the property username is set"),
      Option(
        "interval", ValueRule(.int, unit: "s", range: MirrorProperty.intervals), default: .int(60),
        help: "Interval between update cycles, until the property interval is set"),
      Option(
        "health", ValueRule(.list), default: .list([]), reference: .properties,
        help: "Properties of other devices to display, for example phone.steps; allowed names: heart-rate, active-energy, steps, distance"),
      Option(
        "weather", ValueRule(.string), reference: .device(with: MirrorMetric.weather.map(\.rawValue)),
        help: "Device whose temperature, humidity, condition and uv-index to display"),
    ],
    secrets: [
      Secret("key-file", help: "Encryption key of the firmware: ascii: and 16 characters, or hex: and 32 digits"),
      Secret("iv-file", help: "Initialization vector of the firmware, in the same format"),
    ],
    warning: { setup in
      guard setup.options["profile"] != .string("plain") else {
        return "the link to the mirror is not encrypted: anyone in Bluetooth range can read and write names, health and weather"
      }
      let weakness = "the link to the mirror is weakly encrypted: every message uses the same IV"
      // The published key is text; a custom one is written as hex.
      let isPossiblyPublic = setup.secrets["key-file"]?.bytes.starts(with: "hex:".utf8) != true
      return isPossiblyPublic ? weakness + ", and the published firmware's key is public; use your own key (docs/mirror.md)" : weakness
    }
  ) { setup throws(OptionError) in try MirrorMachine(setup) }
}

extension PeripheralDescription {
  /// The ESP32 in the mirror.
  public static let mirror = PeripheralDescription(
    profiles: [GATTProfile("C0FE", notify: nil, write: "3DEE")], names: ["ESP32-BLE-Server"], isStream: false,
    prefersAcknowledgedWrites: true)
}

/// The configuration of a mirror.
struct MirrorSettings: Sendable {
  /// The device's name.
  let device: String
  let profile: MirrorProfile
  let username: String?
  /// The interval between updates in seconds.
  let interval: Int
  /// The metrics to show, and the properties of other devices that provide them.
  let sources: [MirrorMetric: String]

  var hasHealth: Bool { MirrorMetric.health.contains { sources[$0] != nil } }
  var hasWeather: Bool { sources[.temperature] != nil }

  init(_ setup: Setup) throws(OptionError) {
    device = setup.device
    profile = try Self.profile(setup)
    if case .string(let name)? = setup.options["username"] {
      if let message = MirrorMessage.refusal(name: name) { throw OptionError("username", message) }
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
          throw OptionError("health", "the mirror cannot show \"\(reference)\"; use properties named \(known), as in phone.steps")
        }
        if let other = sources.updateValue(reference, forKey: metric) {
          throw OptionError("health", "\(other) and \(reference) are the same metric; remove one of them")
        }
      }
    }
    if case .string(let device)? = setup.options["weather"] {
      guard isDeviceName(device) else {
        throw OptionError(
          "weather", "\"\(device)\" is not a device name; write the NAME of a section [device.NAME] of kind weather")
      }
      for metric in MirrorMetric.weather { sources[metric] = "\(device).\(metric.rawValue)" }
    }
    self.sources = sources
  }

  private static func profile(_ setup: Setup) throws(OptionError) -> MirrorProfile {
    let isPlain = setup.options["profile"] == .string("plain")
    var keyAndIV: [[UInt8]] = []
    for option in ["key-file", "iv-file"] {
      guard let secret = setup.secrets[option] else {
        if isPlain { continue }
        let name = option == "key-file" ? "key" : "IV"
        throw OptionError(
          nil,
          "\(option) is missing; write the \(name) to a file of mode 0600 and add \(option) = \"/PATH\", or set profile = \"plain\"")
      }
      if isPlain { throw OptionError(option, "not used with profile = \"plain\"; remove it") }
      do throws(ValueError) {
        keyAndIV.append(try MirrorCipher.sixteenBytes(secret.bytes))
      } catch {
        throw OptionError(option, "\(error)")
      }
    }
    guard keyAndIV.count == 2 else { return .plain }
    do throws(ValueError) {
      return .stock(try MirrorCipher(key: keyAndIV[0], iv: keyAndIV[1]))
    } catch {
      throw OptionError(nil, "\(error)")
    }
  }
}
