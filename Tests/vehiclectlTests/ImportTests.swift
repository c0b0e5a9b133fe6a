// import: the files that it writes, and those that it does not overwrite.

import Foundation
import Protocols
import Testing

@testable import vehiclectl

@Suite final class ImportTests {
  private let folder = NSTemporaryDirectory() + "vehiclectl-import-\(UUID().uuidString)"
  private let table = "Good,g,2101,A/2,0,1,V,7E4\nBad,b,2101,val{x},0,1,V,7E4\n"

  init() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try table.write(toFile: folder + "/t.csv", atomically: true, encoding: .utf8)
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  private func run(_ arguments: String...) throws {
    let command = try #require(try VehicleCtl.command(of: ["import", "-q", folder + "/t.csv"] + arguments) as? ImportCommand)
    try command.perform(Output(command.common))
  }

  private func failure(_ arguments: String...) -> Failure? {
    var all = ["import", "-q"] + arguments
    if !arguments.contains(where: { $0.hasSuffix(".csv") }) { all.append(folder + "/t.csv") }
    do {
      let command = try VehicleCtl.command(of: all) as? ImportCommand
      try command?.perform(Output(json: false))
    } catch { return error as? Failure }
    return nil
  }

  private func text(_ name: String) throws -> String { try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8) }

  @Test func `the file is written atomically and readable by all users`() throws {
    let mask = umask(0o077)
    defer { umask(mask) }
    try run("--output", folder + "/a.toml", "--device", "ev")
    let written = try text("a.toml")
    #expect(written.contains("[signal.good]\nrequest = \"2101\"\nheader = \"7E4\"\nvalue = \"A/2\"\nunit = \"V\"\n"))
    #expect(written.hasSuffix("devices = [\"ev\"]\n") && written.hasPrefix("# Signals imported by vehiclectl import from t.csv.\n"))
    let mode = try FileManager.default.attributesOfItem(atPath: folder + "/a.toml")[.posixPermissions] as? Int
    #expect(mode == 0o644)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == ["a.toml", "t.csv"])
  }

  @Test func `--only selects signals of a DBC file, and only of one`() throws {
    let dbc = "VERSION \"\"\nBO_ 1 A: 8 X\n SG_ One : 0|8@1+ (1,0) [0|0] \"\" X\nBO_ 2 B: 8 X\n SG_ Two : 0|8@1+ (1,0) [0|0] \"\" X\n"
    try dbc.write(toFile: folder + "/c.dbc", atomically: true, encoding: .utf8)
    let arguments = ["import", "-q", folder + "/c.dbc", "--only", "b", "--output", folder + "/c.toml"]
    try #require(try VehicleCtl.command(of: arguments) as? ImportCommand).perform(Output(json: false))
    #expect(try text("c.toml").contains("[can-signal.two]") && !text("c.toml").contains("[can-signal.one]"))
    #expect(failure("--only", "b")?.message.contains("only a DBC file has messages to select; leave out --only") == true)
  }

  @Test func `files are not overwritten without --force, links are not followed`() throws {
    try "mine".write(toFile: folder + "/a.toml", atomically: true, encoding: .utf8)
    #expect(failure("--output", folder + "/a.toml")?.exitCode == 2)
    #expect(try text("a.toml") == "mine")
    try run("--output", folder + "/a.toml", "--force")
    #expect(try text("a.toml").contains("[signal.good]"))
    try FileManager.default.createSymbolicLink(atPath: folder + "/link.toml", withDestinationPath: folder + "/t.csv")
    for force in [[], ["--force"]] {
      let command = try #require(
        try VehicleCtl.command(of: ["import", folder + "/t.csv", "--output", folder + "/link.toml"] + force) as? ImportCommand)
      let refused = #expect(throws: Failure.self) { try command.perform(Output(json: false)) }
      #expect(refused?.exitCode == 2 && refused?.message.contains("symbolic link") == true)
    }
    #expect(try text("t.csv") == table)
  }

  @Test func `a signal set is converted for a model year, an unusable one is an error`() throws {
    let set = #"{"commands": [{"hdr": "6F1", "eax": "7", "cmd": {"22": "DDBC"}, "signals": [{"id": "SOC", "fmt": {"len": 8}}]}]}"#
    try set.write(toFile: folder + "/bmw.csv", atomically: true, encoding: .utf8)
    let refused = failure(folder + "/bmw.csv", "--output", folder + "/b.toml")
    #expect(refused?.exitCode == 1)
    #expect(refused?.message.contains("SOC: request 22DDBC to 6F1") == true && refused?.message.contains("?") == false)
    #expect(failure("--year", "21")?.exitCode == 2)
    let years = set.replacing(#""eax": "7""#, with: #""filter": {"from": 2020}"#)
    try years.write(toFile: folder + "/years.csv", atomically: true, encoding: .utf8)
    #expect(failure(folder + "/years.csv", "--year", "2019")?.message.contains("from 2020 on, not 2019") == true)
    #expect(failure(folder + "/years.csv", "--year", "2021", "--output", folder + "/y.toml") == nil)
    #expect(try text("y.toml").contains("# for model years from 2020 on\n[signal.soc]\n"))
  }

  @Test func `the result counts the signals`() {
    #expect(ImportCommand.result(1, notConverted: 2, in: "a.toml") == "wrote a.toml: 1 signal, 2 not converted")
    #expect(ImportCommand.result(2, notConverted: 0, in: "a.toml") == "wrote a.toml: 2 signals, 0 not converted")
  }

  @Test func `a failed import writes no file`() throws {
    try "a,b,2101,val{x},,,,".write(toFile: folder + "/none.csv", atomically: true, encoding: .utf8)
    #expect(failure(folder + "/none.csv", "--output", folder + "/b.toml")?.exitCode == 1)
    #expect(failure(folder + "/nothing.csv", "--output", folder + "/b.toml")?.message.contains("cannot import") == true)
    #expect(failure("--output", folder + "/b.toml", "--device", "Not a name")?.exitCode == 2)
    #expect(!FileManager.default.fileExists(atPath: folder + "/b.toml"))
  }
}
