import Testing

@testable import Protocols

@Suite struct OBDQueryTests {
  static func polling(allowRaw: Bool = false) -> AdapterRig {
    var rig = AdapterRig(allowRaw: allowRaw)
    rig.start(for: 2 * .second)
    return rig
  }

  /// The commands between two polls, from the first of them on.
  static func commands(_ rig: AdapterRig) -> [String] { rig.commands.drop { $0 != "2201019" }.filter { $0 != "2201019" } }

  @Test func aStandardRequestGoesToAllECUsAndSettingsAreRestored() {
    var rig = Self.polling()
    rig.adapter.answer("010C", "7E804410C0D74000000\r7EA04410C0D75000000\r\r>")
    rig.query("010C")
    rig.run(for: 100 * .millisecond)
    #expect(Self.commands(rig) == ["ATSH7DF", "ATCRA", "ATAT0", "010C", "ATSH7E4", "ATCRA7EC", "ATAT1"])
    #expect(rig.rows() == [["7E8", "41 0C 0D 74", "rpm 861"], ["7EA", "41 0C 0D 75", "rpm 861.25"]])
    rig.run(for: .second)
    #expect(rig.status == "polling" && rig.number("bad-replies") == 0 && rig.adapter.stops == 0)
    #expect(rig.machine.router.vehicle.polling.scheduler.pace.missed == 0)
  }

  @Test func aManufacturerSpecificRequestGoesToThePolledECU() {
    var rig = Self.polling()
    rig.adapter.answer("220105", bytes: Vector.wallboxRecord05)
    rig.query("22 01 05")
    rig.run(for: 20 * .millisecond)
    #expect(Self.commands(rig) == ["220105"])
    #expect(rig.rows()?.first?[0] == "7EC")
    #expect(rig.rows()?.first?[1].hasSuffix("00 1F 1E 1F 20") == true)
  }

  @Test(arguments: [
    ("7E2", ["ATSH7E2", "ATCRA7EA"], ["ATSH7E4", "ATCRA7EC"]), ("7d1", ["ATSH7D1", "ATCRA7D9"], ["ATSH7E4", "ATCRA7EC"]),
    ("7DF", ["ATSH7DF", "ATCRA", "ATAT0"], ["ATSH7E4", "ATCRA7EC", "ATAT1"]),
    ("7FF", ["ATSH7FF", "ATCRA", "ATAT0"], ["ATSH7E4", "ATCRA7EC", "ATAT1"]),
    ("18DA10F1", ["ATSP7", "ATCP18", "ATSHDA10F1", "ATCRA18DAF110"], ["ATSP6", "ATSH7E4", "ATCRA7EC"]),
    ("18DB33F1", ["ATSP7", "ATCP18", "ATSHDB33F1", "ATCRA", "ATAT0"], ["ATSP6", "ATSH7E4", "ATCRA7EC", "ATAT1"]),
  ])
  func anotherHeaderGetsItsFilterAndIsRestored(_ header: String, _ before: [String], _ after: [String]) {
    var rig = Self.polling()
    rig.query("22F190", header: header)
    rig.run(for: 100 * .millisecond)
    #expect(Self.commands(rig) == before + ["22F190"] + after)
    #expect(rig.rows() == [["", "", "NO DATA: no response from the vehicle: it may be off"]])
  }

  @Test func aFilterThatCannotBeClearedOneWayIsClearedTheOther() {
    var rig = Self.polling()
    rig.adapter.answer("ATCRA", "?\r\r>")
    rig.adapter.answer("010D", "7E803410D20\r\r>")
    rig.query("010D")
    rig.run(for: 100 * .millisecond)
    #expect(Self.commands(rig) == ["ATSH7DF", "ATCRA", "ATAR", "ATAT0", "010D", "ATSH7E4", "ATCRA7EC", "ATAT1"])
    #expect(rig.rows() == [["7E8", "41 0D 20", "speed 32 km/h"]])
  }

  @Test func aHeaderRejectedByTheAdapterIsAnErrorAndIsRestored() {
    var rig = Self.polling()
    rig.adapter.answer("ATSH7E2", "?\r\r>")
    rig.query("2101", header: "7E2")
    rig.run(for: 100 * .millisecond)
    #expect(rig.error() == .refused(code: .adapterRefused, "the adapter rejected ATSH7E2: ?||"))
    #expect(Self.commands(rig) == ["ATSH7E2", "ATSH7E4", "ATFCSM0", "ATCRA7EC"])
  }

