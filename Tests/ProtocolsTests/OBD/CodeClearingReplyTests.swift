// What ECUs reply to a clear request, and on which bus: late, pending, rejected, damaged or lost replies, and the results for the client.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct CodeClearingReplyTests {
  // MARK: Responses of the ECUs

  @Test func `each ECU's result is reported, and a rejection does not hide a success`() {
    var rig = AdapterRig.stationary()
    rig.adapter.answer("0101", "7E806410182076520\r7E906410101040000\r7EA06410100040000\r\r>")
    rig.adapter.answer("04", "7E8037F0478\r7E9037F0422\r7E80144\r\r>")
    rig.clearCodes()
    #expect(
      rig.rows()?.prefix(3).map { $0 } == [
        ["7E8", "clearing", "cleared", "", ""],
        ["7E9", "clearing", "refused", "", "conditions not correct: stop, switch the engine off, and leave the ignition on"],
        ["7EA", "clearing", "no response", "", ""],
      ])
  }

  @Test(arguments: [
    (
      "7E8037F0422\r7E9037F0422\r\r>",
      "7E8 refused (conditions not correct: stop, switch the engine off, and leave the ignition on); 7E9 refused"
    ),
    ("7E8037F0478\r\r>", "7E8 refused (response pending: completion not confirmed); 7E9 no response"),
    ("NO DATA\r\r>", "7E8 no response; 7E9 no response"),
  ])
  func `a clear operation without success is an error and is not repeated`(_ reply: String, _ message: String) {
    var rig = AdapterRig.stationary()
    rig.adapter.answer("04", reply)
    rig.clearCodes()
    let isPolled = rig.keepsPolling()
    // An ECU without a response, or with response pending, may have cleared.
    let isKnown = reply.contains("22")
    #expect(
      rig.code() == (isKnown ? "not-cleared" : "outcome-unknown") && rig.refusal().contains(message),
      "\(rig.refusal())")
    #expect(rig.clearingEvents.last?.hasPrefix(isKnown ? "codes-not-cleared: " : "codes-clear-unconfirmed: ") == true)
    rig.run(for: 60 * .second)
    #expect(isPolled && rig.heard("04") == 1 && rig.heard("ATZ") == 1)
  }

  @Test func `service 04 is not sent if no ECU responds`() {
    var rig = AdapterRig.stationary()
    for request in AdapterRig.clearingRequests { rig.adapter.answer(request, "NO DATA\r\r>") }
    for (id, confirm) in [false, true].enumerated() {
      rig.requestClearing(confirm: confirm, id: CommandID(id + 1))
      rig.run(for: .second)
      #expect(rig.code(CommandID(id + 1)) == "no-answer")
    }
    let isPolled = rig.keepsPolling()
    #expect(isPolled && rig.timeRequests == 0 && rig.heard("04") == 0)
  }

  @Test(arguments: ["7E8037F0321\r\r>", "7E8037F0378\r7E90443010715\r\r>"])
  func `codes of a busy ECU are not cleared`(_ reply: String) {
    var rig = AdapterRig.stationary()
    rig.adapter.answer("03", reply)
    rig.requestClearing(confirm: true)
    rig.run(for: .second)
    #expect(rig.code() == "bad-reply" && rig.timeRequests == 0 && rig.heard("04") == 0)
  }

  /// A car with a second ECU that responds after a delay.
  struct SlowSecond: Car {
    var car = PetrolCar(.can11, PauseConditionsTests.turned((.on, 0)))
    let delay: Nanoseconds
    var isMute = false

    var bus: DiagnosticBus { car.bus }
    var padding: UInt8? { car.padding }
    var ignition: Ignition { car.ignition }
    func supplyMillivolts(at now: Instant) -> Int { car.supplyMillivolts(at: now) }
    mutating func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
      car.replies(to: request, at: address, now).compactMap { reply in
        var reply = reply
        if reply.id == 0x7E9 { reply.delay += delay }
        return isMute && reply.id == 0x7E9 && request != [0x01, 0x00] ? nil : reply
      }
    }
  }

  @Test func `slow ECUs get the full timeout, even with tuned timing`() throws {
    let stored = ["timing": Array("0 6 ELM327 v1.5".utf8)]
    var rig = try VehicleRig(SlowSecond(delay: 38 * .millisecond), disk: stored)
    rig.run(for: 20 * .second)
    #expect(rig.text("vehicle") == "standard OBD-II (7E8, 7E9)" && rig.machine.router.vehicle.polling.timeout.timing.timeout == 6)
    let codes = try rig.report("dtc")
    #expect(codes.rows.contains { $0[0] == "7E9" && $0[1] == "P0715" })
    let cleared = try rig.report("dtc-clear", ["confirm": .bool(true)], for: 20 * .second)
    #expect(cleared.rows.contains { $0[0] == "7E9" && $0[2] == "cleared" })
    #expect(String(decoding: rig.disk["cleared-codes"] ?? [], as: UTF8.self).contains("7E9 P0715"))
  }

  /// A car whose second ECU sends response pending before its pending codes.
  struct PendingSecond: Car {
    var car = PetrolCar(.can11, PauseConditionsTests.turned((.on, 0)))
    var bus: DiagnosticBus { car.bus }
    var padding: UInt8? { car.padding }
    var ignition: Ignition { car.ignition }
    func supplyMillivolts(at now: Instant) -> Int { car.supplyMillivolts(at: now) }
    mutating func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
      car.replies(to: request, at: address, now).flatMap { reply -> [Reply] in
        guard request == [0x07], reply.id == 0x7E9 else { return [reply] }
        var late = reply
        late.delay += 600 * .millisecond
        late.payload = [0x47, 0x01, 0x07, 0x16]
        return [Reply(id: reply.id, payload: Reply.negativeResponse(0x07, 0x78), delay: reply.delay), late]
      }
    }
  }

  @Test func `response pending in between extends the timeout`() throws {
    var rig = try VehicleRig(PendingSecond())
    rig.run(for: 20 * .second)
    let codes = try rig.report("dtc", for: 20 * .second)
    #expect(codes.rows.contains { $0[0] == "7E9" && $0[1] == "P0716" && $0[2] == "pending" } && codes.text == nil, "\(codes)")
    #expect(codes.rows.contains { $0[0] == "7E8" && $0[1] == "P0133" })
    // Earlier requests are not repeated, and the fast request has its timing back.
    #expect(rig.sentCommands.count { $0.command == "03" } == 1 && rig.sentCommands.count { $0.command == "07" } == 2)
    rig.run(for: 5 * .second)
    #expect(rig.status == "polling" && rig.sentCommands.last { $0.command.hasPrefix("ATST") }?.command == "ATST32")
  }

  @Test func `a known ECU that does not respond prevents clearing`() throws {
    var rig = try VehicleRig(SlowSecond(delay: 0, isMute: true))
    rig.run(for: 20 * .second)
    let result = rig.act("dtc-clear", ["confirm": .bool(true)], for: 20 * .second)
    #expect(
      result
        == .failure(
          .refused(code: .noAnswer, "no response from 7E9: codes would be lost unread; try again")))
    #expect(!rig.sentCommands.contains { $0.command == "04" })
  }

  @Test func `a sleeping car is not reported without codes`() throws {
    var rig = try VehicleRig(PetrolCar(.can11, PauseConditionsTests.turned((.run, 0), (.off, 10))))
    rig.run(for: 30 * .second)
    let result = rig.act("dtc")
    guard case .failure(.refused(code: .noAnswer, _))? = result else { Issue.record("\(String(describing: result))"); return }
  }

  @Test func `one ECU's failure does not hide the codes of the others`() {
    var rig = AdapterRig.stationary()
    rig.adapter.answer("03", "7E80443010133000000\r7E90443000000000000\r\r>")
    rig.adapter.answer("0A", "7E9037F0A78\r7E8024A00\r\r>")
    rig.give(.perform(1, .run(action: 1, arguments: [:])))
    rig.run(for: 2 * .second)
    #expect(rig.rows()?.first?.prefix(3) == ["7E8", "P0133", "stored"])
    guard case .success(let report)? = rig.results[1]?.first else { Issue.record("\(String(describing: rig.results[1]))"); return }
    #expect(report.text?.contains("7E9 does not report its permanent codes: response pending") == true)
  }

  @Test func `codes that an ECU has stored and does not report prevent clearing`() throws {
    func preview(_ isConfirmed: Bool, _ stored: String) throws -> ClearingPreview {
      try Self.processed(
        ClearingPreview(isConfirmed: isConfirmed, knownECUs: [0x7E8, 0x7E9]),
        [
          "\(stored)7E9024300", "7E80447010171\r7E9024700", "NO DATA", "NO DATA", "7E80641018207E500\r7E90641010007E500", "7E803410D00",
          "7E804410C0000",
        ]
        .map { Vector.reply($0) })
    }
    let message = "7E8 does not report its stored codes: it has 2"
    let lost = try preview(true, "")
    #expect(
      lost.abortError == .refused(code: .badReply, "nothing cleared: cannot read everything that would be lost: \(message); try again"))
    #expect(try preview(false, "").report.text?.contains(message) == true && preview(false, "").abortError == nil)
    #expect(try preview(true, "7E806430201330420\r").abortError == nil)
  }

  // MARK: Damage

  @Test(arguments: AdapterRig.clearingRequests)
  func `a damaged reply to any request prevents clearing`(_ request: String) {
    let damages = [
      ">", "?\r\r>", "7E8\r\r>", "7E8064302013304\r\r>", "7E806430201\r\r>", "7E80443020133\r\r>", "7E80241\r\r>", "7E803410D\r\r>",
      "7E8054202000\r\r>", "7E80641018207\r\r>", "7E803410CXX\r\r>", "7E8044105640000\r\r>", "VENDOR MODE\r\r>", "STOPPED\r\r>",
      "BUFFER FULL\r\r>", "7E80641\r<RX ERROR\r\r>", "CAN ERROR\r\r>", "BUS ERROR\r\r>", "\rLV RESET\r\r>", "7E8101A43\r\r>", "",
    ]
    for damage in damages {
      var rig = AdapterRig.stationary()
      rig.adapter.answer(request, damage)
      rig.storeCodes()
      rig.codesStored()
      rig.run(for: 20 * .second)
      #expect(rig.heard("04") == 0 && rig.results[1]?.count == 1 && rig.error() != nil, "\(request): \(damage)")
      #expect(rig.status == "polling" && rig.stored["cleared-codes"] == nil, "\(request): \(damage)")
    }
  }

  @Test(arguments: ["010D", "010C"]) func `a damaged reply to the final motion check prevents clearing`(_ request: String) {
    for damage in [">", "7E803410D\r\r>", "7E804410C00\r\r>", "STOPPED\r\r>", "LV RESET\r\r>", "7E8044105640000\r\r>", ""] {
      var rig = AdapterRig.stationary()
      rig.storeCodes()
      rig.adapter.answer(request, damage)
      rig.codesStored()
      rig.run(for: 20 * .second)
      #expect(rig.heard("04") == 0 && rig.results[1]?.count == 1 && rig.error() != nil, "\(request): \(damage)")
      #expect(rig.status == "polling", "\(request): \(damage)")
    }
  }

  @Test(arguments: ["7E80\r\r>", "7E804410C0000\r\r>", "LV RESET\r\r>", "STOPPED\r\r>", ">", ""])
  func `a lost reply to service 04 gives an unknown outcome`(_ reply: String) {
    var rig = AdapterRig.stationary()
    rig.adapter.answer("04", reply)
    rig.clearCodes()
    rig.run(for: 60 * .second)
    #expect(rig.code() == "outcome-unknown" && rig.heard("04") == 1 && rig.status == "polling", "\(reply)")
  }

  @Test(arguments: ["7E8064302013304\r\r>", "LV RESET\r\r>", ""])
  func `a clear operation is reported even if the remaining codes cannot be read`(_ reply: String) {
    var rig = AdapterRig.stationary()
    rig.storeCodes()
    rig.adapter.answer("03", reply)
    rig.codesStored()
    rig.run(for: 20 * .second)
    guard case .success(let report)? = rig.results[1]?.first else { Issue.record("\(String(describing: rig.results[1]))"); return }
    #expect(rig.results[1]?.count == 1 && rig.heard("04") == 1 && report.rows.map { $0[2] } == ["cleared", "cleared"])
    #expect(report.text?.contains("cannot read which codes remain") == true && rig.status == "polling")
  }

  // MARK: Other protocols

  static func processed<S: MultiECUQuery>(_ query: S, _ replies: [[UInt8]]) throws -> S {
    var (query, reader) = (query, ReplyReader())
    for (index, reply) in replies.enumerated() {
      let outcome = reader.read(reply.dropLast())
      try #require(outcome == .messages || outcome == .status(.noData), "\(outcome)")
      try query.process(outcome == .messages ? reader.answers(to: query.requests[index]) : [], index)
    }
    return query
  }

  @Test func `on a K-line codes come in several messages with ECU addresses`() throws {
    func frame(_ bytes: UInt8...) -> String { spacedHex(bytes + [bytes.reduce(0, &+)]) }
    let none = Vector.reply("NO DATA")
    let loss = try Self.processed(
      ClearingPreview(isConfirmed: true),
      [
        Vector.legacyCodes, none, none, Vector.reply(frame(0x85, 0xF1, 0x10, 0x42, 0x02, 0x00, 0x01, 0x33)),
        Vector.reply(frame(0x86, 0xF1, 0x10, 0x41, 0x01, 0x84, 0x01, 0x00, 0x00), frame(0x86, 0xF1, 0x18, 0x41, 0x01, 0, 4, 0, 0)),
        Vector.reply(frame(0x83, 0xF1, 0x10, 0x41, 0x0D, 0x00)), Vector.reply(frame(0x84, 0xF1, 0x10, 0x41, 0x0C, 0, 0)),
      ])
    #expect(loss.message == "10 P0133 (stored), P0171 (stored), P0300 (stored), P0420 (stored), freeze frame of P0133; 18 no code")
    #expect(loss.abortError == nil && loss.motion.isKnown)
    let clearing = try Self.processed(
      CodeClearing(loss.ecus, Motion(), requiresResponse: false),
      [
        none, none, Vector.reply(frame(0x81, 0xF1, 0x10, 0x44), frame(0x83, 0xF1, 0x18, 0x7F, 0x04, 0x22)), none, none, none,
        Vector.reply(frame(0x86, 0xF1, 0x10, 0x41, 0x01, 0, 4, 0, 0)),
      ])
    #expect(clearing.report.rows.map { $0.prefix(3).joined(separator: " ") } == ["10 clearing cleared", "18 clearing refused"])
    #expect(clearing.report.text?.hasSuffix("no trouble codes remain") == true)
  }

  @Test func `a silent or busy ECU is not reported without codes after clearing`() throws {
    let none = Vector.reply("NO DATA")
    let cleared = [none, none, Vector.reply("7E80144")]
    let silent = try Self.processed(CodeClearing([0x7E8], Motion(), requiresResponse: true), cleared + [none, none, none])
    #expect(silent.report.text?.hasSuffix("cannot read which codes remain; read them again") == true)
    let busy = try Self.processed(
      CodeClearing([0x7E8], Motion(), requiresResponse: true), cleared + ["7E8037F0321", "7E8024700", "7E8024A00"].map { Vector.reply($0) })
    #expect(busy.report.text?.contains("7E8 does not report its stored codes: busy") == true)
    #expect(busy.report.text?.contains("no trouble code") == false)
  }

  @Test(arguments: ["22", "10", "21", "78", "7F"]) func `an ECU that rejects the request is not reported without codes`(_ code: String)
    throws
  {
    let replies = ["7E8037F03\(code)", "7E8024700", "7E8024A00"].map { Vector.reply($0) }
    let codes = try Self.processed(TroubleCodeQuery(requiresResponse: true), replies)
    #expect(codes.report.text?.contains("7E8 does not report its stored codes") == true)
    #expect(try Self.processed(ClearingPreview(isConfirmed: true), replies).abortError != nil)
  }

  @Test(arguments: ["11", "12", "31"]) func `an ECU without the service has no such codes`(_ code: String) throws {
    let codes = try Self.processed(
      TroubleCodeQuery(requiresResponse: true), ["7E8037F03\(code)", "7E8024700", "7E8024A00"].map { Vector.reply($0) })
    #expect(codes.report.text == "no trouble codes: none stored, pending or permanent")
  }

  @Test func `on a K-line an ECU without codes need not respond, but one must respond to PID 01`() throws {
    let none = [[UInt8]](repeating: Vector.reply("NO DATA"), count: 3)
    func codes(_ replies: [[UInt8]]) throws -> TroubleCodeQuery { try Self.processed(TroubleCodeQuery(isResponding: true), replies) }
    func status(_ count: UInt8) -> [UInt8] {
      let bytes: [UInt8] = [0x86, 0xF1, 0x10, 0x41, 0x01, count, 4, 0, 0]
      return Vector.reply(spacedHex(bytes + [bytes.reduce(0, &+)]))
    }
    let unknown = try codes(none)
    #expect(unknown.requests.last == [0x01, 0x01] && unknown.abortError == nil)
    let silent = try codes(none + [Vector.reply("NO DATA")])
    #expect(silent.abortError == .refused(code: .noAnswer, "no ECU responds; switch the ignition on"))
    let healthy = try codes(none + [status(0)])
    #expect(healthy.abortError == nil && healthy.report.text == "no trouble codes: none stored, pending or permanent")
    let contradicting = try codes(none + [status(0x82)])
    #expect(contradicting.report.text == "10 does not report its stored codes: it has 2\nread the codes again")
    // The response to one of the services was lost.
    let pending = [Vector.reply("NO DATA"), Vector.reply("87 F1 10 47 01 71 00 00 00 00 41"), Vector.reply("NO DATA")]
    let lost = try codes(pending + [status(0x82)])
    #expect(lost.entries.map(\.code.text) == ["P0171"] && lost.report.text == contradicting.report.text)
  }

  @Test func `on CAN a service without an answer is not reported as one without codes`() throws {
    func codes(_ replies: String...) throws -> TroubleCodeQuery {
      try Self.processed(TroubleCodeQuery(requiresResponse: true, isResponding: true), replies.map { Vector.reply($0) })
    }
    #expect(
      try codes("7E8024300", "7E8024700", "NO DATA").report.text
        == "no trouble codes: none stored or pending\nno ECU responds to the request for permanent codes")
    #expect(try codes("NO DATA", "7E80447010133", "NO DATA").report.text == "no ECU responds to the request for stored and permanent codes")
    #expect(
      try codes("7E9024300", "7E80447010133\r7E9024700", "NO DATA").report.text
        == "no ECU responds to the request for permanent codes\n7E8 does not respond to the request for stored codes")
    #expect(try codes("NO DATA", "NO DATA", "NO DATA").abortError != nil)
    #expect(try codes("7E8037F0311", "7E8037F0711", "7E8037F0A11").abortError != nil)
  }

  @Test func `without headers a pending ECU is not mistaken for the one that responded`() throws {
    let codes = try Self.processed(
      TroubleCodeQuery(requiresResponse: true), [Vector.reply("43010133", "7F0378"), Vector.reply("4700"), Vector.reply("4A00")])
    #expect(codes.problems.count == 1 && codes.entries.count == 1)
    let same = try Self.processed(
      TroubleCodeQuery(requiresResponse: true), [Vector.reply("7F0378", "43010133"), Vector.reply("4700"), Vector.reply("4A00")])
    #expect(same.problems.isEmpty && same.entries.count == 1)
  }

  @Test func `codes are not cleared while polled values show motion`() throws {
    var rig = try VehicleRig(
      VehiclePollingTests.car([
        "0100": [(0x7E8, "410008180000")], "010C0D": [(0x7E8, "410C1AF80D32")], "03": [(0x7E8, "43010133")], "07": [(0x7E8, "4700")],
        "0A": [(0x7E8, "4A00")], "04": [(0x7E8, "44")],
      ]))
    rig.run(for: 20 * .second)
    #expect(rig.number("speed") == 50)
    guard case .failure(.refused(code: .moving, let message))? = rig.act("dtc-clear", ["confirm": .bool(true)], for: 20 * .second) else {
      Issue.record("clearing was not refused")
      return
    }
    #expect(message.contains("road speed 50 km/h") && !rig.sentCommands.contains { $0.command == "04" })
  }

  @Test func `clearing works on 29-bit CAN and without headers`() throws {
    let none = Vector.reply("NO DATA")
    let quiet = [none, none, none, none, none, none]
    let long = try Self.processed(
      ClearingPreview(isConfirmed: true), [Vector.reply("18DAF1100443010133000000", "18DAF118024300")] + quiet)
    #expect(long.message == "18DAF110 P0133 (stored); 18DAF118 no code" && long.abortError == nil)
    let cleared = try Self.processed(
      CodeClearing(long.ecus, Motion(), requiresResponse: true),
      [none, none, Vector.reply("18DAF1180144", "18DAF110037F0422")] + quiet.prefix(3))
    #expect(cleared.message.hasPrefix("18DAF110 refused (conditions not correct") && cleared.message.hasSuffix("; 18DAF118 cleared"))
    let nameless = try Self.processed(ClearingPreview(isConfirmed: true), [Vector.reply("43010133", "430104 20")] + quiet)
    #expect(nameless.message == "P0133 (stored), P0420 (stored)")
    let both = try Self.processed(
      CodeClearing(nameless.ecus, Motion(), requiresResponse: true), [none, none, Vector.reply("44", "7F0422")] + quiet.prefix(3))
    #expect(both.hasCleared && both.report.rows.map { $0[2] } == ["cleared", "refused"])
  }
}
