// mqtt.toml: the shipped file and the manual page cover every key, and mistakes are named with their place.

import ArgumentParser
import ConfigurationFiles
import Foundation
import Protocols
import Testing

@testable import vehicled_mqtt

@Suite("Configuration of the bridge") struct MQTTConfigurationTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized

  private func check(_ text: String) throws -> (configuration: MQTTConfiguration, problems: [String]) {
    var check = MQTTCheck()
    let configuration = check.configuration(try TOML.parse(Array(text.utf8), file: "f"))
    return (configuration, check.problems.map(\.description))
  }

  @Test func `keys have their defaults, and set what they name`() throws {
    let plain = try check("").configuration
    #expect(plain.fleet == nil && plain.names == .init(vss: false, own: true) && plain.discoveryPrefix == "homeassistant")
    let (found, problems) = try check(
      """
      [mqtt]
      broker = "mqtts://broker.example:8884"
      names = "vss"
      home-assistant = false
      [fleet]
      tenant = "acme"
      vehicle = "van-17"
      publish = ["gps"]
      batch = 10
      """)
    #expect(problems == [])
    #expect(found.broker.description == "mqtts://broker.example:8884" && found.names == .init(vss: true, own: false))
    #expect(found.fleet?.tenant == "acme" && found.fleet?.vehicle == "van-17" && found.fleet?.interval == 10 * .second)
    #expect(found.fleet?.selection.includes("gps", kind: "position", "latitude") == true)
    #expect(try check("[mqtt]\nnames = \"vss\"").configuration.names == .init(vss: true, own: true), "for Home Assistant")
  }

  @Test(arguments: [
    ("[fleet]\nvehicle = \"a\"", "1:2: tenant is missing; add tenant = \"NAME\""),
    ("[fleet]\ntenant = \"a/b\"", "2:10: tenant: \"a/b\" cannot be part of a topic"),
    ("[fleet]\ntenant = \"a\"\nbach = 3", "3:1: unknown key \"bach\"; did you mean batch?"),
    ("[fleet]\ntenant = \"a\"\nbatch = 0", "3:9: batch: "), ("[mqtt]\nnames = \"kuksa\"", "2:9: names: "),
    ("[mqtt]\ntenant = \"a\"", "2:1: unknown key \"tenant\""),
    ("[flet]\ntenant = \"a\"", "1:2: unknown section \"flet\"; did you mean fleet?"),
  ])
  func `a mistake names its place and the remedy`(_ text: String, _ message: String) throws {
    let problems = try check(text).problems
    #expect(problems.count == 1 && problems.first?.contains(message) == true, "\(problems)")
  }

  @Test func `the shipped file shows every key with its default`() throws {
    let shipped = try String(contentsOf: Self.root.appendingPathComponent("etc/mqtt.toml"), encoding: .utf8)
    #expect(try check(shipped).problems == [])
    let lines = shipped.split(separator: "\n", omittingEmptySubsequences: false).map { line -> Substring in
      guard line.hasPrefix("#"), let next = line.dropFirst().first, next == "[" || next.isLowercase else { return line }
      return line.dropFirst()
    }
    let root = try TOML.parse(Array(lines.joined(separator: "\n").utf8), file: "f")
    func expect(_ table: TOML.Table, holds options: [Protocols.Option], and others: [String] = []) throws {
      #expect(Set(table.entries.map(\.key)) == Set(options.map(\.name) + others))
      for option in options {
        guard let fallback = option.defaultValue, let value = table[option.name]?.value.content.value else { continue }
        #expect(try option.rule.accept(value) == fallback, "\(option.name)")
      }
    }
    try expect(root, holds: MQTTConfiguration.generalKeys, and: ["mqtt", "fleet"])
    for (name, keys) in [("mqtt", MQTTConfiguration.mqttKeys), ("fleet", MQTTConfiguration.fleetKeys)] {
      guard case .table(let table)? = root[name]?.value.content else { throw ValueError("no section \(name)") }
      try expect(table, holds: keys)
    }
  }

  // MARK: The manual page

  private func chapter(_ heading: String) throws -> [String] {
    let text = try String(contentsOf: Self.root.appendingPathComponent("systemd/man/vehicled-mqtt.8"), encoding: .utf8)
    let page = text.replacingOccurrences(of: "\\", with: "").split(separator: "\n").map(String.init)
    let start = try #require(page.firstIndex(of: heading), "there is no \(heading)")
    return Array(page[(start + 1)...].prefix { !$0.hasPrefix(".Sh ") && !$0.hasPrefix(".Ss ") })
  }

  private func words(_ text: String) -> [String] {
    text.split { " ,;()[]\"".contains($0) }.filter { !$0.hasPrefix(".") }.map { word in
      String(word.last == "." || word.last == ":" ? word.dropLast() : word)
    }.filter { !$0.isEmpty }
  }

  @Test(arguments: [
    (".Ss General keys", MQTTConfiguration.generalKeys), (".Ss Section [mqtt]", MQTTConfiguration.mqttKeys),
    (".Ss Section [fleet]", MQTTConfiguration.fleetKeys),
  ])
  func `every key is documented with its range and default`(_ heading: String, _ options: [Protocols.Option]) throws {
    let chapter = try chapter(heading)
    for option in options {
      let start = try #require(chapter.firstIndex(of: ".It Cm \(option.name)"), "no description of \(option.name)")
      let text = chapter[(start + 1)...].prefix { !$0.hasPrefix(".It Cm ") }.joined(separator: " ")
      let found = words(text)
      let ends = option.rule.range.map { [Value.text($0.lowerBound), Value.text($0.upperBound)] } ?? []
      for word in ends + (option.rule.unit.map { [$0] } ?? []) + option.rule.choices {
        #expect(found.contains(word), "\(option.name): \(word)")
      }
      let parts = text.components(separatedBy: "Default:")
      #expect(parts.count == (option.defaultValue == nil ? 1 : 2), "\(option.name)")
      guard let fallback = option.defaultValue, let last = parts.last else { continue }
      let expected: [String] =
        switch fallback {
        case .bool(let flag): [flag ? "true" : "false"]
        case .list(let texts): texts.isEmpty ? ["none"] : texts
        default: [fallback.text]
        }
      #expect(words(last) == expected, "\(option.name)")
    }
  }

  @Test func `exactly the options of the program are documented`() throws {
    let help = MQTTCommand.helpMessage(includeHidden: false, columns: 100).split(separator: "\n")
    let options = help.filter { $0.hasPrefix("  -") }.compactMap { $0.split(separator: " ").first { $0.hasPrefix("--") }?.dropFirst(2) }
    let items = try chapter(".Sh OPTIONS").filter { $0.hasPrefix(".It ") }
    let named = items.compactMap { $0.components(separatedBy: "Fl Fl ").last?.split(separator: " ").first }
    #expect(Set(options) == Set(named) && !named.isEmpty)
  }
}
