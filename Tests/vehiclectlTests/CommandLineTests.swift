// The command line: references, values, arguments, and the errors and exit codes of mistakes.

import ArgumentParser
import Foundation
import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct CommandLineTests {
  let schemas = [
    Contract.Schema(
      device: "ev", kind: "obd",
      Schema(
        properties: [
          Property("rpm", .int, help: ""), Property("led", .int, unit: "%", range: 0...100, access: .write, help: ""),
          Property("trim", .float, access: .write, help: ""),
        ], actions: [Action("query", help: ""), Action("reset", help: "")])),
    Contract.Schema(
      device: "van", kind: "obd", Schema(properties: [Property("rpm", .int, help: "")], actions: [Action("query", help: "")])),
  ]
  let query = Contract.Action(
    Action(
      "query",
      arguments: [
        Protocols.Argument("request", .string, help: ""), Protocols.Argument("pin", .int, optional: true, secret: true, help: ""),
        Protocols.Argument("count", .int, optional: true, help: ""),
      ], help: ""))

  func failure(_ body: () throws -> Void) -> Failure? {
    do { try body() } catch { return error as? Failure }
    return nil
  }

  @Test func `references name a device and a property`() throws {
    #expect(try Reference("rpm") == Reference(device: nil, name: "rpm"))
    #expect(try Reference("ev.rpm") == Reference(device: "ev", name: "rpm"))
    #expect(try Reference("ev.a.b") == Reference(device: "ev", name: "a.b"))
    for wrong in ["", ".", "ev.", ".rpm"] { #expect(failure { _ = try Reference(wrong) }?.exitCode == 2) }
  }

  @Test func `references are resolved, ambiguous ones are errors`() throws {
    #expect(try Reference("led").property(in: schemas).device == "ev")
    #expect(try Reference("van.rpm").property(in: [schemas[1]]).device == "van")
    #expect(
      failure { _ = try Reference("rpm").property(in: schemas) }
        == .rejected(.ambiguous(reference: "rpm", candidates: ["ev.rpm", "van.rpm"])))
    #expect(failure { _ = try Reference("x").property(in: schemas) } == .rejected(.noSuchProperty(device: nil, property: "x")))
    #expect(failure { _ = try Reference("ev.x").property(in: [schemas[0]]) } == .rejected(.noSuchProperty(device: "ev", property: "x")))
    #expect(try Reference("reset").action(in: schemas).device == "ev")
    #expect(failure { _ = try Reference("query").action(in: schemas) }?.exitCode == 2)
    #expect(failure { _ = try Reference("x").action(in: schemas) }?.exitCode == 4)
    #expect(failure { _ = try Reference("ev.x").action(in: [schemas[0]]) } == .rejected(.noSuchAction(device: "ev", action: "x")))
  }

  @Test func `values are parsed by their declaration`() throws {
    let led = schemas[0].properties[1]
    #expect(try SetCommand.value("70", for: led, of: "ev") == .int(70))
    #expect(failure { _ = try SetCommand.value("170", for: led, of: "ev") }?.message == "led: 170 is outside 0 to 100 %")
    #expect(failure { _ = try SetCommand.value("much", for: led, of: "ev") }?.exitCode == 2)
    #expect(
      failure { _ = try SetCommand.value("1", for: schemas[0].properties[0], of: "ev") }
        == .rejected(.readOnly(device: "ev", property: "rpm")))
    #expect(try SetCommand.value("-0.5", for: schemas[0].properties[2], of: "ev") == .float(-0.5))
  }

  @Test func `arguments are positional and secrets are prompted for`() throws {
    #expect(try DoCommand.values(["01", "3"], for: query) { _ in "" } == ["request": .string("01"), "count": .int(3)])
    #expect(try DoCommand.values(["01"], for: query) { _ in "7" } == ["request": .string("01"), "pin": .int(7)])
    #expect(
      failure { _ = try DoCommand.values([], for: query) { _ in nil } }
        == .usage("missing argument request; usage: query REQUEST [COUNT] (prompts for pin)"))
    #expect(
      failure { _ = try DoCommand.values(["a", "b", "c"], for: query) { _ in nil } }?.message.hasPrefix(
        "invalid argument count: \"b\" is not a whole number") == true)
    #expect(
      failure { _ = try DoCommand.values(["a", "1", "c"], for: query) { _ in nil } }?.message.hasPrefix(
        "too many arguments: pin is prompted for or read from stdin") == true)
    let leaked = failure { _ = try DoCommand.values(["a"], for: query) { _ in "geheim" } }?.message
    #expect(leaked?.contains("pin") == true && leaked?.contains("geheim") == false)
  }

  @Test func `only actions with an argument hold can be held`() throws {
    let buzz = Contract.Action(
      Action(
        "buzz",
        arguments: [
          Protocols.Argument("duration", .string, optional: true, help: ""), Protocols.Argument("hold", .bool, optional: true, help: ""),
        ], streams: true, help: ""))
    #expect(try DoCommand.values([], for: buzz, hold: true) { _ in nil } == ["hold": .bool(true)])
    #expect(try DoCommand.values(["2s"], for: buzz) { _ in nil } == ["duration": .string("2s")])
    #expect(try DoCommand.values(["2s"], for: buzz, hold: true) { _ in nil } == ["duration": .string("2s"), "hold": .bool(true)])
    #expect(
      failure { _ = try DoCommand.values(["01"], for: query, hold: true) { _ in nil } }
        == .usage("cannot hold query: it has no argument hold; usage: query REQUEST [COUNT] (prompts for pin)"))
    #expect((try VehicleCtl.command(of: ["do", "--hold", "buzz"]) as? DoCommand)?.hold == true)
    #expect((try VehicleCtl.command(of: ["do", "board.buzz", "--hold", "--json"]) as? DoCommand)?.hold == true)
  }

  @Test func `options may precede the command`() {
    #expect(
      Arguments.commandFirst(["--socket", "get", "--json", "get", "x"], commands: ["get"]) == ["get", "--socket", "get", "--json", "x"])
    #expect(Arguments.commandFirst(["--help", "get"], commands: ["get"]) == ["get", "--help"])
    for same in [[], ["get", "-q"], ["--json"], ["--socket"], ["--json", "ev"], ["--", "get"], ["---completion", "get"]] {
      #expect(Arguments.commandFirst(same, commands: ["get"]) == same)
    }
  }

  @Test func `negative numbers are values, unknown options are errors`() throws {
    func values(_ arguments: String...) throws -> [String] {
      let command = try #require(try VehicleCtl.command(of: ["set"] + arguments) as? SetCommand)
      return try Arguments.positional(command.values, of: arguments)
    }
    #expect(try values("trim", "-5") == ["-5"])
    #expect(try values("--json", "trim", "-0.5", "-q") == ["-0.5"])
    #expect(try values("trim", "--", "--raw") == ["--raw"])
    #expect(failure { _ = try values("trim", "5", "--jsn") }?.exitCode == 2)
  }

  @Test func `negative numbers are values of options`() {
    #expect(Arguments.joiningNegativeValues(["watch", "--interval", "-1"]) == ["watch", "--interval=-1"])
    #expect(Arguments.joiningNegativeValues(["log", "--since", "-5min"]) == ["log", "--since=-5min"])
    for same in [["set", "x", "-5"], ["set", "--json", "-5"], ["set", "x", "--", "--count", "-5"], ["watch", "--count", "-q"]] {
      #expect(Arguments.joiningNegativeValues(same) == same)
    }
    let error = #expect(throws: (any Error).self) { _ = try VehicleCtl.command(of: ["watch", "--interval", "-1"]) }
    #expect(error.map { VehicleCtl.message(for: $0) }?.contains("\"-1\" is not an interval") == true)
  }

  @Test func `the options with a value are known`() throws {
    var found: Swift.Set<String> = []
    for (_, type) in try ManualTests.commands() {
      for line in VehicleCtl.helpMessage(for: type, columns: 200).split(separator: "\n") where line.hasPrefix("  -") {
        let label = line.split(separator: " ").prefix { $0.hasPrefix("-") || $0.hasPrefix("<") }
        guard label.contains(where: { $0.hasPrefix("<") }) else { continue }
        for word in label where word.hasPrefix("-") { found.insert(String(word.replacing(",", with: ""))) }
      }
    }
    #expect(found == Arguments.optionsWithValue)
  }

  @Test(
    arguments: [
      (["stauts"], "unknown command or device: stauts; did you mean status?", 2),
      (["hlep"], "unknown command or device: hlep; did you mean help?", 2),
      (["ls"], "unknown command or device: ls; list commands: vehiclectl --help; list devices: vehiclectl", 2),
      (["--json", "evv"], "unknown command or device: evv; did you mean ev?", 2),
      (["status", "stauts"], "no device \"stauts\"; run", 4), (["status", "status"], "no device \"status\"; run", 4),
      (["status", "evv"], "no device \"evv\"; did you mean ev?", 4),
      (["dtc", "claer"], "unknown command \"dtc claer\"; did you mean dtc clear?", 2),
      (["camera", "snapsot", "-"], "unknown command \"camera snapsot\"; did you mean camera snapshot?", 2),
      (["toy", "--json", "histroy"], "unknown command \"toy histroy\"; did you mean toy history?", 2),
      (["gett", "ev.rpm"], "unknown command \"gett\"; did you mean get?", 2),
      (["frobnicate", "ev"], "unknown command \"frobnicate\"; list commands: vehiclectl --help", 2),
      (["help", "stauts"], "unknown command \"stauts\"; did you mean status?", 2),
      (["help", "toy", "logn"], "unknown command \"toy logn\"; did you mean toy login?", 2),
      (["set", "ev.lde", "5"], "ev has no property \"lde\"; did you mean ev.led?", 4),
      (["set", "vann.led", "5"], "no device \"vann\"; did you mean van?", 4),
      (["do", "ev.qery"], "ev has no action \"qery\"; did you mean ev.query?", 4),
      (["do", "rest"], "no such action \"rest\": no device has it; did you mean reset?", 4),
      (["get", "--lng", "x"], "vehiclectl: unknown option '--lng'; did you mean '--long'?\n", 2),
      (["call", "Get", "--more=yes"], "vehiclectl: the option '--more' does not take any value, but 'yes' was specified; see", 2),
      (["status", "--bogus"], "vehiclectl: unknown option '--bogus'; see \"vehiclectl status --help\"", 2),
      (["toy", "login"], "vehiclectl: missing expected argument '<email>'; see \"vehiclectl toy login --help\"", 2),
      (["--bogus"], "vehiclectl: unknown option '--bogus'; see \"vehiclectl --help\"", 2),
    ] as [([String], String, Int32)])
  func `a wrong word is an error that names the nearest one`(_ arguments: [String], _ message: String, _ status: Int32) throws {
    let schemas = schemas
    let server = try SocketServer { method, parameters in
      let device = parameters["device"]?.string
      if let device, !schemas.contains(where: { $0.device == device }) { return .send(VarlinkReply.message(.noSuchDevice(device: device))) }
      switch method {
      case Contract.Describe.name:
        return .send(VarlinkReply.message(Contract.Describe.Result(schemas: schemas.filter { device == nil || $0.device == device })))
      default: return .send(VarlinkReply.message(Contract.Status.Result(devices: [])))
      }
    }
    defer { server.stop() }
    let outcome = try Program.run(["--socket", server.path] + arguments)
    #expect(outcome.status == status && outcome.stderr.lowercased().contains(message), "\(outcome)")
  }

  @Test func `every command takes the common options`() throws {
    let operands = [
      "get": ["x"], "set": ["x", "1"], "do": ["x"], "connect": ["x"], "disconnect": ["x"], "drive": ["x"], "record": ["x", "-"],
      "camera": ["snapshot", "-"], "toy": ["history"], "import": ["x"], "bugreport": ["x"], "plot": ["x"],
      "call": ["x"],
      "completions": ["bash"],
    ]
    for verb in VehicleCtl.configuration.subcommands {
      let name = try #require(verb.configuration.commandName)
      let command = try VehicleCtl.command(
        of: ["--json", "-v", name, "-q", "--timeout", "2.5", "--color", "never", "--units", "imperial", "--socket", "/s"]
          + (operands[name] ?? []))
      let common = try #require((command as? any Subcommand)?.common)
      #expect(
        common.json && common.verbose && common.quiet && common.timeout == 2.5 && common.color == .never && common.units == .imperial
          && common.socket == "/s", "\(name)"
      )
    }
  }

  @Test(arguments: [
    ["get"], ["set", "x"], ["status", "a", "b"], ["watch", "--count", "0"], ["--timeout", "x", "status"], ["--color", "red"],
    ["get", "--x", "y"], ["watch", "--interval", "3600001"], ["watch", "--interval=-1"], ["watch", "--interval", "soon"],
    ["camera", "snapshot"], ["camera", "snapshot", "a", "b", "c"], ["camera", "record", "a", "--seconds", "0"], ["camera", "wash"],
    ["drive", "car", "--deadline", "99"],
  ])
  func `usage errors differ from help`(_ arguments: [String]) {
    do {
      _ = try VehicleCtl.command(of: arguments)
      Issue.record("\(arguments) was accepted")
    } catch {
      #expect(!VehicleCtl.exitCode(for: error).isSuccess)
      #expect(!VehicleCtl.message(for: error).contains("\n"))
    }
  }

  @Test func `an invalid interval is an error with its option and limits`() throws {
    for interval in [0, 3_600_000] {
      let command = try VehicleCtl.command(of: ["watch", "--interval", String(interval)])
      #expect((command as? WatchCommand)?.interval == interval)
    }
    let error = #expect(throws: (any Error).self) { _ = try VehicleCtl.command(of: ["watch", "--interval", "3600001"]) }
    let message = error.map { VehicleCtl.message(for: $0) } ?? ""
    #expect(message.contains("--interval") && message.hasSuffix("use milliseconds, 0 to 3600000"), "\(message)")
  }

  @Test(arguments: [
    ["help"], ["--json", "help"], ["help", "--json"], ["--socket", "help", "-v", "help", "--timeout", "1"], ["help", "--help"],
  ])
  func `help is printed whatever the other options are`(_ arguments: [String]) {
    let message = help(arguments)
    #expect(message.hasPrefix("OVERVIEW: Show and control"), "\(arguments)")
    let ofGet = help(arguments + ["get"])
    #expect(ofGet.hasPrefix("OVERVIEW: Print values"), "\(arguments)")
  }

  /// What is printed with exit code 0 instead of running a command.
  private func help(_ arguments: [String]) -> String {
    do {
      var command = try VehicleCtl.command(of: arguments)
      guard !(command is any Subcommand) else { return "" }
      try command.run()
    } catch {
      return VehicleCtl.exitCode(for: error).isSuccess ? VehicleCtl.fullMessage(for: error) : ""
    }
    return ""
  }

  @Test func `the default command is status`() throws {
    #expect((try VehicleCtl.command(of: ["ev"]) as? StatusCommand)?.device == "ev")
    #expect(try VehicleCtl.command(of: ["--json"]) is StatusCommand)
  }

  @Test func `camera has subcommands`() throws {
    #expect(try VehicleCtl.command(of: ["camera"]) is CameraCommand)
    #expect((try VehicleCtl.command(of: ["--json", "camera"]) as? CameraCommand)?.common.json == true)
    for arguments in [
      ["--json", "camera", "snapshot", "a.jpg"], ["camera", "--json", "snapshot", "a.jpg"], ["camera", "snapshot", "a.jpg", "--json"],
    ] {
      let command = try #require(try VehicleCtl.command(of: arguments) as? CameraSnapshotCommand)
      #expect(command.common.json && command.target.first == "a.jpg" && command.target.second == nil && !command.target.force)
    }
    let video = try #require(try VehicleCtl.command(of: ["camera", "record", "rover", "-", "--seconds", "5"]) as? CameraRecordCommand)
    #expect(video.target.first == "rover" && video.target.second == "-" && video.seconds == 5)
    #expect((try VehicleCtl.command(of: ["-q", "web-page", "car"]) as? WebPageCommand)?.device == "car")
    #expect((try VehicleCtl.command(of: ["drive", "car", "--input", "gamepad"]) as? DriveCommand)?.input == "gamepad")
    #expect(help(["help", "camera", "snapshot"]).contains("USAGE: vehiclectl camera snapshot [<options>] [<device>] <file>"))
  }

  @Test func `a word that resembles a command is reported as such without a daemon, a device is not`() throws {
    let outcome = try Program.run(["--socket", "/nonexistent", "hlep"])
    #expect(outcome.status == 2 && outcome.stderr.contains("unknown command or device: hlep; did you mean help?"), "\(outcome)")
    for device in ["ev", "car2", "status"] { #expect(try Program.run(["--socket", "/nonexistent", device]).status == 3) }
  }

  @Test func `log takes -n, negative times and the levels of syslog`() throws {
    let log = try #require(try VehicleCtl.command(of: ["log", "ev", "-n", "20", "--since", "-5min", "--level", "warn"]) as? LogCommand)
    #expect(log.lines == 20 && log.device == "ev" && log.level == "warning" && log.since != nil)
    #expect((try VehicleCtl.command(of: ["log-level", "err"]) as? LogLevelCommand)?.level == "error")
  }

  @Test func `method names may be short`() {
    #expect(CallCommand.full("Status") == "io.vehicled.Status")
    #expect(CallCommand.full("org.varlink.service.GetInfo") == "org.varlink.service.GetInfo")
  }

  @Test func `every failure has one line, an exit code and a name`() {
    let failures: [(Failure, Int32, String)] = [
      (.rejected(.permissionDenied()), 7, "org.varlink.service.PermissionDenied"), (.unknown(name: "a.B", parameters: [:]), 1, "a.B"),
      (.notRunning(socket: "/s"), 3, "NotRunning"), (.daemonGone("x"), 3, "DaemonGone"), (.closedWithoutReply, 1, "ConnectionClosed"),
      (.noAccess(socket: "/s"), 7, "NoAccess"), (.noAccessToInput(path: "/d"), 7, "NoAccess"),
      (.timeout(seconds: 2.5), 6, "NoAnswer"), (.notVehicled("x"), 1, "NotVehicled"), (.usage("x"), 2, "Usage"),
      (.noSuchAction("x"), 4, "NoSuchAction"), (.noSuchDevice("x"), 4, "NoSuchDevice"),
      (.noValue("x", notConnected: true), 5, "NoValue"), (.noValue("x", notConnected: false), 1, "NoValue"), (.other("x"), 1, "Failed"),
    ]
    for (failure, code, name) in failures {
      #expect(failure.exitCode == code && failure.json["error"] == .string(name))
      #expect(!failure.message.isEmpty && !failure.message.contains("\n"))
    }
    #expect(Failure.rejected(.noSuchDevice(device: "x")).json.text == #"{"error":"io.vehicled.NoSuchDevice","parameters":{"device":"x"}}"#)
  }

  /// A user who joins another group would get the same error again.
  @Test func `the error for a socket without access names the group of the socket`() throws {
    #expect(Failure.noAccess(socket: "/s").message.hasPrefix("cannot open /s: permission denied; "))
    #expect(SocketAccess(to: "/s", of: .daemon).group == "vehicled")
    let file = NSTemporaryDirectory() + "vehiclectl-socket-\(UUID().uuidString)"
    try "".write(toFile: file, atomically: false, encoding: .utf8)
    defer { try? FileManager.default.removeItem(atPath: file) }
    if geteuid() == 0 { try #require(chown(file, 0, 1) == 0) }  // root's own group is never named
    let group = String(cString: try #require(getgrgid(geteuid() == 0 ? 1 : getegid())).pointee.gr_name)
    for (mode, expected) in [(0o660, group), (0o666, "vehicled"), (0o600, nil)] {
      try #require(chmod(file, mode_t(mode)) == 0)
      #expect(SocketAccess(to: file, of: .daemon).group == expected)
    }
    try #require(geteuid() != 0 || chown(file, 0, 0) == 0 && chmod(file, 0o660) == 0)
    #expect(geteuid() != 0 || SocketAccess(to: file, of: .daemon).group == nil)
  }
}
