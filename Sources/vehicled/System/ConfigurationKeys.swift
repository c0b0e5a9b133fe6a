// The keys that the daemon itself knows, and what they may hold. Checks, suggestions and the test that holds
// etc/vehicled.toml to the truth all come from these tables; a kind adds its own (Kind.options, Kind.links).

import Logging
import Protocols

extension Configuration {
  /// Outside any section.
  static let generalKeys = [
    Option(
      "log-level", ValueRule(.string, choices: Logger.Level.allCases.map(\.rawValue)), default: .string("info"),
      help: "the least level that is logged")
  ]

  /// In `[control]`.
  static let controlKeys = [
    Option("socket", ValueRule(.string), default: .string("/run/vehicled/io.vehicled"), help: "path of the control socket"),
    Option("observe", ValueRule(.list), default: .list(["vehicled"]), help: "groups that may see"),
    Option("control", ValueRule(.list), default: .list(["vehicled"]), help: "groups that may also set, call and drive"),
    Option("observe-users", ValueRule(.list), default: .list([]), help: "users that may see, by name or number"),
    Option("control-users", ValueRule(.list), default: .list([]), help: "users that may also set, call and drive"),
    Option(
      "authorization", ValueRule(.string, choices: ["lists", "polkit"]), default: .string("lists"),
      help: "who decides: these lists, or polkit, which may ask for a password, a fingerprint or a face"),
  ]

  /// In every `[device.NAME]`.
  static let deviceKeys = [
    Option("kind", ValueRule(.string), help: "what the device is"),
    Option("record", ValueRule(.bool), default: .bool(false), help: "record every byte of its links under the state directory"),
  ]

  /// A whole configuration, for those who have none.
  static let example = """
    [device.ev]
    kind = "obd"
    link = "serial:/dev/ttyUSB0"
    rate = 20
    """
}

extension Kind {
  /// The daemon's own keys for a device of this kind. Where there is no link there is nothing to record.
  var deviceKeys: [Option] { Configuration.deviceKeys.filter { $0.name != "record" || !links.isEmpty } }

  /// All the keys a device of this kind takes.
  var keys: [String] { deviceKeys.map(\.name) + links.map(\.key) + secrets.map(\.name) + options.map(\.name) }
}
