// Searches the sources, the manual pages, the documents and the help of vehiclectl for words that the project does not use. The table
// in CONTRIBUTING.md lists them.

import ArgumentParser
import Foundation
import Testing

@testable import vehiclectl

@Suite struct GlossaryTests {
  private static let root = URL(fileURLWithPath: #filePath).appendingPathComponent("../../..").standardizedFileURL
  /// Files in which a word is allowed, because it is defined or quoted there.
  private static let allowed = ["CONTRIBUTING.md"]

  private static func text(of file: String) -> String? {
    try? String(contentsOf: root.appendingPathComponent(file), encoding: .utf8)
  }

  /// The banned words and phrases of at most three words, in lower case, each with its replacement.
  private static func banned() throws -> [String: String] {
    let guide = try #require(text(of: "CONTRIBUTING.md"))
    let section = try #require(guide.components(separatedBy: "\n## Words\n").dropFirst().first?.components(separatedBy: "\n## ").first)
    var found: [String: String] = [:]
    for line in section.split(separator: "\n") where line.hasPrefix("| ") && !line.hasPrefix("| instead of") {
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      guard cells.count == 2 else { continue }
      for word in cells[0].components(separatedBy: ", ") { found[word] = cells[1] }
    }
    return found
  }

  /// The banned words in a text, with their line numbers.
  private static func findings(in text: String, _ banned: [String: String]) -> [(line: Int, word: String)] {
    var found: [(Int, String)] = []
    for (number, line) in text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
      let words = words(in: line)
      for start in words.indices {
        for length in 1...3 where start + length <= words.count {
          let phrase = words[start..<start + length].joined(separator: " ")
          if banned[phrase] != nil { found.append((number + 1, phrase)) }
        }
      }
    }
    return found
  }

  /// The words of a line in lower case; an empty one stands for punctuation, over which no phrase extends.
  private static func words(in line: Substring.UTF8View) -> [String] {
    line.split(separator: UInt8(ascii: " ")).flatMap { chunk in
      let pieces = chunk.split(omittingEmptySubsequences: false) { byte in
        byte < 0x80 && isalnum(Int32(byte)) == 0 && byte != UInt8(ascii: "'") && byte != UInt8(ascii: "_")
      }
      return pieces.map { [String(decoding: $0, as: UTF8.self).lowercased()] }.joined(separator: [""])
    }
  }

  private static func files() -> [String] {
    let names = FileManager.default.enumerator(atPath: root.path)?.compactMap { $0 as? String } ?? []
    return names.filter { name in
      ["Sources/", "docs/", "systemd/", "etc/"].contains(where: name.hasPrefix)
        || name.hasSuffix(".md") && !name.contains("/") && name != "CHANGELOG.md"
    }.filter { !allowed.contains($0) }.sorted()
  }

  @Test func `sources, manual pages and documents use standard terms`() throws {
    let banned = try Self.banned()
    #expect(banned.count > 20 && banned["mend"] != nil)
    #expect(Self.findings(in: "It is mended; let go!\nLast words", banned).map(\.line) == [1, 1, 2])
    let files = Self.files()
    #expect(files.count > 400)
    for file in files {
      for (line, word) in Self.findings(in: Self.text(of: file) ?? "", banned) {
        Issue.record("\(file):\(line): \"\(word)\": write \(banned[word] ?? "")")
      }
    }
  }

  @Test func `so does the help of all commands`() throws {
    let banned = try Self.banned()
    func check(_ type: any ParsableCommand.Type) {
      let help = VehicleCtl.helpMessage(for: type, includeHidden: true, columns: 400)
      for (_, word) in Self.findings(in: help, banned) { Issue.record("\(type): \"\(word)\": write \(banned[word] ?? "")") }
      type.configuration.subcommands.forEach(check)
    }
    check(VehicleCtl.self)
  }
}
