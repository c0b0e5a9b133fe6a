// Clearing of trouble codes in virtual time: service 04 is sent only after confirmation, with a stationary vehicle and the codes stored on
// disk, and once.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct CodeClearingTests {
  // MARK: Success

  @Test(arguments: [nil, false]) func `without confirmation the losses are shown and nothing is cleared`(_ confirm: Bool?) {
    var rig = AdapterRig.stationary()
    rig.requestClearing(confirm: confirm)
    rig.run(for: .second)
    #expect(OBDQueryTests.commands(rig) == ["ATSH7DF", "ATCRA", "ATAT0"] + AdapterRig.clearingRequests + ["ATSH7E4", "ATCRA7EC", "ATAT1"])
    let rows = rig.rows()?.map { $0.prefix(4).joined(separator: "|") } ?? []
    #expect(
      rows.prefix(4) == ["7E8|code|P0133|stored", "7E8|code|P0420|stored, permanent", "7E9|code|P0715|stored", "7E8|freeze frame|P0133|"])
    #expect(rows.dropFirst(4).allSatisfy { $0.contains("|readiness monitor|") && $0.hasSuffix("|complete") })
    #expect(rows.contains("7E8|readiness monitor|catalyst|complete") && !rows.contains("7E8|readiness monitor|oxygen sensor|complete"))
    guard case .success(let report)? = rig.results[1]?.first else { Issue.record("\(String(describing: rig.results[1]))"); return }
    #expect(report.text?.contains("permanent codes remain until the vehicle itself verifies the repair: 7E8 P0420") == true)
    #expect(report.text?.hasSuffix("the vehicle is stationary: road speed 0 km/h, engine speed 0 rpm, motor speed 0 rpm") == true)
    let isPolled = rig.keepsPolling()
    #expect(isPolled && rig.heard("04") == 0 && rig.timeRequests == 0 && rig.stored["cleared-codes"] == nil && rig.clearingEvents.isEmpty)
  }

  @Test func `the codes are in the journal and on disk before they are cleared, once`() {
    var rig = AdapterRig.stationary()
    rig.requestClearing(confirm: true)
    rig.run(for: .second)
    #expect(rig.timeRequests == 1 && rig.stored["cleared-codes"] == nil && rig.results.isEmpty && rig.heard("04") == 0)
    rig.giveTime()
    #expect(rig.stored["cleared-codes"] == AdapterRig.clearedLine)
    #expect(rig.clearingEvents == ["clearing-codes: clearing the trouble codes: \(AdapterRig.clearedLine.dropFirst(21).dropLast())"])
    // However long the disk takes, polling continues and nothing is cleared.
    let isPolled = rig.keepsPolling()
    rig.give(.stored(key: "request", failure: nil))
    rig.run(for: .second)
    #expect(isPolled && rig.heard("04") == 0 && rig.results.isEmpty)
    let before = OBDQueryTests.commands(rig).count
    rig.adapter.answer("03", "NO DATA\r\r>")
    rig.codesStored()
    rig.run(for: .second)
    #expect(
      Array(OBDQueryTests.commands(rig)[before...])
        == [
          "ATSH7DF", "ATCRA", "ATAT0", "ATSTFF", "010D", "010C", "04", "03", "07", "0A", "ATSH7E4", "ATCRA7EC", "ATAT1", "ATST32",
        ])
    #expect(
      rig.rows()?.map { $0.prefix(4) } == [
        ["7E8", "clearing", "cleared", ""], ["7E9", "clearing", "cleared", ""], ["7E8", "code", "P0420", "permanent"],
      ])
    #expect(rig.clearingEvents.last == "codes-cleared: trouble codes: 7E8 cleared; 7E9 cleared" && rig.clearingEvents.count == 2)
    let isPolledAfterwards = rig.keepsPolling()
    rig.codesStored()
    rig.run(for: 60 * .second)
    #expect(isPolledAfterwards && rig.heard("04") == 1 && rig.results[1]?.count == 1 && rig.fault == nil)
  }

  @Test func `the last twenty clear operations are stored, one line each`() {
    let earlier = (1...30).map { "line \($0)" }.joined(separator: "\n")
    var rig = AdapterRig.stationary(stored: ["cleared-codes": Array(earlier.utf8)])
    rig.clearCodes()
    let lines = rig.stored["cleared-codes"]?.split(separator: "\n") ?? []
    #expect(lines.count == 20 && lines.first == "line 12" && lines.last.map { $0 + "\n" } == AdapterRig.clearedLine)
    rig.adapter.answer("03", "7E8024300\r\r>")
    rig.adapter.answer("0101", "7E806410100076520\r7E906410100040000\r\r>")
    rig.requestClearing(confirm: true, id: 2)
    rig.run(for: .second)
    rig.giveTime()
    let next = rig.stored["cleared-codes"]?.split(separator: "\n") ?? []
    #expect(
      next.count == 20 && next.first == "line 13"
        && next.last?.hasSuffix("7E8 P0420 (permanent), freeze frame of P0133; 7E9 no code") == true)
  }

  // MARK: The vehicle moves

  @Test(arguments: [("010D", "7E803410D01\r\r>"), ("010D", "7E803410D00\r7E903410D02\r\r>"), ("010C", "7E804410C0001\r\r>")])
  func `codes are not cleared while the vehicle moves or its engine runs`(_ request: String, _ reply: String) {
    var rig = AdapterRig.stationary()
    rig.adapter.answer(request, reply)
    rig.requestClearing(confirm: true)
    rig.run(for: .second)
    #expect(rig.code() == "moving" && rig.refusal().contains("switch the engine off, and leave the ignition on"))
    rig.giveTime()
    rig.codesStored()
    let isPolled = rig.keepsPolling()
    #expect(isPolled && rig.heard("04") == 0 && rig.timeRequests == 0 && rig.clearingEvents.isEmpty && rig.heard("ATZ") == 1)
    // A client is not asked to confirm what would be refused.
    rig.requestClearing(confirm: false, id: 2)
    rig.run(for: .second)
    #expect(rig.code(2) == "moving")
  }

  @Test func `an electric car with motor speed in its BMS data counts as moving`() {
    var rig = AdapterRig.stationary()
    rig.adapter.bmsReply = Vector.ev6
    rig.adapter.answer("010D", "NO DATA\r\r>")
    rig.adapter.answer("010C", "NO DATA\r\r>")
    rig.run(for: .second)
    rig.requestClearing(confirm: true)
    rig.run(for: .second)
    #expect(rig.code() == "moving" && rig.refusal().contains("motor speed 4363 rpm") && rig.heard("04") == 0)
  }

  @Test func `codes are not cleared if the vehicle starts to move during the write`() {
    var rig = AdapterRig.stationary()
    rig.storeCodes()
    rig.adapter.answer("010D", "7E803410D03\r\r>")
    rig.codesStored()
    rig.run(for: .second)
    let isPolled = rig.keepsPolling()
    #expect(rig.code() == "moving" && rig.heard("04") == 0 && isPolled)
  }

  @Test func `unknown motion is reported, and codes can be cleared`() {
    var rig = AdapterRig()
    rig.adapter = AdapterRig.stationary().adapter
    rig.adapter.answer("220101", "NO DATA\r\r>")
    for request in ["2201019", "2101", "010D", "010C"] { rig.adapter.answer(request, "NO DATA\r\r>") }
    rig.start()
    rig.run(for: 2 * .second)
    rig.requestClearing(confirm: false)
    rig.run(for: .second)
    guard case .success(let report)? = rig.results[1]?.first else { Issue.record("\(String(describing: rig.results[1]))"); return }
    #expect(report.text?.contains("road speed and engine speed are unknown") == true)
    rig.requestClearing(confirm: true, id: 2)
    rig.run(for: .second)
    rig.giveTime()
    rig.codesStored()
    rig.run(for: .second)
    #expect(rig.heard("04") == 1 && rig.rows(2)?.first?[2] == "cleared")
  }

  // MARK: Storage

  @Test func `codes are not cleared if they cannot be stored`() {
    var rig = AdapterRig.stationary(stored: ["cleared-codes": Array("earlier\n".utf8)])
    rig.storeCodes()
    rig.codesStored("no space left on device")
    let isPolled = rig.keepsPolling()
    #expect(rig.code() == "not-stored" && rig.refusal().hasSuffix("no space left on device"))
    #expect(isPolled && rig.heard("04") == 0)
    // Codes that were not stored are not among the earlier ones.
    rig.storeCodes()
    #expect(rig.stored["cleared-codes"] == "earlier\n" + AdapterRig.clearedLine)
  }

  // MARK: Disconnected clients

  @Test func `codes are not cleared for a client that has disconnected`() {
    for command in AdapterRig.clearingRequests {
      var rig = AdapterRig.stationary()
      rig.requestClearing(confirm: true)
      rig.run(untilHeard: command)
      rig.give(.cancelled(1))
      rig.giveTime()
      rig.codesStored()
      let isPolled = rig.keepsPolling()
      #expect(rig.heard("04") == 0 && rig.timeRequests == 0 && rig.results.isEmpty && isPolled, "\(command)")
    }
    for command in ["ATSH7DF", "010D", "010C"] {
      var rig = AdapterRig.stationary()
      rig.storeCodes()
      rig.codesStored()
      rig.run(untilHeard: command, times: 2)
      rig.give(.cancelled(1))
      let isPolled = rig.keepsPolling()
      #expect(rig.heard("04") == 0 && rig.results.isEmpty && isPolled, "\(command)")
    }
    var rig = AdapterRig.stationary()
    rig.requestClearing(confirm: true)
    rig.run(for: .second)
    rig.give(.cancelled(1))
    rig.giveTime()
    #expect(rig.stored["cleared-codes"] == nil && rig.clearingEvents.isEmpty)
  }

  @Test func `the completed write of an abandoned clear operation starts no other one`() {
    for ending in [Input.cancelled(1), .linkChanged(.main, .down("unplugged"))] {
      var rig = AdapterRig.stationary()
      rig.storeCodes()
      rig.give(ending)
      rig.connect()
      rig.run(for: 2 * .second)
      rig.requestClearing(confirm: true, id: 2)
      #expect(rig.code(2) == "busy")
      rig.codesStored()
      rig.run(for: 2 * .second)
      #expect(rig.heard("04") == 0)
      rig.requestClearing(confirm: true, id: 3)
      rig.run(for: .second)
      rig.giveTime()
      rig.codesStored()
      rig.run(for: .second)
      #expect(rig.heard("04") == 1 && rig.results[3]?.count == 1 && rig.rows(3)?.first?[2] == "cleared")
    }
  }

  @Test func `a late disconnect is logged with the outcome`() {
    var rig = AdapterRig.stationary()
    rig.storeCodes()
    rig.codesStored()
    rig.run(untilHeard: "04")
    rig.give(.cancelled(1))
    let isPolled = rig.keepsPolling()
    #expect(rig.results.isEmpty && rig.clearingEvents.last == "codes-cleared: trouble codes: 7E8 cleared; 7E9 cleared" && isPolled)
  }

  @Test func `two simultaneous confirmations clear once`() {
    var rig = AdapterRig.stationary()
    rig.requestClearing(confirm: true, id: 1)
    rig.requestClearing(confirm: true, id: 2)
    rig.requestClearing(confirm: false, id: 3)
    rig.run(for: .second)
    rig.giveTime()
    rig.codesStored()
    rig.run(for: .second)
    #expect(rig.heard("04") == 1 && rig.code(2) == "busy" && rig.rows(1)?.first?[2] == "cleared" && rig.rows(3) != nil)
  }

  @Test func `a broken link ends a clear operation once, at any stage`() {
    for ending in [Input.linkChanged(.main, .down("unplugged")), .stopping, .linkChanged(.main, .up(maximumSend: nil))] {
      for stop in ["03", "010C", "time", "disk", "010D again", "04", "0A again"] {
        var rig = AdapterRig.stationary()
        rig.requestClearing(confirm: true)
        switch stop {
        case "03", "010C": rig.run(untilHeard: stop)
        case "time": rig.run(for: .second)
        case "disk":
          rig.run(for: .second)
          rig.giveTime()
        default:
          rig.run(for: .second)
          rig.giveTime()
          rig.codesStored()
          rig.run(untilHeard: String(stop.prefix { $0 != " " }), times: stop == "04" ? 1 : 2)
        }
        rig.give(ending)
        rig.giveTime()
        rig.codesStored()
        rig.connect()
        rig.run(for: 20 * .second)
        #expect(rig.results[1]?.count == 1, "\(stop)")
        let cleared = rig.rows()?.first?[2]
        switch stop {
        case "0A again": #expect(cleared == "cleared")
        case "04": #expect(rig.code() == "outcome-unknown")
        default: if case .notConnected? = rig.error() {} else { Issue.record("\(stop) ended otherwise") }
        }
        #expect(rig.heard("04") == (stop == "04" || stop == "0A again" ? 1 : 0) && rig.status == "polling", "\(stop)")
      }
    }
  }

  @Test func `an adapter that restarts during the write is set up first`() {
    var rig = AdapterRig.stationary()
    rig.storeCodes()
    rig.adapter.say("\rELM327 v1.5\r\r>", at: rig.now)
    rig.run(for: 10 * .millisecond)
    rig.codesStored()
    rig.run(for: 3 * .second)
    let commands = rig.commands
    let reset = commands.lastIndex(of: "ATZ") ?? 0
    #expect(rig.heard("ATZ") == 2 && rig.heard("04") == 1 && rig.rows()?.first?[2] == "cleared")
    #expect(commands[reset...].contains("010D") && (commands.lastIndex(of: "04") ?? 0) > (commands.lastIndex(of: "010C") ?? 0))
  }

  // MARK: A whole car

  @Test func `codes of a petrol car with the engine off are cleared`() throws {
    var rig = try VehicleRig(PetrolCar(.can11, Ignition([Ignition.Turn(.on, at: 0)])))
    rig.run(for: 10 * .second)
    #expect(rig.text("mil") == "on" && rig.number("dtc-count") == 2)
    rig.wall = 1_709_210_095_000_000
    let report = try rig.report("dtc-clear", ["confirm": .bool(true)], for: 20 * .second)
    #expect(
      report.rows.map { $0.prefix(4).joined(separator: " ") } == [
        "7E8 clearing cleared ", "7E9 clearing cleared ", "7E8 code P0420 permanent",
      ])
    #expect(rig.text("mil") == "off" && rig.number("dtc-count") == 0 && rig.fault == nil)
    #expect(rig.count("04", last: 60 * .second) == 1 && rig.count("010C0D", last: 2 * .second) >= 38)
    let line = String(decoding: rig.disk["cleared-codes"] ?? [], as: UTF8.self)
    #expect(
      line
        == "2024-02-29T12:34:56Z 7E8 P0133 (stored), P0171 (pending), P0420 (stored, permanent), freeze frame of P0133; 7E9 P0715 (stored)\n"
    )
    #expect(try rig.report("dtc").rows.map { $0[1] } == ["P0420"])
  }

  @Test func `codes of a petrol car with a running engine are not cleared`() throws {
    var rig = try VehicleRig(PetrolCar(.can11))
    rig.run(for: 10 * .second)
    guard case .failure(.refused(code: .moving, _))? = rig.act("dtc-clear", ["confirm": .bool(true)], for: 20 * .second) else {
      Issue.record("cleared"); return
    }
    #expect(rig.count("04", last: 60 * .second) == 0 && rig.disk["cleared-codes"] == nil)
  }
}
