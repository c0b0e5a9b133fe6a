// history.toml: defaults, values, and mistakes with their places.

import ConfigurationFiles
import ConfigurationTesting
import Foundation
import Observations
import Protocols
import ServiceRuntime
import Testing
import Trips

@testable import vehicled_history

@Suite struct HistoryConfigurationTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized

  private func load(_ text: String) throws -> HistoryConfiguration {
    let path = NSTemporaryDirectory() + "history-\(UUID().uuidString).toml"
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(atPath: path) }
    do { return try HistoryConfiguration.load(path) } catch {
      throw ConfigurationError(
        problems: error.problems.map {
          ConfigurationProblem(SourceLocation(file: "f", line: $0.location.line, column: $0.location.column), $0.text)
        })
    }
  }

  private typealias SourceLocation = ConfigurationFiles.SourceLocation

  @Test func `every key is read`() throws {
    let configuration = try load(
      """
      log-level = "debug"
      [history]
      socket = "/run/s"
      daemon = "/run/d"
      directory = "/srv/h"
      record = ["band.heart-rate"]
      exclude = ["*.cell-*"]
      keep = 10
      max-size = 500
      trip-pause = 60
      moving-speed = 5.5
      charge-current = -2
      tank-volume = 50
      observe = ["a"]
      control = []
      observe-users = ["u"]
      control-users = ["1000"]
      [alert.full]
      condition = "state-of-charge >= 80"
      run-program = true
      """)
    #expect(configuration.logLevel == .debug && configuration.socket == "/run/s" && configuration.daemon == "/run/d")
    #expect(configuration.directory == "/srv/h" && configuration.keep == 864_000_000_000 && configuration.maxSize == 500_000_000)
    #expect(configuration.selection == Selection(included: [ReferencePattern("band.heart-rate")], excluded: [ReferencePattern("*.cell-*")]))
    var rules = PeriodRules()
    (rules.tripPause, rules.movingSpeed, rules.chargingCurrentThreshold, rules.tankVolume) = (60_000_000, 5.5, -2, 50)
    #expect(configuration.rules == rules)
    #expect(configuration.observe == AccessList(groups: ["a"], users: ["u"]))
    #expect(configuration.control == AccessList(groups: [], users: ["1000"]))
    #expect(configuration.alerts == [.init(name: "full", condition: try AlertCondition("state-of-charge >= 80"), runsProgram: true)])
  }

  @Test(arguments: [
    ("[histroy]\nkeep = 1", "f:1:2: unknown section \"histroy\"; did you mean history?"),
    ("[history]\nkep = 1", "f:2:1: unknown key \"kep\"; did you mean keep?"),
    ("[history]\nkeep = 0", "f:2:8: keep: 0 is out of range; use a number from 1 to 36500 days"),
    ("[history]\nkeep = \"1\"", "f:2:8: keep: \"1\" is a string; remove the quotes"),
    ("[history]\nsocket = \"s\"", "f:2:10: socket: \"s\" is not an absolute path of at most 107 bytes"),
    ("[history]\nrecord = [\"a b\"]", "f:2:10: record: \"a b\" is not a name or pattern"),
    ("[history]\nobserve = \"vehicled\"", "f:2:11: observe: \"vehicled\" is a string; write observe = [\"vehicled\"]"),
    ("[alert.Full]\ncondition = \"mil is on\"", "f:1:8: invalid alert name \"Full\""),
    ("[alert.full]\nrun-program = true", "f:1:1: condition is missing"),
    ("[alert.full]\ncondition = \"speed > fast\"", "f:2:22: condition: \"fast\" is not a number"),
    ("[alert.full]\ncondition = \"mil is on\"\nrun = \"x\"", "f:3:1: unknown key \"run\" for alert full"),
    (
      "[alert.full]\ncondition = \"mil is on\"\ncommand = true",
      "f:3:1: unknown key \"command\" for alert full; it has been renamed to run-program"
    ),
    ("[history]\ncharge-standing-time = 1", "f:2:1: unknown key \"charge-standing-time\"; it has been renamed to charge-stationary-time"),
    ("keep = 1", "f:1:1: unknown key \"keep\""),
    ("x = ", "f:1:5: syntax error in key-value pair"),
  ])
  func `a mistake names its place and the remedy`(_ text: String, _ message: String) {
    let error = #expect(throws: ConfigurationError.self) { try load(text) }
    #expect(error?.problems.count == 1 && error?.description.contains(message) == true, "\(error?.description ?? "")")
  }

  @Test func `the default file may be missing, a named one not`() throws {
    #expect(throws: Never.self) { try HistoryConfiguration.load("/nonexistent/history.toml", isRequired: false) }
    let error = #expect(throws: ConfigurationError.self) { try HistoryConfiguration.load("/nonexistent/history.toml") }
    #expect(error?.description.contains("no such file; create it, or omit --config") == true)
  }

  @Test func `the shipped file shows every key with its default`() throws {
    let shipped = try String(contentsOf: Self.root.appendingPathComponent("etc/history.toml"), encoding: .utf8)
    _ = try load(shipped)
    let text = ShippedFile.uncommented(shipped)
    #expect(throws: Never.self) { try load(text) }
    let root = try TOML.parse(Array(text.utf8), file: "f")
    func table(_ node: TOML.Node?) throws -> TOML.Table {
      guard case .table(let table)? = node?.content else { throw ValueError("no section") }
      return table
    }
    #expect(ShippedFile.problems(root, HistoryConfiguration.generalKeys, others: ["history", "alert"]) == [])
    #expect(try ShippedFile.problems(table(root["history"]?.value), HistoryConfiguration.historyKeys) == [])
    let alerts = try table(root["alert"]?.value)
    #expect(alerts.entries.count >= 4)
    #expect(
      try ShippedFile.problems(table(alerts.entries.first?.value), HistoryConfiguration.alertKeys, examples: ["run-program"]) == [])
  }
}
