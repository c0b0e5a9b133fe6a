// The manual page of vehiclectl has every command and every option. Escapes of roff are ignored.

import ArgumentParser
import Foundation
import Testing

@testable import vehiclectl

@Suite struct ManualTests {
  /// The lines of the page, without backslashes.
  private func page() throws -> [String] {
    let place = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../systemd/man/vehiclectl.1").standardizedFileURL.path
    let text = try String(contentsOfFile: place, encoding: .utf8)
    return text.replacingOccurrences(of: "\\", with: "").split(separator: "\n").map(String.init)
  }

  /// Every command with the words that it is called by.
  static func commands() throws -> [(words: String, type: any ParsableCommand.Type)] {
    var found: [(words: String, type: any ParsableCommand.Type)] = []
    for verb in VehicleCtl.configuration.subcommands {
      let name = try #require(verb.configuration.commandName)
      found.append((name, verb))
      for inner in verb.configuration.subcommands {
        let further = try #require(inner.configuration.commandName)
        found.append(("\(name) \(further)", inner))
      }
    }
    return found
  }

  @Test func `every command is in the manual page`() throws {
    let page = try page()
    for command in try Self.commands() {
      let item = ".It Ic \(command.words)"
      #expect(page.contains { $0 == item || $0.hasPrefix(item + " ") }, "\(command.words)")
    }
  }

  @Test func `every option of every command is in the manual page`() throws {
    let words = try page().map { line in line.drop { $0 == "." }.split(separator: " ") }
    var named: Set<Substring> = []
    for line in words {
      for index in line.indices.dropFirst(2) where line[index - 1] == "Fl" && line[index - 2] == "Fl" { named.insert(line[index]) }
    }
    for command in try Self.commands() {
      let help = VehicleCtl.helpMessage(for: command.type, includeHidden: false, columns: 100).split(separator: "\n")
      let options = help.filter { $0.hasPrefix("  -") }.compactMap { $0.split(separator: " ").first { $0.hasPrefix("--") }?.dropFirst(2) }
      #expect(options.count >= 9, "\(command.words)")
      for option in options { #expect(named.contains(option), "\(command.words) --\(option)") }
    }
  }
}
