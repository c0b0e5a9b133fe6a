// README.md and docs/: links that resolve, a README of one length, configuration that loads.

import Foundation
import Testing

/// The Markdown files for users.
enum Documents {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// Paths relative to the root.
  static func paths() throws -> [String] {
    let names = try FileManager.default.contentsOfDirectory(atPath: root.appendingPathComponent("docs").path)
    return ["README.md"] + names.filter { $0.hasSuffix(".md") }.sorted().map { "docs/\($0)" }
  }

  static func lines(_ path: String) throws -> [String] {
    try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8).components(separatedBy: "\n")
  }

  /// The lines outside fenced and indented code blocks, without code spans.
  static func prose(_ path: String) throws -> [String] {
    var isCode = false
    var prose: [String] = []
    for line in try lines(path) {
      if line.hasPrefix("```") {
        isCode.toggle()
      } else if !isCode, !line.hasPrefix("    ") {
        prose.append(line.components(separatedBy: "`").enumerated().map { $0.offset % 2 == 0 ? $0.element : "code" }.joined())
      }
    }
    return prose
  }

  /// The anchors that GitHub gives the headings of a file.
  static func anchors(_ path: String) throws -> Set<String> {
    var isCode = false
    var anchors: Set<String> = []
    for line in try lines(path) {
      if line.hasPrefix("```") { isCode.toggle() }
      guard !isCode, line.hasPrefix("#"), let space = line.firstIndex(of: " ") else { continue }
      let kept = line[space...].dropFirst().lowercased().filter { $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" || $0 == " " }
      anchors.insert(kept.replacingOccurrences(of: " ", with: "-"))
    }
    return anchors
  }

  /// The fenced blocks of one language.
  static func blocks(_ language: String, in path: String) throws -> [String] {
    var blocks: [String] = []
    var block: [String]?
    for line in try lines(path) {
      if line.hasPrefix("```") {
        if let block { blocks.append(block.joined(separator: "\n") + "\n") }
        block = block == nil && line == "```\(language)" ? [] : nil
      } else {
        block?.append(line)
      }
    }
    return blocks
  }
}

@Suite("README.md and docs/") struct DocumentTests {
  @Test func `source files and folders that documents name exist`() throws {
    let root = Documents.root.standardizedFileURL.path
    let all = try #require(FileManager.default.enumerator(atPath: "\(root)/Sources")?.compactMap { $0 as? String })
    let files = all.map { "/Sources/\($0)" }
    for path in try Documents.paths() + ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"] {
      for span in try Documents.lines(path).flatMap({ $0.components(separatedBy: "`").enumerated().filter { $0.offset % 2 == 1 } }) {
        let name = span.element.hasSuffix("/") ? String(span.element.dropLast()) : span.element
        guard name.hasSuffix(".swift") || name.hasPrefix("Sources/"), !name.contains("KIND"), !name.contains(" ") else { continue }
        #expect(
          files.contains { $0.hasSuffix("/\(name)") } || FileManager.default.fileExists(atPath: "\(root)/\(name)"), "\(path): \(name)")
      }
    }
  }

  @Test func `links and anchors resolve`() throws {
    for path in try Documents.paths() {
      let folder = Documents.root.appendingPathComponent(path).deletingLastPathComponent()
      for line in try Documents.prose(path) {
        for part in line.components(separatedBy: "](").dropFirst() {
          let link = part.prefix { $0 != ")" }
          if link.hasPrefix("https://") { continue }
          let pieces = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
          let target = pieces[0].isEmpty ? path : String(folder.appendingPathComponent(String(pieces[0])).standardizedFileURL.path)
          let file = pieces[0].isEmpty ? Documents.root.appendingPathComponent(path).path : target
          #expect(FileManager.default.fileExists(atPath: file), "\(path): \(link)")
          guard pieces.count == 2, file.hasSuffix(".md") else { continue }
          let relative = String(file.dropFirst(Documents.root.standardizedFileURL.path.count + 1))
          #expect(try Documents.anchors(relative).contains(String(pieces[1])), "\(path): \(link)")
        }
      }
    }
  }

  @Test func `the index links every page`() throws {
    let index = try Documents.prose("docs/README.md").joined()
    for path in try Documents.paths() where path.hasPrefix("docs/") && path != "docs/README.md" {
      #expect(index.contains("](\(path.dropFirst(5)))"), "\(path)")
    }
  }

  @Test func `README.md has at most 200 lines`() throws {
    #expect(try Documents.lines("README.md").count <= 201)
  }

  @Test func `the help of programs and simulators fits on a terminal with 80 columns`() throws {
    let rig = try Rig()
    let list = rig.run("\(Rig.programs)/vehiclesim", ["--help"]).output.components(separatedBy: "SUBCOMMANDS:\n").last ?? ""
    let kinds = list.split(separator: "\n").filter { $0.hasPrefix("  ") && !$0.hasPrefix("   ") && !$0.hasPrefix("  See ") }.compactMap {
      $0.split(separator: " ").first.map(String.init)
    }
    try #require(kinds.contains("can") && kinds.contains("history"), "\(list)")
    let programs = ["vehicled", "vehicled-history", "vehicled-mqtt", "vehicled-web"].map { ($0, [String]()) }
    for (program, words) in programs + kinds.map({ ("vehiclesim", [$0]) }) {
      let help = rig.run("\(Rig.programs)/\(program)", words + ["--help"]).output
      #expect(help.contains("USAGE: \(([program] + words).joined(separator: " "))"), "\(program) \(words)")
      for line in help.split(separator: "\n") { #expect(line.count <= 80, "\(program) \(words): \(line)") }
    }
  }

  @Test func `the help of vehiclesim can has only options of a CAN adapter`() throws {
    let rig = try Rig()
    let help = rig.run("\(Rig.programs)/vehiclesim", ["can", "--help"]).output
    #expect(help.contains("--bit-rate") && !help.contains("--address") && !help.contains("Bluetooth"), "\(help)")
    let outcome = rig.run("\(Rig.programs)/vehiclesim", ["can", "--on", "slcan:tcp:127.0.0.1:0", "--symlink", "/tmp/x"])
    #expect(outcome.status == 2 && outcome.errors.contains("--symlink needs --on slcan:pty"), "\(outcome)")
  }

  /// Files with keys do not exist here, and only they may be missing.
  @Test func `the TOML of every page loads`() throws {
    let rig = try Rig()
    try FileManager.default.createDirectory(atPath: "\(rig.directory)/signals.d", withIntermediateDirectories: true)
    for path in try Documents.paths() {
      for block in try Documents.blocks("toml", in: path) {
        let signals = "\(rig.directory)/signals.d/page.toml"
        let isSignals = block.hasPrefix("[signal.")
        try rig.write(isSignals ? block : "", to: signals)
        try rig.write(isSignals ? "[device.ev]\nkind = \"obd\"\nlink = \"serial:/dev/ttyUSB0\"\n" : block)
        let outcome = rig.run("\(Rig.programs)/vehicled", ["--check-config", "--config", rig.configuration])
        let problems = outcome.errors.split(separator: "\n").filter {
          // Secret files and users of the example do not exist here.
          !$0.contains("no such file or directory") && !$0.hasPrefix("vehicled: warning: ")
        }
        #expect(problems.isEmpty, "\(path): \(outcome.errors)\n\(block)")
      }
    }
  }
}
