// Compares etc/vehicled.toml and the example in the error message with the tables of known keys.

import ConfigurationFiles
import Foundation
import Protocols
import Testing

@testable import vehicled

@Suite struct ConfigurationExampleTests {
  private static let path = tree("etc/vehicled.toml")

  /// The shipped file with its settings uncommented.
  private func uncommented() throws -> String {
    let lines = try String(contentsOfFile: Self.path, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
    return lines.map { line in
      guard line.hasPrefix("#"), let next = line.dropFirst().first, next == "[" || next.isLowercase else { return String(line) }
      return String(line.dropFirst())
    }.joined(separator: "\n")
  }

  private func section(_ table: TOML.Table, _ key: String) throws -> TOML.Table {
    guard case .table(let section) = try #require(table[key]).value.content else { throw ValueError("\(key) is no section") }
    return section
  }

  /// The tables together hold these keys.
  private func expect(_ tables: [TOML.Table], hold options: [Protocols.Option], and others: [String]) throws {
    let entries = tables.flatMap(\.entries)
    #expect(Set(entries.map(\.key)) == Set(options.map(\.name) + others))
    for option in options {
      guard let fallback = option.defaultValue else { continue }
      let value = try #require(entries.first { $0.key == option.name }?.value.content.value)
      #expect(try option.rule.accept(value) == fallback, "\(option.name)")
    }
  }

  @Test(arguments: [
    ("kind = \"obd\"\nlink = \"tcp:h:1\"\npages = \"fast\"", "4:1", "poll"),
    ("kind = \"obd\"\nlink = \"tcp:h:1\"\nprobe-pause = 60", "4:1", "probe-interval"),
    ("kind = \"obd\"\nlink = \"tcp:h:1\"\n[device.x.property.odometer]\nask = false", "5:1", "poll"),
    ("kind = \"health\"\nheart-rate-fresh = 60", "3:1", "heart-rate-max-age"),
    ("kind = \"health\"\nestimate-distance = 0.7", "3:1", "step-length"),
    ("kind = \"longboard\"\nlink = \"tcp:h:1\"\nprotocol = \"vesc\"\nmotion-current = 5", "5:1", "max-motor-current"),
    ("kind = \"longboard\"\nlink = \"tcp:h:1\"\nprotocol = \"vesc\"\nmotion-duty = 5", "5:1", "max-duty-cycle"),
  ])
  func `a key that was renamed is an error that names the new one`(_ text: String, _ place: String, _ name: String) throws {
    let folder = try Folder()
    let file = try folder.write("[device.x]\n" + text)
    let error = #expect(throws: (any Error).self) { try Configuration.load(file, kinds: registry) }
    let message = "\(try #require(error))"
    #expect(message.contains("\(place): unknown key") && message.contains("it has been renamed to \(name)"), "\(message)")
  }

  @Test func `the shipped file changes no default`() throws {
    #expect(try Configuration.load(Self.path, kinds: registry) == Configuration())
  }

  @Test func `the uncommented file loads and has every known key with its default`() throws {
    let folder = try Folder()
    // The secret files that it names, in a folder where they exist.
    let text = try uncommented().replacingOccurrences(of: "\"/etc/vehicled/mirror.", with: "\"\(folder.path)/mirror.")
    for name in ["mirror.key", "mirror.iv"] {
      let secret = try folder.write("ascii:0123456789ABCDEF", to: name)
      #expect(chmod(secret, 0o600) == 0)
    }
    let configuration = try Configuration.load(folder.write(text), kinds: registry)
    // The shown list of drivers is that of the controllers, who may drive if there is none.
    let lists = Configuration.AccessLists(
      observe: ["vehicled", "vehicled-observe"], control: ["vehicled"], drive: ["vehicled"], limitsDriving: true)
    #expect(
      configuration.control
        == Configuration.Control(socket: "/run/vehicled/io.vehicled", lists: lists, devices: ["car": .init(limitsDriving: true)]))
    let root = try TOML.parse(Array(text.utf8), file: "example")
    try expect([root], hold: Configuration.generalKeys, and: ["control", "device"])
    try expect([section(root, "control")], hold: Configuration.controlKeys, and: [])
    let kinds = [
      "obd", "obd", "can", "longboard", "longboard", "rc-car", "mirror", "health", "heart-rate", "foot-pod", "position", "weather",
      "weather", "toy",
    ]
    #expect(
      configuration.devices.map(\.kind) == kinds,
      "every kind, a car for each kind of adapter, a longboard for each protocol, weather for both ways to say where")
    let accessKeys = Configuration.deviceAccessKeys.map(\.name)
    func table(_ device: Configuration.Device, _ isShown: (TOML.Entry) -> Bool) throws -> TOML.Table {
      TOML.Table(entries: try section(section(root, "device"), device.name).entries.filter(isShown))
    }
    // The keys for access to a device are shown for one device.
    let access = try configuration.devices.map { try table($0) { accessKeys.contains($0.key) } }
    try expect(access.filter { !$0.entries.isEmpty }, hold: Configuration.deviceAccessKeys, and: [])
    for kind in registry {
      let tables = try configuration.devices.filter { $0.kind == kind.name }.map { try table($0) { !accessKeys.contains($0.key) } }
      try expect(
        tables, hold: kind.deviceKeys + kind.options,
        and: kind.links.map(\.key) + kind.secrets.map(\.name) + kind.sections.map(\.name))
    }
  }

  @Test func `the example in the message about a missing file is valid`() throws {
    let folder = try Folder()
    #expect(try Configuration.load(folder.write(Configuration.example), kinds: registry).devices.count == 1)
  }
}

/// A file of the source tree.
func tree(_ path: String) -> String {
  URL(fileURLWithPath: #filePath).appendingPathComponent("../../../" + path).standardizedFileURL.path
}
