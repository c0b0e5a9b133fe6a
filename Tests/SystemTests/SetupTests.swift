// vehiclectl setup with a daemon: the file that it writes, the steps that it shows, and what it does not touch.

import Foundation
import Testing

extension EndToEnd {
  @Suite("Setup") struct SetupTests {
    /// A rig whose daemon has no devices, and whose configuration has text that must stay.
    private func rig(environment: [String: String] = [:]) throws -> Rig {
      let rig = try Rig()
      try rig.write(Self.old)
      _ = try rig.daemon(environment: environment)
      return rig
    }

    private static let old = "# kept without a line end"

    private func text(_ rig: Rig) throws -> String { try String(contentsOfFile: rig.configuration, encoding: .utf8) }

    private func setup(_ rig: Rig, _ arguments: String..., input: String? = nil) -> Outcome {
      let all = ["--socket", rig.socket, "setup", "--config", rig.configuration] + arguments
      return rig.run("\(Rig.programs)/vehiclectl", all, input: input)
    }

    @Test func `a link is added and followed to the first values, once`() throws {
      let rig = try rig()
      let (_, link) = try rig.simulator()
      let first = setup(rig, "--yes", "--name", "ev", link)
      #expect(first.status == 0, "\(first)")
      let steps = first.output
      for step in ["connected", "ELM327 v1.5", "e-gmp", " Hz", "speed"] { #expect(steps.contains(step), "\(step): \(steps)") }
      let added = Self.old + "\n\n[device.ev]\nkind = \"obd\"\nlink = \"\(link)\"\n"
      #expect(try text(rig) == added)
      let again = setup(rig, "--yes", link)
      #expect(again.status == 2 && again.errors.contains("already configured as device ev"))
      #expect(try text(rig) == added)
      let left = try FileManager.default.contentsOfDirectory(atPath: rig.directory)
      #expect(!left.contains { $0.hasPrefix(".vehicled") }, "\(left)")
    }

    @Test func `answers can be piped in, and the last line on failure has reason and remedy`() throws {
      let rig = try rig()
      let none = setup(rig, "--timeout", "2", "tcp:127.0.0.1:9", input: "obd\nvan\ny\n")
      #expect(none.status == 5 && none.output.contains("connection refused"), "\(none)")
      let last = none.errors.split(separator: "\n").last ?? ""
      #expect(last.contains("van is not connected") && last.contains("next attempt in") && last.contains("power on the device"), "\(last)")
      #expect(try text(rig).hasSuffix("[device.van]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:9\"\n"))
      #expect(setup(rig, "tcp:127.0.0.1:8", input: "obd\nnew\nn\n").status == 0)
      #expect(setup(rig, "tcp:127.0.0.1:8").status == 2, "no answers and no --yes")
      #expect(setup(rig, "tcp:127.0.0.1:8", input: "obd\n").errors.contains("standard input has ended"))
      #expect(try !text(rig).contains(":8"))
    }

    @Test func `an invalid section is not written`() throws {
      let rig = try rig()
      let missing = setup(rig, "--append", input: "[device.x]\nkind = \"obd\"\n")
      #expect(missing.status == 1 && missing.errors.contains("nothing written") && missing.errors.contains("link is missing"), "\(missing)")
      #expect(setup(rig, "--append", input: "log-level = \"info\"\n").status == 2)
      // The drop-ins belong to the checked configuration.
      try FileManager.default.createDirectory(atPath: rig.configuration + ".d", withIntermediateDirectories: false)
      try rig.write("[device.x]\nrate = \"often\"\n", to: rig.configuration + ".d/x.toml")
      let link = setup(rig, "--append", input: "[device.x]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:9\"\n")
      #expect(link.status == 1 && link.errors.contains("x.toml:2"), "\(link)")
      #expect(try text(rig) == Self.old)
    }

    @Test func `the file of another daemon gets its old text again`() throws {
      let rig = try rig()
      let other = "\(rig.directory)/other.toml"
      try rig.write("# other\n", to: other)
      let wrong = rig.vehiclectl("setup", "--yes", "--config", other, "tcp:127.0.0.1:9")
      #expect(wrong.status == 1 && wrong.errors.contains("does not read \(other)"), "\(wrong)")
      #expect(try String(contentsOfFile: other, encoding: .utf8) == "# other\n")
      let unnamed = rig.vehiclectl("setup", "--yes", "tcp:127.0.0.1:9")
      #expect(unnamed.status == 2 && unnamed.errors.contains("--config PATH"))
    }

    @Test func `a peripheral in range is found, set up and marked`() throws {
      let rig = try Rig()
      let (_, environment) = try rig.bus()
      let peripheral = try rig.peripheral(["--also", "HMSoft", "--also", "TV"])
      try rig.write(Self.old)
      _ = try rig.daemon(environment: environment)
      let toml = rig.vehiclectl("scan", "ble", "--toml", "--seconds", "2")
      #expect(toml.output.contains("[device.car]\nkind = \"obd\"\nlink = \"ble:Veepeak\"\n"), "\(toml)")
      #expect(toml.output.contains("[device.board]\nkind = \"longboard\"\nlink = \"ble:HMSoft\"\nprotocol = \"elcomm\"\n"))
      let several = setup(rig, "--yes", "--seconds", "2")
      #expect(several.status == 2 && several.errors.contains("several devices found: ble:Veepeak, ble:HMSoft"), "\(several)")
      let chosen = setup(rig, "--seconds", "2", input: "\n\n\n")
      #expect(chosen.status == 0 && chosen.output.contains("connected, -60 dBm") && chosen.output.contains("ELM327"), "\(chosen)")
      #expect(try text(rig).hasSuffix("\n[device.car]\nkind = \"obd\"\nlink = \"ble:Veepeak\"\n"))
      let marked = setup(rig, "--seconds", "2", input: "q\n")
      #expect(marked.status == 0 && marked.output.contains("configured as car"), "\(marked)")
      #expect(rig.vehiclectl("scan", "ble", "--toml", "--seconds", "1").output.contains("Veepeak: configured as car"))
      let kind = setup(rig, "--yes", "--seconds", "5", "--timeout", "1", "ble:HMSoft")
      #expect(kind.output.contains("kind = \"longboard\""), "\(kind)")
      for link in ["ble:TV", "ble:Somewhere"] {
        let unknown = setup(rig, "--yes", "--seconds", "1", link)
        #expect(unknown.status == 2 && unknown.errors.contains("give its kind with --kind: obd, longboard, mirror"), "\(unknown)")
      }
      #expect(peripheral.isRunning)
    }
  }
}
