// vehicled-history(8) documents every key with its range and default, and every option.

import ArgumentParser
import Foundation
import Protocols
import Testing

@testable import vehicled_history

@Suite struct HistoryManualTests {
  /// The lines of the page, without backslashes.
  private func page() throws -> [String] {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized
    let text = try String(contentsOf: root.appendingPathComponent("systemd/man/vehicled-history.8"), encoding: .utf8)
    return text.replacingOccurrences(of: "\\", with: "").split(separator: "\n").map(String.init)
  }

  private func chapter(_ heading: String) throws -> [String] {
    let page = try page()
    let start = try #require(page.firstIndex(of: heading), "there is no \(heading)")
    return Array(page[(start + 1)...].prefix { !$0.hasPrefix(".Sh ") && !$0.hasPrefix(".Ss ") })
  }

  private func words(_ text: String) -> [String] {
    text.split { " ,;()[]\"".contains($0) }.filter { !$0.hasPrefix(".") }.map { word in
      String(word.last == "." || word.last == ":" ? word.dropLast() : word)
    }.filter { !$0.isEmpty }
  }

  @Test(arguments: [
    (".Ss General keys", HistoryConfiguration.generalKeys), (".Ss Section [history]", HistoryConfiguration.historyKeys),
    (".Ss Section [alert.NAME]", HistoryConfiguration.alertKeys),
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
        case .list(let texts): texts
        default: [fallback.text]
        }
      #expect(words(last) == expected, "\(option.name)")
    }
  }

  @Test func `exactly the options of the program are documented`() throws {
    let help = HistoryCommand.helpMessage(includeHidden: false, columns: 100).split(separator: "\n")
    let options = help.filter { $0.hasPrefix("  -") }.compactMap { $0.split(separator: " ").first { $0.hasPrefix("--") }?.dropFirst(2) }
    let items = try chapter(".Sh OPTIONS").filter { $0.hasPrefix(".It ") }
    let named = items.compactMap { $0.components(separatedBy: "Fl Fl ").last?.split(separator: " ").first }
    #expect(Set(options) == Set(named) && !named.isEmpty)
  }

  @Test func `the page and the documentation name the identifier of alerts`() throws {
    #expect(try page().contains { $0.contains(AlertManager.messageID) })
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized
    #expect(try String(contentsOf: root.appendingPathComponent("docs/history.md"), encoding: .utf8).contains(AlertManager.messageID))
  }
}
