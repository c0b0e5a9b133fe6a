// The daemon's own configuration keys and their values. Checks, suggestions and the test of etc/vehicled.toml use these tables; a
// kind adds its own keys (Kind.options, Kind.links).

import ConfigurationFiles
import Logging
import Protocols

extension Configuration {
  /// The keys outside of any section.
  static let generalKeys = [
    Option(
      "log-level", ValueRule(.string, choices: Logger.Level.allCases.map(\.rawValue)), default: .string("info"),
      help: "minimum log level")
  ]

  /// The keys of `[control]`.
  static let controlKeys =
    [Option("socket", ValueRule(.string), default: .string("/run/vehicled/io.vehicled"), help: "path of the control socket")]
    + accessKeys(.default) + [
      Option(
        "authorization", ValueRule(.string, choices: ["lists", "polkit"]), default: .string("lists"),
        help: "access control by these lists, or by polkit, which can require authentication, for example by password")
    ]

  /// The access keys of every `[device.NAME]`, which apply to that device.
  static let deviceAccessKeys = accessKeys(AccessLists())

  private static func accessKeys(_ lists: AccessLists) -> [Option] {
    [
      Option("observe", ValueRule(.list), default: .list(lists.observe), help: "groups that may read"),
      Option("control", ValueRule(.list), default: .list(lists.control), help: "groups that may also set properties and run actions"),
      Option("drive", ValueRule(.list), help: "groups that may also drive"),
      Option("observe-users", ValueRule(.list), default: .list([]), help: "users that may read, by name or UID"),
      Option("control-users", ValueRule(.list), default: .list([]), help: "users that may also set properties and run actions"),
      Option("drive-users", ValueRule(.list), help: "users that may also drive"),
    ]
  }

  /// The other keys of every `[device.NAME]`.
  static let deviceKeys = [
    Option("kind", ValueRule(.string), help: "kind of the device"),
    Option("record", ValueRule(.bool), default: .bool(false), help: "record every byte on its links under the state directory"),
  ]

  /// A complete configuration, shown when there is no file.
  static let example = """
    [device.ev]
    kind = "obd"
    link = "serial:/dev/ttyUSB0"
    rate = 20
    """

  static let examples = ConfigurationFile.Examples(
    missing: "create it with your devices", file: example, section: "[device.NAME]", string: "kind = \"obd\"")
}

extension Kind {
  /// The daemon's own keys for a device of this kind. A kind without links has nothing to record.
  var deviceKeys: [Option] { Configuration.deviceKeys.filter { $0.name != "record" || !links.isEmpty } }

  /// All keys of a device of this kind.
  var keys: [String] {
    deviceKeys.map(\.name) + links.map(\.key) + secrets.map(\.name) + (options + Configuration.deviceAccessKeys).map(\.name)
  }
}
