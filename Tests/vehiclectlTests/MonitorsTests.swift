// monitors and the freeze frames of dtc: text, JSON, and missing parts.

import Protocols
import Testing

@testable import vehiclectl

@Suite struct MonitorsTests {
  static let monitors = Report(
    text: "test results (service 06) are not supported by 7E9",
    columns: ["ecu", "what", "name", "test", "result", "value", "min", "max", "unit"],
    rows: [
      ["7E8", "lamp", "malfunction indicator lamp (MIL)", "", "on", "", "", "", ""],
      ["7E8", "codes", "stored trouble codes", "", "", "2", "", "", ""],
      ["7E8", "readiness", "catalyst", "since clearing", "complete", "", "", "", ""],
      ["7E8", "readiness", "catalyst", "this driving cycle", "incomplete", "", "", "", ""],
      ["7E8", "test", "catalyst bank 1", "test 80", "failed", "1.1", "0", "1", "V"],
      ["7E9", "lamp", "malfunction indicator lamp (MIL)", "", "off", "", "", "", ""],
    ])
  static let frames = Report(
    columns: ["ecu", "frame", "code", "name", "value", "unit"],
    rows: [
      ["7E8", "0", "P0133", "speed", "80", "km/h"], ["7E8", "0", "P0133", "fuel-system-1", "closed-loop", ""],
      ["7E9", "0", "P0715", "", "", ""],
    ])

  private static func car(_ answers: [String: Answer]) -> ToyDaemon {
    ToyDaemon(devices: [("car", "obd")], actions: answers.keys.sorted().map { Action($0, help: "") }) { called, _ in
      answers[called.action] ?? .nothing
    }
  }

  private static let codes = ToyDaemon.done(
    Report(columns: ["ecu", "code", "state", "meaning"], rows: [["7E8", "P0133", "stored", "oxygen sensor slow"]]))

