// Keys that name secret files, and keys that name properties of other devices.

import ConfigurationFiles
import Foundation
import Protocols
import ServiceRuntime
import Testing

@testable import vehicled

/// A kind with a secret and references.
private struct Keeper: Machine {
  static let kind = Kind(
    name: "keeper", summary: "keeps", links: [],
    options: [
      Option("shows", ValueRule(.list), default: .list([]), reference: .properties, help: "properties of others"),
      Option("weather", ValueRule(.string), reference: .device(with: ["steps", "distance"]), help: "another device"),
    ],
    secrets: [Secret("key-file", help: "the key")],
    warning: { "its key has \($0.secrets["key-file"]?.bytes.count ?? 0) bytes" },
    make: { setup throws(OptionError) in
      if let key = setup.secrets["key-file"], key.bytes.first != UInt8(ascii: "k") {
        throw OptionError("key-file", "it is no key: begin it with k")
      }
      return Keeper()
    })

  /// A kind without steps and distance.
  static let dull = Kind(
    name: "dull", summary: "knows nothing", links: [], options: [],
    make: { _ throws(OptionError) in
      Keeper(schema: Schema())
    })

  var schema = Schema(properties: [Property("steps", .int, help: ""), Property("distance", .float, help: "")])
  var nextWake: Instant? { nil }
  mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {}
}

@Suite struct SecretTests {
  /// The problems of a device of kind keeper with these lines; FOLDER stands for the folder of the files.
  private func problems(_ lines: String, files: [(name: String, text: String, mode: Int)] = []) throws -> [String] {
    let folder = try Folder()
    for file in files {
      let path = try folder.write(file.text, to: file.name)
      try FileManager.default.setAttributes([.posixPermissions: file.mode], ofItemAtPath: path)
    }
    let text = "[device.mirror]\nkind = \"keeper\"\n\(lines)\n[device.phone]\nkind = \"keeper\"\n"
    let path = try folder.write(text.replacingOccurrences(of: "FOLDER", with: folder.path))
    do throws(ConfigurationError) {
      _ = try Configuration.load(path, kinds: [Keeper.kind, Keeper.dull])
      return []
    } catch {
      return error.problems.map {
        $0.description.replacingOccurrences(of: path + ":", with: "").replacingOccurrences(of: folder.path, with: "FOLDER")
      }
    }
  }

  @Test func `a secret is the content of its file without the final line break, and is never printed`() throws {
    let folder = try Folder()
    let secret = try folder.write("k-very-secret\n", to: "key")
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secret)
    let path = try folder.write("[device.mirror]\nkind = \"keeper\"\nkey-file = \"\(secret)\"\n")
    let device = try #require(try Configuration.load(path, kinds: [Keeper.kind]).devices.first)
    #expect(device.secrets["key-file"]?.bytes == Array("k-very-secret".utf8))
    #expect(Keeper.kind.warning?(device.setup) == "its key has 13 bytes")
    var dumped = ""
    dump(device, to: &dumped)
    for text in ["\(device)", String(reflecting: device), dumped] { #expect(!text.contains("very") && !text.contains("118")) }
    // A changed secret makes the device unequal, so that a reload replaces it.
    try folder.write("k-other", to: "key")
    #expect(try Configuration.load(path, kinds: [Keeper.kind]).devices.first != device)
  }

  @Test(arguments: [
    ("key-file = \"/dev/null\"", "k1", 0o600, "3:12: key-file: /dev/null is not a regular file; use the file that contains the secret"),
    ("key-file = \"/tmp\"", "k1", 0o600, "3:12: key-file: /tmp is not a regular file; use the file that contains the secret"),
    ("key-file = \"FOLDER/key\"", "k1", 0o644, "3:12: key-file: FOLDER/key is accessible to other users; chmod 600 FOLDER/key"),
    ("key-file = \"FOLDER/key\"", "k1", 0o620, "3:12: key-file: FOLDER/key is accessible to other users; chmod 600 FOLDER/key"),
    ("key-file = \"FOLDER/key\"", " \n", 0o600, "3:12: key-file: FOLDER/key is empty; write the secret into it"),
    ("key-file = \"FOLDER/key\"", "no key", 0o600, "3:12: key-file: it is no key: begin it with k"),
    (
      "key-file = \"FOLDER/key\"", String(repeating: "k", count: 1100), 0o600,
      "3:12: key-file: cannot read FOLDER/key: longer than 1024 bytes"
    ),
    (
      "key-file = \"FOLDER/none\"", "", 0o600,
      "3:12: key-file: cannot read FOLDER/none: no such file or directory; write the secret into it, with mode 0600"
    ),
    (
      "key-file = \"../key\"", "", 0o600,
      "3:12: key-file: \"../key\" is neither a path nor the name of a credential; write /PATH, or a name of LoadCredential="
    ),
    ("key-file = 5", "", 0o600, "3:12: key-file: 5 is an integer; put it in quotes"),
  ])
  func `an invalid secret is reported with its line and column`(line: String, text: String, mode: Int, expected: String) throws {
    #expect(try problems(line, files: [("key", text, mode)]) == [expected])
  }

  @Test func `a credential is read from systemd's credentials directory`() throws {
    let folder = try Folder()
    try folder.write("k-credential", to: "mirror-key")
    #expect(throws: ValueError.self) { try SecretFile.read("mirror-key", credentials: nil) }
    #expect(try SecretFile.read("mirror-key", credentials: folder.path).bytes == Array("k-credential".utf8))
  }

  @Test(
    arguments: [
      ("[\"phone.steps\", \"phone.distance\"]", nil),
      ("[\"phone.step\"]", "3:9: shows: device phone has no property \"step\"; did you mean steps?"),
      ("[\"phon.steps\"]", "3:9: shows: unknown device \"phon\"; did you mean phone?"),
      ("[\"mirror.steps\"]", "3:9: shows: \"mirror\" is this device itself; use another device"),
      ("[\"phon.steps\", \"phon.distance\"]", "3:9: shows: unknown device \"phon\"; did you mean phone?"),
      ("[\"steps\"]", "3:9: shows: \"steps\" is not of the form DEVICE.PROPERTY; write it as in phone.steps"),
      ("[\"phone.\"]", "3:9: shows: \"phone.\" is not of the form DEVICE.PROPERTY; write it as in phone.steps"),
      ("[\"phone.steps.x\"]", "3:9: shows: \"phone.steps.x\" is not of the form DEVICE.PROPERTY; write it as in phone.steps"),
    ] as [(String, String?)])
  func `a reference to an unknown property is reported`(list: String, expected: String?) throws {
    #expect(try problems("shows = \(list)") == [expected].compactMap(\.self))
  }

  @Test func `a reference to an unknown device is reported`() throws {
    #expect(try problems("weather = \"phone\"").isEmpty)
    #expect(try problems("weather = \"sky\"") == ["3:11: weather: unknown device \"sky\"; use one of phone"])
    #expect(try problems("weather = \"mirror\"") == ["3:11: weather: \"mirror\" is this device itself; use another device"])
    let dull = "weather = \"dull\"\n[device.dull]\nkind = \"dull\""
    #expect(try problems(dull) == ["3:11: weather: device dull has no steps; use a device with steps, distance"])
  }

  @Test func `a kind without links has no record key`() throws {
    #expect(try problems("record = true").first?.hasPrefix("3:1: unknown key \"record\" for kind keeper") == true)
  }
}
