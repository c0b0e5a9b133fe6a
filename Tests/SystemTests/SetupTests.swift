// vehiclectl setup with a daemon: the file that it writes, the steps that it shows, and what it does not touch.

import Foundation
import Testing

extension WholeHouse {
  @Suite("Setup") struct SetupTests {
    /// A house whose daemon has no devices, and whose configuration has text that must stay.
    private func house(environment: [String: String] = [:]) throws -> House {
      let house = try House()
      try house.write(Self.old)
      _ = try house.daemon(environment: environment)
      return house
    }

    private static let old = "# kept without a line end"

    private func text(_ house: House) throws -> String { try String(contentsOfFile: house.configuration, encoding: .utf8) }

    private func setup(_ house: House, _ arguments: String..., input: String? = nil) -> Outcome {
      let all = ["--socket", house.socket, "setup", "--config", house.configuration] + arguments
      return house.run("\(House.programs)/vehiclectl", all, input: input)
    }

    @Test func `a link is added and followed to the first values, once`() throws {
      let house = try house()
      let (_, link) = try house.simulator()
      let first = setup(house, "--yes", "--name", "ev", link)
      #expect(first.status == 0, "\(first)")
      let steps = first.output
      for step in ["connected", "ELM327 v1.5", "e-gmp", " Hz", "rpm"] { #expect(steps.contains(step), "\(step): \(steps)") }
      let added = Self.old + "\n\n[device.ev]\nkind = \"obd\"\nlink = \"\(link)\"\n"
      #expect(try text(house) == added)
      let again = setup(house, "--yes", link)
      #expect(again.status == 2 && again.errors.contains("configured already as device ev"))
      #expect(try text(house) == added)
      let left = try FileManager.default.contentsOfDirectory(atPath: house.directory)
      #expect(!left.contains { $0.hasPrefix(".vehicled") }, "\(left)")
    }

    @Test func `answers can be piped in, and the last line on failure has reason and remedy`() throws {
      let house = try house()
      let none = setup(house, "--timeout", "2", "tcp:127.0.0.1:9", input: "obd\nvan\ny\n")
      #expect(none.status == 5 && none.output.contains("connection refused"), "\(none)")
      let last = none.errors.split(separator: "\n").last ?? ""
      #expect(last.contains("van is not connected") && last.contains("next attempt in") && last.contains("power on the device"), "\(last)")
      #expect(try text(house).hasSuffix("[device.van]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:9\"\n"))
      #expect(setup(house, "tcp:127.0.0.1:8", input: "obd\nnew\nn\n").status == 0)
      #expect(setup(house, "tcp:127.0.0.1:8").status == 2, "no answers and no --yes")
      #expect(setup(house, "tcp:127.0.0.1:8", input: "obd\n").errors.contains("standard input has ended"))
      #expect(try !text(house).contains(":8"))
    }

    @Test func `an invalid section is not written`() throws {
      let house = try house()
      let missing = setup(house, "--append", input: "[device.x]\nkind = \"obd\"\n")
      #expect(missing.status == 1 && missing.errors.contains("nothing written") && missing.errors.contains("link is missing"), "\(missing)")
      #expect(setup(house, "--append", input: "log-level = \"info\"\n").status == 2)
      // The drop-ins belong to the checked configuration.
      try FileManager.default.createDirectory(atPath: house.configuration + ".d", withIntermediateDirectories: false)
      try house.write("[device.x]\nrate = \"often\"\n", to: house.configuration + ".d/x.toml")
      let link = setup(house, "--append", input: "[device.x]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:9\"\n")
      #expect(link.status == 1 && link.errors.contains("x.toml:2"), "\(link)")
      #expect(try text(house) == Self.old)
    }

    @Test func `the file of another daemon gets its old text again`() throws {
      let house = try house()
      let other = "\(house.directory)/other.toml"
      try house.write("# other\n", to: other)
      let wrong = house.vehiclectl("setup", "--yes", "--config", other, "tcp:127.0.0.1:9")
      #expect(wrong.status == 1 && wrong.errors.contains("does not read \(other)"), "\(wrong)")
      #expect(try String(contentsOfFile: other, encoding: .utf8) == "# other\n")
      let unnamed = house.vehiclectl("setup", "--yes", "tcp:127.0.0.1:9")
      #expect(unnamed.status == 2 && unnamed.errors.contains("--config PATH"))
    }

    @Test func `a peripheral in range is found, set up and marked`() throws {
      let house = try House()
      let (_, environment) = try house.bus()
      let peripheral = try house.peripheral(["--also", "HMSoft", "--also", "TV"])
      try house.write(Self.old)
      _ = try house.daemon(environment: environment)
      let toml = house.vehiclectl("scan", "ble", "--toml", "--seconds", "2")
      #expect(toml.output.contains("[device.car]\nkind = \"obd\"\nlink = \"ble:Veepeak\"\n"), "\(toml)")
      #expect(toml.output.contains("[device.board]\nkind = \"longboard\"\nlink = \"ble:HMSoft\"\nprotocol = \"elcomm\"\n"))
      let several = setup(house, "--yes", "--seconds", "2")
      #expect(several.status == 2 && several.errors.contains("several devices found: ble:Veepeak, ble:HMSoft"), "\(several)")
      let chosen = setup(house, "--seconds", "2", input: "\n\n\n")
      #expect(chosen.status == 0 && chosen.output.contains("connected, -60 dBm") && chosen.output.contains("ELM327"), "\(chosen)")
      #expect(try text(house).hasSuffix("\n[device.car]\nkind = \"obd\"\nlink = \"ble:Veepeak\"\n"))
      let marked = setup(house, "--seconds", "2", input: "q\n")
      #expect(marked.status == 0 && marked.output.contains("configured as car"), "\(marked)")
      #expect(house.vehiclectl("scan", "ble", "--toml", "--seconds", "1").output.contains("Veepeak: configured as car"))
      #expect(peripheral.isRunning)
    }
  }
}