  @Test func `monitors are shown by ECU`() throws {
    let server = try Self.car(["monitors": ToyDaemon.done(Self.monitors)]).serve()
    defer { server.stop() }
    let plain = try Program.run(["monitors", "--socket", server.path])
    #expect(
      plain.stdout == """
        7E8: malfunction indicator lamp (MIL) on, 2 stored trouble codes
          readiness monitor  since clearing  this driving cycle
          catalyst           complete        incomplete
          monitor          test     result  value  min  max  unit
          catalyst bank 1  test 80  failed    1.1    0    1  V

        7E9: malfunction indicator lamp (MIL) off
        test results (service 06) are not supported by 7E9

        """, "\(plain.stdout)")
    let json = try Program.run(["monitors", "car", "--json", "--socket", server.path])
    #expect(
      json.stdout
        == #"{"device":"car","ecus":[{"ecu":"7E8","mil":true,"storedCodes":2,"#
        + #""readiness":[{"name":"catalyst","sinceClearing":"complete","thisDrivingCycle":"incomplete"}],"#
        + #""tests":[{"monitor":"catalyst bank 1","test":"test 80","result":"failed","value":1.1,"min":0,"max":1,"unit":"V"}]},"#
        + #"{"ecu":"7E9","mil":false,"storedCodes":null,"readiness":[],"tests":[]}],"#
        + #""note":"test results (service 06) are not supported by 7E9"}"# + "\n")
    #expect(try Program.run(["monitors", "bike", "--socket", server.path]).status == 4)
    let refused = try Self.car(["monitors": ToyDaemon.refused("no-answer", "no ECU answers")]).serve()
    defer { refused.stop() }
    let outcome = try Program.run(["monitors", "--socket", refused.path])
    #expect(outcome.status == 1 && outcome.stderr.contains("no ECU answers") && outcome.stdout.isEmpty)
  }

  @Test func `without a device the monitors of each car are shown, except of one that sleeps`() throws {
    let daemon = ToyDaemon(
      devices: [("car", "obd"), ("van", "obd"), ("old", "obd")], states: ["old": "parked"], actions: [Action("monitors", help: "")]
    ) { _, _ in ToyDaemon.done(Report(text: "none")) }
    let server = try daemon.serve()
    defer { server.stop() }
    let all = try Program.run(["monitors", "--socket", server.path])
    #expect(all.status == 0 && all.stdout == "car\nnone\n\nvan\nnone\n\nold\n" && daemon.called.map(\.device) == ["car", "van"], "\(all)")
    #expect(all.stderr.hasSuffix("to query it: vehiclectl monitors old\n"), "\(all.stderr)")
    let json = try Program.run(["monitors", "--json", "--socket", server.path])
    #expect(json.stdout.hasPrefix(#"{"device":"car","ecus":[],"note":"none"}"# + "\n" + #"{"device":"van""#), "\(json)")
    #expect(try Program.run(["monitors", "old", "--socket", server.path]).stdout == "none\n")
  }

  @Test(arguments: ["dtc", "monitors"]) func `without a car the error names the remedy`(_ command: String) throws {
    let none = try ToyDaemon(devices: []).serve()
    defer { none.stop() }
    let empty = try Program.run([command, "--socket", none.path])
    #expect(empty.status == 4 && empty.stderr == "vehiclectl: no devices are configured; add a car: vehiclectl setup\n", "\(empty)")
    let toys = try ToyDaemon().serve()
    defer { toys.stop() }
    let other = try Program.run([command, "--socket", toys.path])
    #expect(other.status == 4 && other.stderr.contains("no device supports \"\(command)\"; add a car"), "\(other)")
  }

  @Test func `several codes are counted by state and ECU`() throws {
    let report = TroubleReport(
      text: nil, columns: ["ecu", "code", "state", "meaning"],
      rows: [
        ["7E8", "P0133", "stored, pending", ""], ["7E8", "P0420", "stored", ""], ["7E9", "P0715", "stored", ""],
        ["7E9", "P0700", "permanent", ""],
      ])
    #expect(report.codeLines { text, _ in text }.last == "4 codes: 3 stored (7E8: 2, 7E9: 1), 1 pending, 1 permanent")
  }

  @Test func `dtc shows the freeze frame of each code, and codes of further ECUs`() throws {
    let others = Report(
      text: "trouble codes over UDS (service 19) are not supported by 7E8", columns: ["ecu", "code", "state", "meaning"],
      rows: [["7E8", "P0133-11", "stored", "short"], ["7D9", "U0121-87", "pending", "missing message"]])
    let daemon = Self.car(["dtc": Self.codes, "ecu-codes": ToyDaemon.done(others), "freeze-frames": ToyDaemon.done(Self.frames)])
    let server = try daemon.serve()
    defer { server.stop() }
    let plain = try Program.run(["dtc", "--ecu", "7B0", "--ecu", "760", "--socket", server.path])
    #expect(
      plain.stdout == """
        ecu  code      state    meaning
        7D9  U0121-87  pending  missing message
        7E8  P0133     stored   oxygen sensor slow
        2 codes: 1 pending, 1 stored
        trouble codes over UDS (service 19) are not supported by 7E8

        freeze frame of P0133 (7E8, frame 0)
          name                 value  unit
          speed                   80  km/h
          fuel-system-1  closed-loop

        freeze frame of P0715 (7E9, frame 0)
          no known values

        """, "\(plain.stdout)")
    #expect(daemon.called.first { $0.action == "ecu-codes" }?.arguments.text == #"{"ecus":{"string":"7B0 760"}}"#)
    let json = try Program.run(["dtc", "--json", "--socket", server.path])
    #expect(
      json.stdout
        == #"{"device":"car","codes":[{"ecu":"7D9","code":"U0121-87","states":["pending"],"meaning":"missing message"},"#
        + #"{"ecu":"7E8","code":"P0133","states":["stored"],"meaning":"oxygen sensor slow"}],"#
        + #""frames":[{"ecu":"7E8","frame":0,"code":"P0133","values":[{"name":"speed","value":80,"unit":"km/h"},"#
        + #"{"name":"fuel-system-1","value":"closed-loop","unit":null}]},{"ecu":"7E9","frame":0,"code":"P0715","values":[]}],"#
        + #""note":"trouble codes over UDS (service 19) are not supported by 7E8"}"# + "\n")
  }

  @Test func `a rejected part of dtc does not hide the others`() throws {
    let no = ToyDaemon.refused("no-can", "no CAN bus")
    let some = try Self.car(["dtc": Self.codes, "ecu-codes": no, "freeze-frames": no]).serve()
    defer { some.stop() }
    let outcome = try Program.run(["dtc", "--socket", some.path])
    #expect(outcome.status == 0 && outcome.stdout.contains("P0133") && outcome.stderr.contains("no CAN bus"))
    #expect(try Program.run(["dtc", "--ecu", "7B0", "--socket", some.path]).status == 1)
    let none = try Self.car(["dtc": no, "ecu-codes": no, "freeze-frames": no]).serve()
    defer { none.stop() }
    #expect(try Program.run(["dtc", "--socket", none.path]).status == 1)
    let old = try Self.car(["dtc": Self.codes]).serve()
    defer { old.stop() }
    #expect(try Program.run(["dtc", "--socket", old.path]).status == 0)
    #expect(try Program.run(["dtc", "--ecu", "7B0", "--socket", old.path]).status == 4)
  }
}
