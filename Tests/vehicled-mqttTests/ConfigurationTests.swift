// mqtt.toml: the shipped file and the manual page cover every key, and mistakes are named with their place.

import ArgumentParser
import ConfigurationFiles
import ConfigurationTesting
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

  @Test func `the VIN and health values are published only if they are listed, whatever is excluded`() throws {
    let personal =
      [("ev", "obd", "vin"), ("ev", "obd", "last-bad-reply"), ("ev", "can", "latitude"), ("car", "rc-car", "web-page")]
      + ["heart-rate", "active-energy", "steps", "distance"].map { ("glass", "mirror", "sent-\($0)") }
    let fleet = "[fleet]\ntenant = \"a\"\n"
    for keys in ["", #"exclude = ["*.cell-*"]"#] {
      let configuration = try check("[mqtt]\n\(keys)\n\(fleet)\(keys)").configuration
      let batches = try #require(configuration.fleet?.selection)
      #expect(configuration.selection.includes("glass", kind: "mirror", "sent-led"))
      #expect(configuration.selection.includes("ev", kind: "obd", "speed") && batches.includes("ev", kind: "obd", "speed"))
      for (device, kind, property) in personal {
        #expect(!configuration.selection.includes(device, kind: kind, property), "\(property) \(keys)")
        #expect(!batches.includes(device, kind: kind, property), "\(property) \(keys)")
      }
    }
    let keys = #"publish = ["ev", "car", "glass.sent-*"]"#
    let configuration = try check("[mqtt]\n\(keys)\n\(fleet)\(keys)").configuration
    for (device, kind, property) in personal { #expect(configuration.selection.includes(device, kind: kind, property), "\(property)") }
    #expect(configuration.fleet?.selection.includes("ev", kind: "obd", "vin") == true)
    let excluded = try check("[mqtt]\npublish = [\"ev\"]\nexclude = [\"*.vin\"]").configuration.selection
    #expect(!excluded.includes("ev", kind: "obd", "vin"), "exclude is stronger")
  }

  @Test(arguments: [
    ("[fleet]\nvehicle = \"a\"", "1:2: tenant is missing; add tenant = \"NAME\""),
    ("[fleet]\ntenant = \"a/b\"", "2:10: tenant: \"a/b\" cannot be part of a topic"),
    ("[fleet]\ntenant = \"a\"\nbach = 3", "3:1: unknown key \"bach\"; did you mean batch?"),
    ("[fleet]\ntenant = \"a\"\nbatch = 0", "3:9: batch: "), ("[mqtt]\nnames = \"kuksa\"", "2:9: names: "),
    ("[mqtt]\ntenant = \"a\"", "2:1: unknown key \"tenant\""),
    ("[mqtt]\ncontrol = [\"mirror.\"]", "2:11: control: \"mirror.\" is not a name or pattern of devices and properties"),
    ("[mqtt]\ncontrol = [\"mirror.led.set\"]", "2:11: control: \"mirror.led.set\" is not a name or pattern"),
    ("[mqtt]\ncontrol = [\"ev.dtc-clear\"]", "2:11: control: \"ev.dtc-clear\" is not available by MQTT; remove it"),
    ("[flet]\ntenant = \"a\"", "1:2: unknown section \"flet\"; did you mean fleet?"),
  ])
  func `a mistake names its place and the remedy`(_ text: String, _ message: String) throws {
    let problems = try check(text).problems
    #expect(problems.count == 1 && problems.first?.contains(message) == true, "\(problems)")
  }

  @Test func `the shipped file shows every key with its default`() throws {
    let shipped = try String(contentsOf: Self.root.appendingPathComponent("etc/mqtt.toml"), encoding: .utf8)
    #expect(try check(shipped).problems == [])
    let root = try TOML.parse(Array(ShippedFile.uncommented(shipped).utf8), file: "f")
    #expect(ShippedFile.problems(root, MQTTConfiguration.generalKeys, others: ["mqtt", "fleet"]) == [])
    for (name, keys) in [("mqtt", MQTTConfiguration.mqttKeys), ("fleet", MQTTConfiguration.fleetKeys)] {
      guard case .table(let table)? = root[name]?.value.content else { throw ValueError("no section \(name)") }
      #expect(ShippedFile.problems(table, keys) == [])
    }
  }

  @Test func `the manual page documents every key and option`() throws {
    let page = try ManualPage(Self.root.appendingPathComponent("systemd/man/vehicled-mqtt.8").path)
    #expect(page.problems(".Ss General keys", MQTTConfiguration.generalKeys) == [])
    #expect(page.problems(".Ss Section [mqtt]", MQTTConfiguration.mqttKeys) == [])
    #expect(page.problems(".Ss Section [fleet]", MQTTConfiguration.fleetKeys) == [])
    #expect(page.problems(options: MQTTCommand.helpMessage(includeHidden: false, columns: 100)) == [])
  }
}
