// References on the command line: names, devices, patterns, and suggestions.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct ReferencesTests {
  private static let schemas = [
    Contract.Schema(
      device: "ev", kind: "obd",
      Schema(properties: ["rpm", "speed", "cells-1-32", "cells-33-64"].map { Property($0, .float, help: "") }, actions: [])),
    Contract.Schema(
      device: "torq", kind: "longboard", Schema(properties: ["speed", "battery"].map { Property($0, .float, help: "") }, actions: [])),
  ]

  private func expanded(_ arguments: String...) throws -> [String] {
    try References(arguments, in: Self.schemas).expanded(in: Self.schemas)
  }

  @Test func `names, devices and patterns select properties, each once`() throws {
    #expect(try expanded("rpm", "ev.rpm", "torq.speed") == ["ev.rpm", "torq.speed"])
    #expect(try expanded("torq") == ["torq.speed", "torq.battery"])
    #expect(try expanded("ev.cell*") == ["ev.cells-1-32", "ev.cells-33-64"])
    #expect(try expanded("speed*") == ["ev.speed", "torq.speed"])
    #expect(try expanded("*.speed", "t*") == ["ev.speed", "torq.speed", "torq.battery"])
    #expect(try expanded("[!e]*.b?tter[x-z]") == ["torq.battery"])
  }

  @Test func `devices and patterns select properties that are declared later`() throws {
    let references = try References(["torq", "ev.cell*"], in: Self.schemas)
    #expect(
      !references.areExact && references.selects("torq", "new") && references.selects("ev", "cells-65-96")
        && !references.selects("ev", "rpm"))
    #expect(try References(["rpm"], in: Self.schemas).areExact)
  }

  @Test(arguments: [
    ("rmp", "no device has a property \"rmp\"; did you mean rpm?", 4),
    ("ev.sped", "ev has no property \"sped\"; did you mean ev.speed?", 4),
    ("trq.speed", "no device \"trq\"; did you mean torq?", 4), ("toqr", "no device has a property \"toqr\"; did you mean torq?", 4),
    ("xyzzy", "no device has a property \"xyzzy\"; run \"vehiclectl describe\" for a list", 4),
    ("ev.x*", "no property matches \"ev.x*\"; list properties: vehiclectl describe", 4),
    ("speed", "\"speed\" is ambiguous: ev.speed, torq.speed; add the device name", 2),
    (".speed", "invalid reference \".speed\"; use PROPERTY or DEVICE.PROPERTY", 2),
  ])
  func `an unknown name is an error that suggests the nearest one`(_ argument: String, _ message: String, _ status: Int32) {
    let failure = #expect(throws: Failure.self) { try References([argument], in: Self.schemas) }
    let shown = failure?.suggesting(from: Self.schemas, words: ["get", argument]).message
    #expect(shown == message && failure?.exitCode == status)
  }

  @Test func `patterns match as in a shell`() {
    for (pattern, text, matches) in [
      ("*", "", true), ("a*c", "abbc", true), ("a*c", "abcd", false), ("*-*-x", "a-b-c-x", true), ("a?c", "abc", true),
      ("a?c", "ac", false),
      ("[a-c]1", "b1", true), ("[!a-c]1", "b1", false), ("[", "[", true), ("[]]", "]", true), ("a[", "a", false), ("**", "x", true),
    ] {
      #expect(Glob(pattern[...]).matches(text) == matches, "\(pattern) \(text)")
    }
  }
}
