// The borders of ARCHITECTURE.md inside the daemon, which folder of Sources/vehicled may name which, and the imports of ServiceRuntime.

import Foundation
import Testing

@Suite("Architecture") struct ArchitectureTests {
  /// The folders whose types each folder may use, besides its own. The composition root, the files outside of the folders, may use all.
  private static let dependencies: [String: Set<String>] = [
    "Runtime": [],
    "Storage": ["Runtime"],
    "HTTP": ["Runtime"],
    "Guardian": ["Runtime", "Storage"],
    "Configuration": ["Runtime", "Storage"],
    "Bus": ["Runtime", "Configuration"],
    "Link": ["Runtime", "Storage", "Configuration", "Bus"],
    "Device": ["Runtime", "Storage", "Configuration", "Link", "HTTP", "Guardian"],
    "State": ["Runtime", "Device"],
    "Control": ["Runtime", "Storage", "Configuration", "Bus", "Device", "State"],
  ]

  @Test func `folders of the daemon use only the folders below them`() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../Sources/vehicled").standardized
    var words: [String: Set<Substring>] = [:]
    var declared: [String: Set<Substring>] = [:]
    // The folder of each type, function and value that other files can see.
    var owners: [Substring: String] = [:]
    let files = try #require(FileManager.default.enumerator(atPath: root.path)?.compactMap { $0 as? String })
    let swift = files.filter { $0.hasSuffix(".swift") }
    #expect(Set(swift.filter { !$0.contains("/") }) == ["Daemon.swift", "VehicledCommand.swift", "Watchdog.swift"], "the composition root")
    for file in swift where file.contains("/") {
      let folder = String(file.prefix { $0 != "/" })
      let text = try String(contentsOf: root.appendingPathComponent(file), encoding: .utf8)
      for line in text.split(separator: "\n") {
        let code = line.replacing(/\/\/.*/, with: "").replacing(/"(\\.|[^"\\])*"/, with: "")
        for match in code.matches(of: /\b(?:struct|class|enum|protocol|typealias|func|let|var|case)\s+(\w+)/) {
          declared[folder, default: []].insert(match.1)
          let isTopLevel = !code.hasPrefix(" ") && !code.hasPrefix("private") && !code.hasPrefix("fileprivate")
          if isTopLevel { owners[match.1] = folder }
        }
        // Members are named after a dot: they belong to a type that is named elsewhere.
        for match in code.replacing(/\.\w+/, with: "").matches(of: /\w+/) { words[folder, default: []].insert(match.0) }
      }
    }
    #expect(Set(words.keys) == Set(Self.dependencies.keys), "a folder without rule: add it to this test and to ARCHITECTURE.md")
    for (folder, names) in words {
      for name in names {
        guard let owner = owners[name], owner != folder, declared[folder]?.contains(name) != true else { continue }
        #expect(Self.dependencies[folder]?.contains(owner) == true, "\(folder) must not use \(name) of \(owner)")
      }
    }
  }

  @Test func `no folder uses itself through others`() {
    func reaches(_ folder: String, from start: String, _ seen: Set<String> = []) -> Bool {
      (Self.dependencies[start] ?? []).contains { next in
        next == folder || !seen.contains(next) && reaches(folder, from: next, seen.union([next]))
      }
    }
    for folder in Self.dependencies.keys { #expect(!reaches(folder, from: folder), "\(folder)") }
  }

  private static let imports: [(String, Set<Substring>)] = [
    ("ServiceRuntime", ["CLinux", "CSystemd", "Glibc", "Logging", "Protocols", "Synchronization", "Varlink"]),
    ("ConfigurationFiles", ["CToml", "Glibc", "Protocols", "ServiceRuntime"]),
    (
      "vehicled-history",
      [
        "ArgumentParser", "CLinux", "ConfigurationFiles", "Glibc", "HistoryStore", "Logging", "Observations", "Protocols", "SampleBlocks",
        "ServiceRuntime", "SQLite", "Synchronization", "Trips", "Varlink",
      ]
    ),
    (
      "vehicled-mqtt",
      [
        "ArgumentParser", "CMosquitto", "ConfigurationFiles", "Glibc", "Logging", "Observations", "Protocols", "SampleBlocks",
        "ServiceRuntime", "SQLite", "VSS", "Varlink",
      ]
    ),
    ("OpenMetrics", ["Protocols", "Varlink"]),
    (
      "vehicled-web",
      [
        "ArgumentParser", "CDeflate", "ConfigurationFiles", "Cryptography", "Glibc", "Logging", "NIOCore", "NIOHTTP1", "NIOPosix",
        "NIOWebSocket", "OpenMetrics", "Protocols", "ServiceRuntime", "Varlink",
      ]
    ),
    ("Observations", ["CLinux", "Glibc", "Protocols", "ServiceRuntime", "Varlink"]),
  ]

  @Test(arguments: imports)
  func `services import only these modules`(_ target: String, _ allowed: Set<Substring>) throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../Sources/\(target)").standardized
    let all = try #require(FileManager.default.enumerator(atPath: root.path)?.compactMap { $0 as? String })
    let files = all.filter { $0.hasSuffix(".swift") }
    #expect(!files.isEmpty)
    for file in files {
      let text = try String(contentsOf: root.appendingPathComponent(file), encoding: .utf8)
      for line in text.matches(of: /(?m)^(?:\S+ )?import (\w+)/) { #expect(allowed.contains(line.1), "\(file) imports \(line.1)") }
    }
  }
}
