// The keys of history.toml. The checks, the suggestions, and the tests of the example file and the manual page use these tables.

import ConfigurationFiles
import Logging
import Protocols
import Trips
import Varlink

extension HistoryConfiguration {
  /// The keys outside any section.
  static let generalKeys = [
    Option(
      "log-level", ValueRule(.string, choices: Logger.Level.allCases.map(\.rawValue)), default: .string("info"),
      help: "minimum log level")
  ]

  /// The keys of `[history]`.
  static let historyKeys =
    [
      Option(
        "socket", ValueRule(.string), default: .string(HistoryContract.defaultSocket), help: "path of the history's socket"),
      Option("daemon", ValueRule(.string), default: .string("/run/vehicled/io.vehicled"), help: "path of the daemon's socket"),
      Option("directory", ValueRule(.string), default: .string("/var/lib/vehicled-history"), help: "directory of recorded values"),
      Option("record", ValueRule(.list), default: .list([]), help: "values to record besides those of vehicles"),
      Option("exclude", ValueRule(.list), default: .list([]), help: "values not to record"),
      Option("keep", ValueRule(.float, unit: "days", range: 1...36_500), help: "maximum age of recorded values"),
      Option("max-size", ValueRule(.float, unit: "MB", range: 10...1_000_000), default: .float(4000), help: "maximum size of the history"),
    ] + ruleKeys.map(\.option) + [
      Option("observe", ValueRule(.list), default: .list(["vehicled", "vehicled-observe"]), help: "groups that may read"),
      Option("control", ValueRule(.list), default: .list(["vehicled"]), help: "groups that may also delete, import and recompute"),
      Option("observe-users", ValueRule(.list), default: .list([]), help: "users that may read, by name or UID"),
      Option("control-users", ValueRule(.list), default: .list([]), help: "users that may also delete, import and recompute"),
    ]

  /// A key of `[history]` that sets a rule for periods.
  struct RuleKey {
    var option: Option
    var set: @Sendable (inout PeriodRules, Double) -> Void
  }

  /// The rules that delimit trips, charges and parked periods.
  static let ruleKeys: [RuleKey] = [
    time("trip-pause", 0...86_400, \.tripPause, "maximum pause within a trip"),
    time("data-timeout", 60...86_400, \.dataTimeout, "time without values after which a trip ends"),
    time("idle-timeout", 60...86_400, \.idleTimeout, "stop that ends a trip if the vehicle reports neither gear nor ignition"),
    time("park-time", 0...3600, \.parkTime, "time in park that ends a trip"),
    number("moving-speed", "km/h", 0.1...50, \.movingSpeed, "minimum speed at which a vehicle counts as moving"),
    time("moving-time", 0...60, \.movingTime, "time of motion that starts a trip"),
    number("min-trip-distance", "km", 0...100, \.minTripDistance, "minimum distance of a trip"),
    time("min-pause", 1...3600, \.minPause, "minimum duration of a stop that is listed as a pause"),
    time("journey-break", 0...604_800, \.journeyBreak, "maximum parked period within a journey"),
    time("charge-pause", 0...86_400, \.chargePause, "maximum pause within a charge"),
    number(
      "charge-current", "A", -1000 ... -0.1, \.chargingCurrentThreshold, "battery current of a charge, if there is no charging status"),
    time("charge-stationary-time", 0...3600, \.chargeStationaryTime, "time at a standstill before a current counts as charging"),
    RuleKey(
      option: Option("tank-volume", ValueRule(.float, unit: "L", range: 1...1000), help: "volume of the fuel tank"),
      set: { $0.tankVolume = $1 }),
  ]

  private static func time(
    _ name: String, _ range: ClosedRange<Double>, _ rule: WritableKeyPath<PeriodRules, Int64> & Sendable, _ help: String
  ) -> RuleKey {
    let fallback = Double(PeriodRules()[keyPath: rule]) / 1e6
    return RuleKey(option: Option(name, ValueRule(.float, unit: "s", range: range), default: .float(fallback), help: help)) {
      $0[keyPath: rule] = Int64($1 * 1e6)
    }
  }

  private static func number(
    _ name: String, _ unit: String, _ range: ClosedRange<Double>, _ rule: WritableKeyPath<PeriodRules, Double> & Sendable, _ help: String
  ) -> RuleKey {
    let fallback = PeriodRules()[keyPath: rule]
    return RuleKey(option: Option(name, ValueRule(.float, unit: unit, range: range), default: .float(fallback), help: help)) {
      $0[keyPath: rule] = $1
    }
  }

  /// The keys of every `[alert.NAME]`.
  static let alertKeys = [
    Option("condition", ValueRule(.string), help: "when the alert is raised"),
    Option("run-program", ValueRule(.bool), default: .bool(false), help: "start vehicled-alert@NAME.service"),
  ]

  /// The examples in messages.
  static let examples = ConfigurationFile.Examples(
    missing: "create it, or omit --config", file: "[history]\nkeep = 3650", section: "[history]", string: "condition = \"mil is on\"")
}