  @Test func settingsThatAreNotRestoredReinitialiseTheAdapter() {
    var rig = Self.polling()
    rig.adapter.answer("ATSH7E4", "?\r\r>", "OK\r\r>")
    rig.query("010D")
    rig.run(for: 2 * .second)
    #expect(rig.heard("ATZ") == 2 && rig.status == "polling")
    #expect(rig.results[1]?.count == 1)
  }

  @Test func settingsWithALostReplyReinitialiseTheAdapter() {
    var rig = Self.polling()
    rig.adapter.answer("ATSH7E4", "")
    rig.query("010D")
    rig.run(untilHeard: "ATSH7E4", times: 2)
    rig.adapter.answer("ATSH7E4", "OK\r\r>")
    rig.run(for: 7 * .second)
    #expect(rig.heard("ATZ") == 2 && rig.status == "polling")
    #expect(rig.results[1]?.count == 1)
  }

  @Test(arguments: ["HELLO", "ZZ", "01-0C"]) func anInvalidRequestIsReported(_ request: String) {
    var rig = Self.polling()
    rig.query(request)
    guard case .invalid("request", let message)? = rig.error() else { Issue.record("\(request) was accepted"); return }
    #expect(message.contains("write hex digits, as in 010C"))
  }

  @Test func `codes are not cleared unread, even with allow-raw`() {
    for (request, isRaw) in [
      ("04", false), ("04", true), ("STPX H:7DF, D:04", true), ("stpxh:7e0,d:04 00,r:1", true), ("ATWM C133F104", true),
    ] {
      #expect(
        throws: CommandError.refused(
          code: .rawNotAllowed, "04 clears trouble codes unread; use vehiclectl dtc clear, which stores them first")
      ) {
        _ = try OBDQuery(1, [OBDQuery.argumentNames.request: .string(request)], allowRaw: isRaw)
      }
    }
    // Unformatted, 0104 is a frame of one byte, 04; and L: announces data of any kind.
    for request in ["AT CAF0", "STPX H:7E0, L:1"] {
      #expect(throws: CommandError.self) { _ = try OBDQuery(1, [OBDQuery.argumentNames.request: .string(request)], allowRaw: true) }
    }
    for request in ["STPX H:7E0, D:0104", "ATWM C133F13E", "ATCAF1"] {
      #expect(throws: Never.self) { _ = try OBDQuery(1, [OBDQuery.argumentNames.request: .string(request)], allowRaw: true) }
    }
  }

  @Test(arguments: ["2E0101FF", "3101", "1003", "ATMA", "ATSP0", "atz", "STPX H:7E4", "0804"])
  func aRequestThatIsNotReadOnlyNeedsAllowRaw(_ request: String) {
    var rig = Self.polling()
    rig.query(request)
    guard case .refused(code: .rawNotAllowed, let message)? = rig.error() else { Issue.record("\(request) was accepted"); return }
    #expect(message.contains("allow-raw = true"))
    rig.run(for: 100 * .millisecond)
    #expect(Self.commands(rig).isEmpty)
  }

  @Test(arguments: ["010C\r", "01\n0C", "010C>", "01\u{0}0C", "01é", "", "   ", "22010122010122", "0", "0101030406070C3456789ABCDEF"])
  func anInvalidCommandIsRejected(_ request: String) {
    var rig = Self.polling(allowRaw: request != "22010122010122")
    rig.query(request)
    if request == "22010122010122" || request == "0" { return #expect(rig.error() == nil) }
    guard case .invalid(argument: "request", _)? = rig.error() else { Issue.record("\(request) was accepted"); return }
  }

  @Test(arguments: ["7E", "8E0", "7E44", "38DA10F1", "XYZ", "18DA10F", "7E4\r"]) func anInvalidHeaderIsRejected(_ header: String) {
    var rig = Self.polling()
    rig.query("22F190", header: header)
    guard case .invalid(argument: "header", _)? = rig.error() else { Issue.record("\(header) was accepted"); return }
  }

  @Test func theAdapterCanBeQueried() {
    var rig = Self.polling()
    rig.adapter.answer("ATRV", "14.2V\r\r>")
    for (index, request) in ["at rv", "ATI", "STI", "ATDPN"].enumerated() { rig.query(request, id: CommandID(index + 1)) }
    rig.run(for: 100 * .millisecond)
    #expect(rig.rows(1) == [["", "", "14.2V"]])
    #expect(rig.rows(2) == [["", "", "ELM327 v1.5"]])
    #expect(rig.rows(3) == [["", "", "?: the adapter does not support this command"]])
    #expect(Self.commands(rig) == ["ATRV", "ATI", "STI", "ATDPN"])
  }

  @Test func afterARawCommandAllSettingsAreSentAgain() {
    var rig = Self.polling(allowRaw: true)
    rig.query("ATZ")
    rig.run(for: .second)
    #expect(Self.commands(rig) == ["ATZ", "ATE0", "ATL0", "ATM0", "ATS0", "ATH1", "ATSP6", "ATSH7E4", "ATCRA7EC"])
    #expect(rig.rows() == [["", "", "ELM327 v1.5"]])
    #expect(rig.status == "polling" && rig.faults.isEmpty)
    rig.adapter.answer("1003", "7EC065003003201F4\r\r>")
    rig.query("1003", id: 2)
    rig.run(for: 100 * .millisecond)
    #expect(rig.rows(2)?.first?[1] == "50 03 00 32 01 F4")
  }

  @Test func statusAndNegativeResponsesAreShown() {
    var rig = Self.polling()
    rig.adapter.answer("220188", "7EC037F2231AAAAAAAA\r\r>")
    rig.adapter.answer("220189", "CAN ERROR\r\r>")
    rig.query("220188")
    rig.query("220189", id: 2)
    rig.run(for: 100 * .millisecond)
    #expect(rig.rows() == [["7EC", "7F 22 31", "negative response: request out of range"]])
    #expect(rig.rows(2)?.first?[2].hasPrefix("CAN ERROR: ") == true)
    #expect(rig.status == "polling")
  }

  @Test(arguments: [
    String(decoding: Vector.interleaved, as: UTF8.self), "7EC103E620101EFFBE7\r\r>", "7EC21BUFFER FULL\r\r>", "STOPPED\r\r>", ">",
    "7EC0462F19155\r\r>", "7EC0459020000\r\r>", "VENDOR MODE\r\r>", "7EC0462F1\r\r>",
  ])
  func anIncompleteResponseIsAnErrorWithTheRawText(_ reply: String) {
    var rig = Self.polling()
    rig.adapter.answer("22F190", reply)
    rig.query("22F190")
    rig.run(for: .second)
    guard case .refused(code: .badReply, let message)? = rig.error() else { Issue.record("\(reply) was accepted"); return }
    let raw = printable(reply.utf8.prefix(20).filter { $0 != prompt })
    #expect(raw.isEmpty ? message.hasSuffix("(the adapter sent an empty reply); try again") : message.contains(raw))
    #expect(rig.status == "polling" && rig.number("rpm") == 4363 && rig.heard("ATZ") == 1)
    #expect(rig.adapter.spaces == 1)
  }

  @Test func standardMessagesAreDescribed() {
    let answers: [(String, [UInt8], [[String]])] = [
      (
        "0101030406070C3", Vector.multi,
        [
          [
            "7E8", "41 01 00 07 E5 00 03 01 00 04 00 06 80 07 7D 0C 00 00",
            "mil off, dtc count 0, ignition type spark, monitors: misfire: complete; fuel system: complete; components: complete; "
              + "catalyst: complete; evaporative system: complete; oxygen sensor: complete; oxygen sensor heater: complete; "
              + "egr: complete, monitors ready on, fuel system 1 open-loop-warming, engine load 0 %, short fuel trim 1 0 %, "
              + "long fuel trim 1 -2.34 %, rpm 0",
          ]
        ]
      ),
      (
        "0178", Vector.parameter78,
        [
          [
            "7E8", "41 78 0D 06 1F 01 90 03 DA 02 A6",
            "exhaust temperature 1 1 116.7 °C, exhaust temperature 1 3 58.6 °C, exhaust temperature 1 4 27.8 °C",
          ]
        ]
      ),
      ("010C", Vector.long, [["18DAF111", "41 0C 0D 74", "rpm 861"], ["18DAF11D", "41 0C 0D 74", "rpm 861"]]),
      ("0100", Vector.kLine, [["10", "41 00 BE 3E F8 11", "supported 01-20: BE 3E F8 11"]]),
      (
        "0902", Vector.vehicleNumber,
        [["", "49 02 01 31 44 34 47 50 30 30 52 35 35 42 31 32 33 34 35 36", "VIN 1D4GP00R55B123456"]]
      ),
    ]
    for (request, reply, rows) in answers {
      var ready = Self.polling()
      ready.adapter.answer(request, "")
      for split in 1..<reply.count {
        var rig = ready
        let id = rig.query(request, id: CommandID(split))
        rig.run(untilHeard: request)
        rig.give(.received(.main, Array(reply[..<split])))
        rig.give(.received(.main, Array(reply[split...])))
        if rig.rows(id) != rows { Issue.record("\(request) split at \(split): \(rig.rows(id) ?? [])") }
      }
    }
  }

  @Test func queriesQueueInOrderUpToTheirLimit() {
    var rig = Self.polling()
    rig.adapter.sleepFor("2201019", 30 * .millisecond)
    rig.run(untilHeard: "2201019", times: rig.heard("2201019") + 1)
    for id in 1...18 { rig.query("ATRV", id: CommandID(id)) }
    #expect(rig.error(17) == .refused(code: .busy, "16 queries are already waiting; try again when they are done"))
    #expect(rig.error(18) != nil)
    #expect(rig.adapter.stops == 0)
    rig.run(for: .second)
    for id in 1...16 { #expect(rig.results[CommandID(id)]?.count == 1) }
    #expect(rig.heard("ATRV") == 16 && rig.adapter.stops == 0)
  }

  @Test func aQueryWithoutAReplyTimesOutAndPollingContinues() {
    var rig = Self.polling()
    rig.adapter.answer("010D", "")
    rig.query("010D")
    rig.run(for: 4900 * .millisecond)
    #expect(rig.results.isEmpty)
    rig.run(for: 1000 * .millisecond)
    #expect(rig.error() == .timeout(milliseconds: 5000))
    #expect(Self.commands(rig) == ["ATSH7DF", "ATCRA", "ATAT0", "010D", "ATSH7E4", "ATCRA7EC", "ATAT1"])
    #expect(rig.status == "polling" && rig.heard("ATZ") == 1)
  }

  @Test func everyQueryEndsOnceWhenTheLinkBreaksOrTheDaemonStops() {
    for ending in [Input.linkChanged(.main, .down("unplugged")), .stopping, .linkChanged(.main, .up(maximumSend: nil))] {
      var rig = Self.polling()
      rig.adapter.answer("010D", "")
      for id in 1...3 { rig.query("010D", id: CommandID(id)) }
      rig.run(untilHeard: "010D")
      rig.give(ending)
      rig.run(for: 20 * .second)
      for id in 1...3 { #expect(rig.results[CommandID(id)]?.count == 1) }
      for id in 1...3 { if case .notConnected? = rig.error(CommandID(id)) {} else { Issue.record("query \(id) ended otherwise") } }
    }
    var down = AdapterRig()
    down.query("010C")
    #expect(down.error() == .notConnected("link not up yet"))
  }

  @Test func aQueryDuringTheSetupWaitsForItsEnd() {
    var rig = AdapterRig()
    rig.start()
    rig.query("ATRV")
    rig.run(for: .second)
    #expect(rig.rows() == [["", "", "OK"]])
    #expect(rig.commands.firstIndex(of: "ATRV") == 8)
  }

  @Test func aCancelledQueryIsDroppedAndItsSettingsAreRestored() {
    var rig = Self.polling()
    rig.query("010D", id: 1)
    rig.query("010C", id: 2)
    rig.give(.cancelled(1))
    rig.give(.cancelled(2))
    rig.run(for: .second)
    #expect(rig.results.isEmpty)
    #expect(rig.heard("010C") == 0 && rig.heard("ATSH7E4") == rig.heard("ATSH7DF") + 1)
    #expect(rig.status == "polling")
  }

  @Test func theAdapterCanBeQueriedWhileTheVehicleIsSilent() {
    var rig = AdapterRig()
    rig.adapter.answer("220101", "NO DATA\r\r>")
    rig.adapter.answer("ATRV", "12.1V\r\r>")
    rig.start()
    rig.run(for: 30 * .second)
    let wake = rig.machine.nextWake
    rig.query("ATRV")
    rig.run(for: 100 * .millisecond)
    #expect(rig.rows() == [["", "", "12.1V"]])
    #expect(rig.machine.nextWake == wake)
    #expect(rig.status == "car-silent")
  }

  @Test func anAdapterThatRestartsDuringAQueryFailsItAndIsReinitialised() {
    var rig = Self.polling()
    rig.adapter.answer("010D", "\rLV RESET\r\r>")
    rig.query("010D")
    rig.run(for: 3 * .second)
    guard case .refused(code: .adapterRestarted, _)? = rig.error() else { Issue.record("no refusal"); return }
    #expect(rig.heard("ATZ") == 2 && rig.status == "polling")
  }

  @Test func nothingCanBeSetAndOtherActionsDoNotExist() {
    var rig = Self.polling()
    rig.give(.perform(1, .set(property: 0, .int(1))))
    rig.give(.perform(2, .run(action: 99, arguments: [:])))
    rig.give(.perform(3, .run(action: 0, arguments: ["request": .int(1)])))
    for id in 1...3 { #expect(rig.error(CommandID(id)) != nil) }
  }
}
