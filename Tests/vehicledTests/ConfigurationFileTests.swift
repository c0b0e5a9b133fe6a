// Unreadable configuration files, and random bytes.

import ConfigurationFiles
import Foundation
import Glibc
import Testing

@testable import Peers
@testable import vehicled

@Suite struct ConfigurationFileTests {
  private func failure(_ path: String) -> String {
    let error = #expect(throws: ConfigurationError.self) { try Configuration.load(path, kinds: [Still.kind]) }
    return error?.description ?? ""
  }

  @Test func `the message about a missing file has an example`() throws {
    let path = try Folder().path + "/v.toml"
    #expect(failure(path) == "\(path): no such file; create it with your devices, for example:\n\(Configuration.example)")
    #expect(Configuration.example.split(separator: "\n").count == 4)
  }

  @Test func `directories, huge files, invalid UTF-8 and FIFOs are rejected`() throws {
    let folder = try Folder()
    #expect(failure(folder.path) == "\(folder.path): is a directory; use a file, or put files into \(folder.path).d")
    let big = try folder.write([UInt8](repeating: 10, count: (1 << 20) + 1))
    #expect(failure(big) == "\(big): larger than 1 MiB; check that it is the right file")
    let bad = try folder.write(Array("# ok\nlog-level = \"".utf8) + [0xC3, 0x28, 0x22])
    #expect(failure(bad).hasPrefix("\(bad):2:") && failure(bad).hasSuffix("save the file as UTF-8"), "\(failure(bad))")
    #expect(mkfifo(folder.path + "/fifo", 0o600) == 0)
    #expect(failure(folder.path + "/fifo") == "\(folder.path)/fifo: is a pipe; use a regular file")
    try folder.write("", to: "w.toml")
    try folder.write("", to: "w.toml.d")
    #expect(failure(folder.path + "/w.toml").contains("w.toml.d: not a directory"))
  }

  @Test(.enabled(if: geteuid() != 0, "root may read everything"))
  func `a file without read permission is reported`() throws {
    let folder = try Folder()
    let path = try folder.write("")
    chmod(path, 0)
    #expect(failure(path).hasPrefix("\(path): permission denied; make it readable for user "))
  }

  @Test func `the main file may be 1 MiB long`() throws {
    let folder = try Folder()
    #expect(try Configuration.load(folder.write([UInt8](repeating: 10, count: 1 << 20)), kinds: []) == Configuration())
  }

  @Test func `nesting depth is limited in every syntax`() throws {
    let dots = "a" + String(repeating: ".a", count: 63)
    var deep = "[\(dots).a]\n"
    for _ in 0..<3 { deep += "\(dots)=[\n{" }
    deep += "x=1" + String(repeating: "}]", count: 3)
    for text in [
      "x=" + String(repeating: "[", count: 500_000), String(repeating: "a.", count: 500_000) + "a=1", "[" + dots + dots + "]", deep,
    ] {
      #expect(try !problems(text).isEmpty)
    }
    #expect(try problems("# " + String(repeating: ".", count: 1000)).isEmpty)
  }

  @Test func `at most fifty mistakes are printed`() throws {
    let text = (0..<50_000).map { "k\($0)=1\n" }.joined()
    #expect(try problems(text).count == 1000)
    let folder = try Folder()
    #expect(try failure(folder.write(text)).split(separator: "\n").count == 51)
  }

  @Test func `random bytes do not trap the loader`() throws {
    var random = SeededRandom(seed: 42)
    let seed = Array(
      """
      log-level = "info" # c
      [control]
      observe = ["vehicled"]
      [device.ev]
      kind = "still"
      link = 'serial:/dev/ttyUSB0?baud=9600'
      rate = 2.5
      x = { y = [1, 1979-05-27], z.w = \"""
      a\"\"" }
      """.utf8)
    var read = 0
    for _ in 0..<4000 {
      var bytes = seed
      for _ in 0...Int.random(in: 0..<6, using: &random) { bytes.mutate(using: &random) }
      guard let table = try? TOML.parse(bytes, file: "f") else { continue }
      read += 1
      var check = ConfigurationCheck(kinds: [Still.kind], isComplete: true)
      _ = check.configuration(table)
      let places = check.problems.map(\.location)
      #expect(places.allSatisfy { $0.line >= 1 && $0.column >= 1 })
      #expect(check.problems.allSatisfy { $0.text.utf8.allSatisfy { $0 >= 0x20 } })
    }
    #expect(read > 100)
  }
}
