// The keys of web.toml. The checks, the suggestions, and the tests of the example file and the manual page use these tables.

import ConfigurationFiles
import Logging
import Protocols
import Varlink

extension WebConfiguration {
  /// The keys outside any section.
  static let generalKeys = [
    Option(
      "log-level", ValueRule(.string, choices: Logger.Level.allCases.map(\.rawValue)), default: .string("info"),
      help: "minimum log level")
  ]

  /// The keys of `[web]`.
  static let webKeys = [
    Option(
      "listen", ValueRule(.string), default: .string("127.0.0.1:8270"),
      help: "address: 127.0.0.1:PORT, [::1]:PORT, or unix:/PATH for a reverse proxy"),
    Option("origins", ValueRule(.list), default: .list([]), help: "URLs of reverse proxies under which browsers load the page"),
    Option("daemon", ValueRule(.string), default: .string("/run/vehicled/io.vehicled"), help: "path of the daemon's socket"),
    Option("history", ValueRule(.string), default: .string(HistoryContract.defaultSocket), help: "path of the history service's socket"),
    Option("files", ValueRule(.string), help: "directory of the page; the one installed with the program if omitted"),
  ]

  /// The keys of `[token.NAME]`.
  static let tokenKeys = [
    Option("file", ValueRule(.string), help: "file with the token, or name of a systemd credential"),
    Option("control", ValueRule(.list), default: .list([]), help: "devices that browsers with this token may control"),
    Option("kiosk", ValueRule(.bool), default: .bool(false), help: "show large gauges"),
  ]

  /// The keys of `[metrics]`.
  static let metricsKeys = [
    Option("token-file", ValueRule(.string), help: "file with the bearer token, or name of a systemd credential"),
    Option("position", ValueRule(.list), default: .list([]), help: "devices whose position is included"),
  ]

  /// The examples in messages.
  static let examples = ConfigurationFile.Examples(
    missing: "create it, or omit --config", file: "[token.kiosk]\nfile = \"/etc/vehicled/kiosk.token\"", section: "[token.kiosk]",
    string: "file = \"/etc/vehicled/kiosk.token\"")
}
