// Protocols, Varlink, SignalImport, Trips and Peers consist of values: no sockets, clocks, loggers or actors. This test checks their imports.

import Foundation
import Testing

@Suite("Purity") struct PurityTests {
  /// Where an import of Cryptography is allowed: its cipher for the mirror, and its hashes for passwords.
  private static let ciphers = ["Protocols/Mirror/", "Peers/Mirror/", "Peers/Trivia/TriviaSecrets.swift"]
  /// Where a lock is allowed: machines of one server share it.
  private static let shared = "Peers/Trivia/TriviaMemoryStore.swift"
  /// Where an import of FoundationEssentials is allowed: its coders, for the socket's JSON and for recordings.
  private static let coders = "Varlink/"

  @Test(arguments: ["Protocols", "Varlink", "SignalImport", "Trips", "Peers"])
  func `a target imports only allowed modules`(_ target: String) throws {
    let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../Sources/\(target)").standardized
    let files = try #require(
      FileManager.default.enumerator(atPath: sources.path)?.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") })
    #expect(files.count > 5)
    for file in files {
      let text = try String(contentsOf: sources.appendingPathComponent(file), encoding: .utf8)
      for line in text.split(separator: "\n") {
        let words = line.split(separator: " ")
        guard let at = words.firstIndex(of: "import"), words[..<at].allSatisfy({ $0.hasPrefix("@") || $0 == "public" || $0 == "internal" })
        else {
          continue
        }
        let module = words[at...].dropFirst().first ?? ""
        let place = "\(target)/\(file)"
        let isAllowed =
          switch module {
          case "Protocols": target != "Protocols"
          case "FoundationEssentials": place.hasPrefix(Self.coders)
          case "Synchronization": place == Self.shared
          case "Cryptography": Self.ciphers.contains { place.hasPrefix($0) }
          default: false
          }
        #expect(isAllowed, "\(target)/\(file) imports \(module)")
      }
      for forbidden in [
        "ContinuousClock", "SuspendingClock", "SystemRandomNumberGenerator", " print(", "Task {", "\nactor ", "public actor ",
      ] {
        #expect(!text.contains(forbidden), "\(target)/\(file) uses \(forbidden)")
      }
    }
  }
}
