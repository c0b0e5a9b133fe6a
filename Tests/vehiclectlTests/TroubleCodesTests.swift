// The trouble code commands: selection of the device, output, and that nothing is cleared without confirmation.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct TroubleCodesTests {
  static let columns = ["ecu", "what", "value", "state", "meaning"]
  static let loss = Report(
    text: "also lost: test results\nthe vehicle is stationary", columns: columns,
    rows: [
      ["7E8", "code", "P0133", "stored, pending", "oxygen sensor slow"], ["", "code", "P1234", "stored", ""],
      ["7E8", "freeze frame", "P0133", "", "what was measured"], ["7E8", "readiness monitor", "misfire", "complete", ""],
    ])
  static let cleared = Report(
    text: "kept", columns: columns,
    rows: [["7E8", "clearing", "cleared", "", ""], ["7E8", "code", "P0420", "permanent", "catalyst efficiency too low"]])
  static let partly = Report(
    columns: columns, rows: [["7E8", "clearing", "cleared", "", ""], ["7E9", "clearing", "refused", "", "conditions not correct"]])

  /// A daemon with a car whose codes can be cleared.
  static func car(
    _ result: Report = cleared, devices: [(name: String, kind: String)] = [("car", "obd")], states: [String: String] = [:]
  ) -> ToyDaemon {
    ToyDaemon(devices: devices, states: states, actions: [Action("dtc", help: ""), Action("dtc-clear", help: "")]) { called, _ in
      switch (called.action, called.arguments["confirm"]?["bool"]) {
      case ("dtc", _):
        ToyDaemon.done(
          Report(columns: ["ecu", "code", "state", "meaning"], rows: [["7E8", "P0133", "stored, pending", "oxygen sensor slow"]]))
      case ("dtc-clear", .bool(true)?): ToyDaemon.done(result)
      default: ToyDaemon.done(loss)
      }
    }
  }

  /// Whether a call was confirmed.
  static func isConfirmed(_ daemon: ToyDaemon) -> Bool { daemon.called.contains { $0.arguments["confirm"] != nil } }

  @Test func `dtc and dtc clear are commands, with or without a device`() throws {
    #expect((try VehicleCtl.command(of: ["dtc"]) as? DtcCommand)?.device == nil)
    #expect((try VehicleCtl.command(of: ["dtc", "car"]) as? DtcCommand)?.device == "car")
    let clear = try VehicleCtl.command(of: ["--json", "dtc", "clear", "car", "--yes"]) as? DtcClearCommand
    #expect(clear?.device == "car" && clear?.yes == true && clear?.common.json == true)
    #expect((try VehicleCtl.command(of: ["dtc", "--timeout", "3", "clear"]) as? DtcClearCommand)?.yes == false)
    for wrong in [["car", "van"], ["clear", "car", "van"], ["--yes"]] {
      #expect(throws: (any Error).self) { _ = try VehicleCtl.command(of: ["dtc"] + wrong) }
    }
  }

  @Test func `codes are a table, and typed in JSON`() throws {
    let daemon = Self.car()
    let server = try daemon.serve()
    defer { server.stop() }
    let plain = try Program.run(["dtc", "--socket", server.path])
    #expect(plain.status == 0 && plain.stdout == "ecu  code   state            meaning\n7E8  P0133  stored, pending  oxygen sensor slow\n")
    let json = try Program.run(["dtc", "car", "--json", "--socket", server.path])
    #expect(
      json.stdout
        == #"{"device":"car","codes":[{"ecu":"7E8","code":"P0133","states":["stored","pending"],"meaning":"oxygen sensor slow"}]}"# + "\n")
    let none = try ToyDaemon(devices: [("car", "obd")], actions: [Action("dtc", help: "")]) { _, _ in
      ToyDaemon.done(Report(text: "no trouble codes"))
    }.serve()
    defer { none.stop() }
    #expect(try Program.run(["dtc", "--socket", none.path]).stdout == "no trouble codes\n")
    #expect(
      try Program.run(["dtc", "--json", "--socket", none.path]).stdout == #"{"device":"car","codes":[],"note":"no trouble codes"}"# + "\n")
  }

  @Test func `clearing requires the device if several have codes`() throws {
    let daemon = Self.car(devices: [("car", "obd"), ("van", "obd")])
    let server = try daemon.serve()
    defer { server.stop() }
    let either = try Program.run(["dtc", "clear", "--yes", "--socket", server.path])
    #expect(
      either.status == 2 && either.stderr == "vehiclectl: more than one device supports \"dtc clear\": car, van; add the device name\n"
        && daemon.called.isEmpty)
    #expect(try Program.run(["dtc", "clear", "--yes", "van", "--socket", server.path]).status == 0)
    #expect(daemon.called.allSatisfy { $0.device == "van" } && daemon.called.count == 2)
    #expect(try Program.run(["dtc", "bike", "--socket", server.path]).status == 4)
    let toys = try ToyDaemon().serve()
    defer { toys.stop() }
    for words in [["dtc"], ["dtc", "clear", "--yes"]] {
      let none = try Program.run(words + ["--socket", toys.path])
      let command = words.prefix(2).joined(separator: " ")
      #expect(none.status == 4 && none.stderr == "vehiclectl: no device supports \"\(command)\"; add a car: vehiclectl setup\n", "\(none)")
      let named = try Program.run(words + ["toy", "--socket", toys.path])
      #expect(
        named.status == 4
          && named.stderr == "vehiclectl: toy does not support \"\(command)\": its kind is toy; list devices: vehiclectl status\n",
        "\(named)")
    }
  }

  @Test func `without a device the codes of each car are listed, except of one that sleeps`() throws {
    let daemon = Self.car(devices: [("car", "obd"), ("van", "obd"), ("old", "obd")], states: ["old": "car-asleep"])
    let server = try daemon.serve()
    defer { server.stop() }
    let all = try Program.run(["dtc", "--socket", server.path])
    let table = "ecu  code   state            meaning\n7E8  P0133  stored, pending  oxygen sensor slow\n"
    #expect(all.status == 0 && all.stdout == "car\n\(table)\nvan\n\(table)\nold\n" && daemon.called.allSatisfy { $0.device != "old" })
    #expect(
      all.stderr == "not queried: not in use (car-asleep), and a query may wake it; to query it: vehiclectl dtc old\n", "\(all.stderr)")
    let json = try Program.run(["dtc", "--json", "--socket", server.path])
    #expect(json.stdout.split(separator: "\n").count == 3 && json.stdout.contains(#"{"device":"old","note":"not queried"#), "\(json)")
    let named = try Program.run(["dtc", "old", "--socket", server.path])
    #expect(named.stdout == table && named.stderr == "old is not in use (car-asleep): the query may wake it\n")
    let clearing = try Program.run(["dtc", "clear", "old", "--yes", "--socket", server.path])
    #expect(clearing.stderr.hasPrefix("old is not in use (car-asleep): the query may wake it\n"))
    let ecu = try Program.run(["dtc", "--ecu", "7B0", "--socket", server.path])
    #expect(ecu.status == 2 && ecu.stderr.contains("--ecu applies to one device"))
  }

  @Test func `the failure of one car does not hide the codes of another`() throws {
    let daemon = ToyDaemon(devices: [("far", "obd"), ("car", "obd")], actions: [Action("dtc", help: "")]) { called, _ in
      called.device == "far"
        ? .send(VarlinkReply.message(.notConnected(device: "far", reason: "unplugged"))) : ToyDaemon.done(Report(text: "no trouble codes"))
    }
    let server = try daemon.serve()
    defer { server.stop() }
    let outcome = try Program.run(["dtc", "--socket", server.path])
    #expect(outcome.status == 5 && outcome.stdout == "far\n\ncar\nno trouble codes\n" && outcome.stderr.contains("unplugged"))
  }

  @Test func `advice that was already followed is left out`() throws {
    let server = try ToyDaemon(devices: [("ev", "obd")], actions: [Action("dtc", help: ""), Action("ecu-codes", help: "")]) { called, _ in
      called.action == "dtc"
        ? ToyDaemon.refused("no-answer", "no codes of SAE J1979; read its codes over UDS: vehiclectl dtc")
        : ToyDaemon.done(Report(columns: ["ecu", "code", "state", "meaning"], rows: [["7D9", "C1000-64", "stored", ""]]))
    }.serve()
    defer { server.stop() }
    let outcome = try Program.run(["dtc", "--socket", server.path])
    #expect(outcome.status == 0 && outcome.stdout.contains("C1000-64") && outcome.stderr == "no codes of SAE J1979\n", "\(outcome)")
  }

  @Test func `a clear operation that would be refused asks no question`() throws {
    let daemon = ToyDaemon(devices: [("toy", "obd")], actions: [Action("dtc", help: ""), Action("dtc-clear", help: "")]) { _, _ in
      ToyDaemon.refused("moving", "it moves")
    }
    let server = try daemon.serve()
    defer { server.stop() }
    let pty = try PTY()
    let pid = try Program.start(["dtc", "clear", "--socket", server.path], on: pty)
    var talk = Conversation(pty)
    let status = talk.end(of: pid)
    #expect(status == 1 && talk.shown.contains("it moves (moving)") && !talk.shown.contains("[y/N]") && daemon.called.count == 1)
  }

  @Test func `without a terminal --yes is required`() throws {
    let daemon = Self.car()
    let server = try daemon.serve()
    defer { server.stop() }
    for words in [["dtc", "clear"], ["dtc", "clear", "--json"], ["dtc", "clear", "-q"]] {
      let outcome = try Program.run(words + ["--socket", server.path], input: "y\n")
      #expect(outcome.status == 2 && outcome.stderr.contains("use --yes") && daemon.called.isEmpty, "\(outcome)")
      #expect(outcome.stderr.contains("--json") == words.contains("--json") && outcome.stderr.contains("nothing cleared: "), "\(outcome)")
    }
    let plain = try Program.run(["dtc", "clear", "--yes", "--socket", server.path])
    #expect(plain.status == 0 && plain.stdout.hasPrefix("ecu  what      value    state      meaning\n7E8  clearing  cleared\n"))
    #expect(
      plain.stdout.hasSuffix("kept\n") && plain.stderr.hasPrefix("will be lost:\necu  what")
        && plain.stderr.hasSuffix("the vehicle is stationary\n"))
    #expect(daemon.called.map { $0.arguments.text } == ["{}", #"{"confirm":{"bool":true}}"#])
    #expect(try Program.run(["dtc", "clear", "--yes", "-q", "--socket", server.path]).stderr.isEmpty)
    let json = try Program.run(["dtc", "clear", "--yes", "--json", "--socket", server.path])
    #expect(
      json.stdout
        == #"{"device":"car","lost":{"codes":[{"ecu":"7E8","code":"P0133","states":["stored","pending"],"meaning":"oxygen sensor slow"},"#
        + #"{"ecu":null,"code":"P1234","states":["stored"],"meaning":null}],"frames":[{"ecu":"7E8","code":"P0133"}],"#
        + #""tests":[{"ecu":"7E8","name":"misfire"}],"note":"also lost: test results\nthe vehicle is stationary"},"#
        + #""results":[{"ecu":"7E8","result":"cleared","reason":null}],"#
        + #""remaining":[{"ecu":"7E8","code":"P0420","states":["permanent"],"meaning":"catalyst efficiency too low"}],"note":"kept"}"#
        + "\n")
    #expect(json.stderr.isEmpty)
  }

  /// The result of this answer on a terminal.
  private static func answered(_ answer: String) throws -> (status: Int32, shown: String, isConfirmed: Bool) {
    let daemon = car()
    let server = try daemon.serve()
    defer { server.stop() }
    let pty = try PTY()
    let pid = try Program.start(["dtc", "clear", "--socket", server.path], on: pty)
    var talk = Conversation(pty)
    talk.when("will be lost:", type: "")
    talk.when("Clear the trouble codes of car? [y/N] ", type: answer)
    let status = talk.end(of: pid)
    return (status, talk.shown, isConfirmed(daemon))
  }

  @Test(arguments: ["y\n", "Yes\n"]) func `yes clears the codes`(_ answer: String) throws {
    let (status, shown, isConfirmed) = try Self.answered(answer)
    #expect(status == 0 && shown.contains("P0420") && isConfirmed, "\(shown)")
  }

  @Test(arguments: ["n\n", "\n", "yep\n", "\u{4}", "\u{3}"]) func `any other answer keeps the codes`(_ answer: String) throws {
    let (status, shown, isConfirmed) = try Self.answered(answer)
    #expect(status == 1 && !isConfirmed && shown.contains(answer == "\u{3}" ? "interrupted" : "nothing cleared"), "\(shown)")
  }

  @Test func `an ECU that has not cleared its codes sets the exit status`() throws {
    let daemon = Self.car(Self.partly)
    let server = try daemon.serve()
    defer { server.stop() }
    let plain = try Program.run(["dtc", "clear", "--yes", "--socket", server.path])
    #expect(
      plain.status == 1 && plain.stdout.contains("conditions not correct")
        && plain.stderr.hasSuffix("not all ECUs have cleared their trouble codes\n"))
    let json = try Program.run(["dtc", "clear", "--yes", "--json", "--socket", server.path])
    #expect(json.status == 1 && json.stdout.contains(#"{"ecu":"7E9","result":"refused","reason":"conditions not correct"}"#))
    #expect(json.stdout.split(separator: "\n").count == 1)
    let moving = try ToyDaemon(devices: [("toy", "obd")], actions: [Action("dtc", help: ""), Action("dtc-clear", help: "")]) { called, _ in
      called.arguments["confirm"] == nil ? ToyDaemon.done(Self.loss) : ToyDaemon.refused("moving", "it moves")
    }.serve()
    defer { moving.stop() }
    let refused = try Program.run(["dtc", "clear", "--yes", "-q", "--socket", moving.path])
    #expect(refused.status == 1 && refused.stderr == "vehiclectl: toy: it moves (moving)\n" && refused.stdout.isEmpty)
  }
}
