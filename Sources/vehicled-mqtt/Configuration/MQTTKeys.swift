// The keys of mqtt.toml. The checks, the suggestions, and the tests of the example file and the manual page use these tables.

import ConfigurationFiles
import Logging
import Protocols

extension MQTTConfiguration {
  /// The keys outside any section.
  static let generalKeys = [
    Option(
      "log-level", ValueRule(.string, choices: Logger.Level.allCases.map(\.rawValue)), default: .string("info"),
      help: "minimum log level")
  ]

  /// The keys of `[mqtt]`.
  static let mqttKeys = [
    Option("broker", ValueRule(.string), default: .string("mqtt://localhost"), help: "URL of the broker: mqtt:// or mqtts://"),
    Option("client-id", ValueRule(.string), help: "client ID; vehicled- and the host name if omitted"),
    Option("user", ValueRule(.string), help: "user name at the broker"),
    Option("password-file", ValueRule(.string), help: "file with the password, or name of a systemd credential"),
    Option("ca-file", ValueRule(.string), help: "certificates of authorities; those of the system if omitted"),
    Option("certificate", ValueRule(.string), help: "client certificate"),
    Option("key", ValueRule(.string), help: "private key of the client certificate"),
    Option("daemon", ValueRule(.string), default: .string("/run/vehicled/io.vehicled"), help: "path of the daemon's socket"),
    Option("directory", ValueRule(.string), default: .string("/var/lib/vehicled-mqtt"), help: "directory of the send queue"),
    Option("prefix", ValueRule(.string), default: .string("vehicled"), help: "first level of all topics"),
    Option("host", ValueRule(.string), help: "name of this computer in topics; the host name if omitted"),
    Option("names", ValueRule(.string, choices: ["own", "vss"]), default: .string("own"), help: "names of values in topics"),
    Option("publish", ValueRule(.list), default: .list([]), help: "values to publish besides those that are published by default"),
    Option("exclude", ValueRule(.list), default: .list([]), help: "values not to publish"),
    Option("control", ValueRule(.list), default: .list([]), help: "properties and actions that clients of the broker may use"),
    Option(
      "interval", ValueRule(.float, unit: "s", range: 1...3600), default: .float(5), help: "minimum time between two values of a property"),
    Option(
      "refresh", ValueRule(.float, unit: "s", range: 10...3600), default: .float(60),
      help: "time after which an unchanged value is sent again"),
    Option("home-assistant", ValueRule(.bool), default: .bool(true), help: "announce devices to Home Assistant"),
    Option("discovery-prefix", ValueRule(.string), default: .string("homeassistant"), help: "discovery prefix of Home Assistant"),
    Option("queue-age", ValueRule(.float, unit: "days", range: 0.01...3650), default: .float(30), help: "maximum age of queued messages"),
    Option("queue-size", ValueRule(.float, unit: "MB", range: 1...100_000), default: .float(256), help: "maximum size of the send queue"),
  ]

  /// The keys of `[fleet]`.
  static let fleetKeys = [
    Option("tenant", ValueRule(.string), help: "owner of the vehicles, in topics"),
    Option("vehicle", ValueRule(.string), help: "name of this vehicle in topics; the host name if omitted"),
    Option("publish", ValueRule(.list), default: .list([]), help: "values to send besides those of vehicles"),
    Option("exclude", ValueRule(.list), default: .list([]), help: "values not to send"),
    Option("batch", ValueRule(.float, unit: "s", range: 1...3600), default: .float(30), help: "time that a batch covers"),
  ]

  /// The examples in messages.
  static let examples = ConfigurationFile.Examples(
    missing: "create it, or omit --config", file: "[mqtt]\nbroker = \"mqtt://192.168.1.10\"", section: "[mqtt]",
    string: "broker = \"mqtt://192.168.1.10\"")
}
