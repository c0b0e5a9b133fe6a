// The file of the sessions: its mode, its replacement as a whole, and what happens to a damaged one.

import Foundation
import Testing

@testable import vehicled_web

@Suite("File of the sessions") final class SessionFileTests {
  private let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
  private let file: SessionFile

  init() throws {
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    file = SessionFile(in: directory.path)
  }

  deinit { try? FileManager.default.removeItem(at: directory) }

  private var names: [String] { get throws { try FileManager.default.contentsOfDirectory(atPath: directory.path) } }

  @Test func `the file is readable only by its owner, and replaced as a whole`() throws {
    #expect(file.load().isEmpty)
    let records = (0..<64).map {
      SessionRecord(secret: SecretHash(of: "\($0)".utf8), token: SecretHash(of: "token".utf8), expiry: .max - Int64($0))
    }
    for records in [records, []] {
      file.store(records)
      #expect(file.load() == records)
    }
    #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int == 0o600)
    #expect(try names == ["sessions"])
  }

  @Test func `a file that cannot be written or read ends nothing but sessions`() throws {
    let missing = SessionFile(in: directory.path + "/missing")
    missing.store([])
    #expect(missing.load().isEmpty)
    try FileManager.default.createDirectory(atPath: file.path, withIntermediateDirectories: true)
    #expect(file.load().isEmpty)
    file.store([])
    #expect(file.load().isEmpty)
  }

  @Test func `a file that cannot be replaced is removed, because sessions in it may have ended`() throws {
    file.store([SessionRecord(secret: SecretHash(of: "a".utf8), token: SecretHash(of: "b".utf8), expiry: 1)])
    #expect(file.load().count == 1)
    // A directory that is not empty is in the place of the temporary file.
    try FileManager.default.createDirectory(atPath: directory.path + "/.sessions.new/x", withIntermediateDirectories: true)
    file.store([])
    #expect(file.load().isEmpty)
    #expect(try names == [".sessions.new"])
  }

  @Test func `a hash is the SHA-256 of a secret`() {
    #expect(SecretHash(of: "abc".utf8).text == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    #expect(SecretHash(stored: SecretHash(of: "abc".utf8).text) == SecretHash(of: "abc".utf8))
    for text in ["", "ab", String(repeating: "g", count: 64), String(repeating: "A", count: 64), String(repeating: "0", count: 65)] {
      #expect(SecretHash(stored: text) == nil)
    }
  }

  @Test(arguments: [
    "", "{", "[]", #"{"version":2}"#, #"{"version":1,"sessions":[]}"#, #"{"version":2,"sessions":[{}]}"#,
    #"{"version":2,"sessions":[{"secret":"x","token":"y","expiry":1}]}"#, String(repeating: " ", count: 70_000),
  ])
  func `a damaged file is moved away`(_ text: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: file.path))
    #expect(file.load().isEmpty && file.load().isEmpty)
    #expect(try names == ["sessions.damaged"])
    #expect(try Data(contentsOf: URL(fileURLWithPath: file.path + ".damaged")) == Data(text.utf8))
  }
}
