// Clearing of trouble codes in virtual time: service 04 is sent only after confirmation, with a stationary vehicle and the codes stored on
// disk; and the results for the caller in all other cases.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct CodeClearingTests {
  static let unconfirmed: [String] = ["03", "07", "0A", "020200", "0101", "010D", "010C"]
  static let noon = WallTime(microseconds: 1_709_210_096_000_000)
  static let line = "2024-02-29T12:34:56Z 7E8 P0133 (stored), P0420 (stored, permanent), freeze frame of P0133; 7E9 P0715 (stored)\n"

  /// A stationary car with two ECUs, being polled.
  static func standing(kept: [String: [UInt8]] = [:]) -> AdapterRig {
    var rig = AdapterRig()
    rig.adapter.page = Vector.page(Vector.ev6, [53: 0, 54: 0])
    rig.adapter.answer("03", "7E806430201330420\r7E90443010715\r\r>")
    rig.adapter.answer("0A", "7E8044A010420\r\r>")
    rig.adapter.answer("020200", "7E8054202000133\r\r>")
    rig.adapter.answer("0101", "7E806410182076520\r7E906410101040000\r\r>")
    rig.adapter.answer("010D", "7E803410D00\r\r>")
    rig.adapter.answer("010C", "7E804410C0000\r\r>")
    rig.adapter.answer("04", "7E80144\r7E90144\r\r>")
    rig.start(restored: kept)
    rig.run(for: 2 * .second)
    return rig
  }

  static func ask(_ rig: inout AdapterRig, confirm: Bool?, id: CommandID = 1) {
    let index = rig.machine.schema.actions.firstIndex { $0.name == "dtc-clear" } ?? -1
    rig.give(.perform(id, .run(action: index, arguments: confirm.map { ["confirm": .bool($0)] } ?? [:])))
  }

  static func stored(_ failure: String? = nil) -> Input { .stored(key: "cleared-codes", failure: failure) }

  /// Confirmed and read; the disk has not replied yet.
  static func storing(_ rig: inout AdapterRig) {
    ask(&rig, confirm: true)
    rig.run(for: .second)
    rig.give(.time(noon))
  }

  /// The complete sequence.
  static func clear(_ rig: inout AdapterRig) {
    storing(&rig)
    rig.give(stored())
    rig.run(for: .second)
  }

  static func code(_ error: CommandError?) -> String? { if case .refused(let code, _)? = error { code.rawValue } else { nil } }
  static func words(_ error: CommandError?) -> String { if case .refused(_, let words)? = error { words } else { "" } }

  /// Values are published at their rate again.
  static func polls(_ rig: inout AdapterRig) -> Bool {
    rig.run(for: 2 * .second)
    let before = rig.heard("2201019")
    rig.run(for: .second)
    return rig.status == "polling" && rig.heard("2201019") >= before + 19
  }

  // MARK: Success

  @Test(arguments: [nil, false]) func `without confirmation the losses are shown and nothing is cleared`(_ confirm: Bool?) {
    var rig = Self.standing()
    Self.ask(&rig, confirm: confirm)
    rig.run(for: .second)
    #expect(OBDQueryTests.commands(rig) == ["ATSH7DF", "ATCRA", "ATAT0"] + Self.unconfirmed + ["ATSH7E4", "ATCRA7EC", "ATAT1"])
    let rows = rig.rows()?.map { $0.prefix(4).joined(separator: "|") } ?? []
    #expect(
      rows.prefix(4) == ["7E8|code|P0133|stored", "7E8|code|P0420|stored, permanent", "7E9|code|P0715|stored", "7E8|freeze frame|P0133|"])
    #expect(rows.dropFirst(4).allSatisfy { $0.contains("|readiness monitor|") && $0.hasSuffix("|complete") })
    #expect(rows.contains("7E8|readiness monitor|catalyst|complete") && !rows.contains("7E8|readiness monitor|oxygen sensor|complete"))
    guard case .success(let report)? = rig.results[1]?.first else { Issue.record("\(String(describing: rig.results[1]))"); return }
    #expect(report.text?.contains("permanent codes remain until the vehicle itself verifies the repair: 7E8 P0420") == true)
    #expect(report.text?.hasSuffix("the vehicle is stationary: road speed 0 km/h, engine speed 0 rpm, motor speed 0 rpm") == true)
    let isPolled = Self.polls(&rig)
    #expect(isPolled && rig.heard("04") == 0 && rig.asksTime == 0 && rig.stored["cleared-codes"] == nil && rig.events.isEmpty)
  }

  @Test func `the codes are in the journal and on disk before they are cleared, once`() {
    var rig = Self.standing()
    Self.ask(&rig, confirm: true)
    rig.run(for: .second)
    #expect(rig.asksTime == 1 && rig.stored["cleared-codes"] == nil && rig.results.isEmpty && rig.heard("04") == 0)
    rig.give(.time(Self.noon))
    #expect(rig.stored["cleared-codes"] == Self.line)
    #expect(rig.events == ["clearing-codes: clearing the trouble codes: \(Self.line.dropFirst(21).dropLast())"])
    // However long the disk takes, polling continues and nothing is cleared.
    let isPolled = Self.polls(&rig)
    rig.give(.stored(key: "request", failure: nil))
    rig.run(for: .second)
    #expect(isPolled && rig.heard("04") == 0 && rig.results.isEmpty)
    let before = OBDQueryTests.commands(rig).count
    rig.adapter.answer("03", "NO DATA\r\r>")
    rig.give(Self.stored())
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
    #expect(rig.events.last == "codes-cleared: trouble codes: 7E8 cleared; 7E9 cleared" && rig.events.count == 2)
    let goesOn = Self.polls(&rig)
    rig.give(Self.stored())
    rig.run(for: 60 * .second)
    #expect(goesOn && rig.heard("04") == 1 && rig.results[1]?.count == 1 && rig.fault == nil)
  }

  @Test func `the last twenty clearings are stored, one line each`() {
    let earlier = (1...30).map { "line \($0)" }.joined(separator: "\n")
    var rig = Self.standing(kept: ["cleared-codes": Array(earlier.utf8)])
    Self.clear(&rig)
    let lines = rig.stored["cleared-codes"]?.split(separator: "\n") ?? []
    #expect(lines.count == 20 && lines.first == "line 12" && lines.last.map { $0 + "\n" } == Self.line)
    rig.adapter.answer("03", "7E8024300\r\r>")
    Self.ask(&rig, confirm: true, id: 2)
    rig.run(for: .second)
    rig.give(.time(Self.noon))
    let next = rig.stored["cleared-codes"]?.split(separator: "\n") ?? []
    #expect(
      next.count == 20 && next.first == "line 13"
        && next.last?.hasSuffix("7E8 P0420 (permanent), freeze frame of P0133; 7E9 no code") == true)
  }

  // MARK: The vehicle moves

  @Test(arguments: [("010D", "7E803410D01\r\r>"), ("010D", "7E803410D00\r7E903410D02\r\r>"), ("010C", "7E804410C0001\r\r>")])
  func `codes are not cleared while the vehicle moves or its engine runs`(_ question: String, _ reply: String) {
    var rig = Self.standing()
    rig.adapter.answer(question, reply)
    Self.ask(&rig, confirm: true)
    rig.run(for: .second)
    #expect(Self.code(rig.refusal()) == "moving" && Self.words(rig.refusal()).contains("switch the engine off, and leave the ignition on"))
    rig.give(.time(Self.noon))
    rig.give(Self.stored())
    let isPolled = Self.polls(&rig)
    #expect(isPolled && rig.heard("04") == 0 && rig.asksTime == 0 && rig.events.isEmpty && rig.heard("ATZ") == 1)
    // Without confirmation the motion is reported.
    Self.ask(&rig, confirm: false, id: 2)
    rig.run(for: .second)
    guard case .success(let report)? = rig.results[2]?.first else { Issue.record("no report"); return }
    #expect(report.text?.contains("only while the vehicle is stationary") == true)
  }

  @Test func `an electric car with motor speed in its BMS data counts as moving`() {
    var rig = Self.standing()
    rig.adapter.page = Vector.ev6
    rig.adapter.answer("010D", "NO DATA\r\r>")
    rig.adapter.answer("010C", "NO DATA\r\r>")
    rig.run(for: .second)
    Self.ask(&rig, confirm: true)
    rig.run(for: .second)
    #expect(Self.code(rig.refusal()) == "moving" && Self.words(rig.refusal()).contains("motor speed 4363 rpm") && rig.heard("04") == 0)
  }

  @Test func `codes are not cleared if the vehicle starts to move during the write`() {
    var rig = Self.standing()
    Self.storing(&rig)
    rig.adapter.answer("010D", "7E803410D03\r\r>")
    rig.give(Self.stored())
    rig.run(for: .second)
    let isPolled = Self.polls(&rig)
    #expect(Self.code(rig.refusal()) == "moving" && rig.heard("04") == 0 && isPolled)
  }

  @Test func `unknown motion is reported, and codes can be cleared`() {
    var rig = AdapterRig()
    rig.adapter = Self.standing().adapter
    rig.adapter.answer("220101", "NO DATA\r\r>")
    for question in ["2201019", "2101", "010D", "010C"] { rig.adapter.answer(question, "NO DATA\r\r>") }
    rig.start()
    rig.run(for: 2 * .second)
    Self.ask(&rig, confirm: false)
    rig.run(for: .second)
    guard case .success(let report)? = rig.results[1]?.first else { Issue.record("\(String(describing: rig.results[1]))"); return }
    #expect(report.text?.contains("road speed and engine speed are unknown") == true)
    Self.ask(&rig, confirm: true, id: 2)
    rig.run(for: .second)
    rig.give(.time(Self.noon))
    rig.give(Self.stored())
    rig.run(for: .second)
    #expect(rig.heard("04") == 1 && rig.rows(2)?.first?[2] == "cleared")
  }

  // MARK: Storage

  @Test func `codes are not cleared if they cannot be stored`() {
    var rig = Self.standing(kept: ["cleared-codes": Array("earlier\n".utf8)])
    Self.storing(&rig)
    rig.give(Self.stored("no space left on device"))
    let isPolled = Self.polls(&rig)
    #expect(Self.code(rig.refusal()) == "not-stored" && Self.words(rig.refusal()).hasSuffix("no space left on device"))
    #expect(isPolled && rig.heard("04") == 0)
    // Codes that were not stored are not among the earlier ones.
    Self.storing(&rig)
    #expect(rig.stored["cleared-codes"] == "earlier\n" + Self.line)
  }

  // MARK: Responses of the ECUs

  @Test func `each ECU's result is reported, and a rejection does not hide a success`() {
    var rig = Self.standing()
    rig.adapter.answer("0101", "7E806410182076520\r7E906410101040000\r7EA06410100040000\r\r>")
    rig.adapter.answer("04", "7E8037F0478\r7E9037F0422\r7E80144\r\r>")
    Self.clear(&rig)
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
  func `a clearing without success is an error and is not repeated`(_ reply: String, _ words: String) {
    var rig = Self.standing()
    rig.adapter.answer("04", reply)
    Self.clear(&rig)
    let isPolled = Self.polls(&rig)
    // An ECU without a response, or with response pending, may have cleared.
    let isKnown = reply.contains("22")
    #expect(
      Self.code(rig.refusal()) == (isKnown ? "not-cleared" : "outcome-unknown") && Self.words(rig.refusal()).contains(words),
      "\(Self.words(rig.refusal()))")
    #expect(rig.events.last?.hasPrefix(isKnown ? "codes-not-cleared: " : "codes-clear-unconfirmed: ") == true)
    rig.run(for: 60 * .second)
    #expect(isPolled && rig.heard("04") == 1 && rig.heard("ATZ") == 1)
  }

  @Test func `service 04 is not sent if no ECU responds`() {
    var rig = Self.standing()
    for question in Self.unconfirmed { rig.adapter.answer(question, "NO DATA\r\r>") }
    for (id, confirm) in [false, true].enumerated() {
      Self.ask(&rig, confirm: confirm, id: CommandID(id + 1))
      rig.run(for: .second)
      #expect(Self.code(rig.refusal(CommandID(id + 1))) == "no-answer")
    }
    let isPolled = Self.polls(&rig)
    #expect(isPolled && rig.asksTime == 0 && rig.heard("04") == 0)
  }

  @Test(arguments: ["7E8037F0321\r\r>", "7E8037F0378\r7E90443010715\r\r>"])
  func `codes of a busy ECU are not cleared`(_ reply: String) {
    var rig = Self.standing()
    rig.adapter.answer("03", reply)
    Self.ask(&rig, confirm: true)
    rig.run(for: .second)
    #expect(Self.code(rig.refusal()) == "bad-reply" && rig.asksTime == 0 && rig.heard("04") == 0)
  }

  /// A car with a second ECU that responds after a delay.
  struct SlowSecond: Car {
    var car = PetrolCar(.can11, CarCareTests.turned((.on, 0)))
    let delay: Nanoseconds
    var isMute = false

    var bus: DiagnosticBus { car.bus }
    var padding: UInt8? { car.padding }
    var ignition: Ignition { car.ignition }
    func supply(at now: Instant) -> Int { car.supply(at: now) }
    mutating func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
      car.replies(to: request, at: address, now).compactMap { reply in
        var reply = reply
        if reply.id == 0x7E9 { reply.delay += delay }
        return isMute && reply.id == 0x7E9 && request != [0x01, 0x00] ? nil : reply
      }
    }
  }

  @Test func `slow ECUs get the full timeout, even with tuned timing`() throws {
    let kept = ["timing": Array("0 6 ELM327 v1.5".utf8)]
    let rig = try VehicleRig(SlowSecond(delay: 38 * .millisecond), disk: kept)
    rig.run(for: 20 * .second)
    #expect(rig.text("vehicle") == "standard OBD-II (7E8, 7E9)" && rig.machine.vehicle.polling.timeout.usual.timeout == 6)
    let codes = try #require(rig.act("dtc")).get()
    #expect(codes.rows.contains { $0[0] == "7E9" && $0[1] == "P0715" })
    let cleared = try #require(rig.act("dtc-clear", ["confirm": .bool(true)], for: 20 * .second)).get()
    #expect(cleared.rows.contains { $0[0] == "7E9" && $0[2] == "cleared" })
    #expect(String(decoding: rig.disk["cleared-codes"] ?? [], as: UTF8.self).contains("7E9 P0715"))
  }

  /// A car whose second ECU sends response pending before its pending codes.
  struct PatientSecond: Car {
    var car = PetrolCar(.can11, CarCareTests.turned((.on, 0)))
    var bus: DiagnosticBus { car.bus }
    var padding: UInt8? { car.padding }
    var ignition: Ignition { car.ignition }
    func supply(at now: Instant) -> Int { car.supply(at: now) }
    mutating func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
      car.replies(to: request, at: address, now).flatMap { reply -> [Reply] in
        guard request == [0x07], reply.id == 0x7E9 else { return [reply] }
        var late = reply
        late.delay += 600 * .millisecond
        late.payload = [0x47, 0x01, 0x07, 0x16]
        return [Reply(id: reply.id, payload: Reply.refusal(0x07, 0x78), delay: reply.delay), late]
      }
    }
  }

  @Test func `response pending in between extends the timeout`() throws {
    let rig = try VehicleRig(PatientSecond())
    rig.run(for: 20 * .second)
    let codes = try #require(rig.act("dtc", for: 20 * .second)).get()
    #expect(codes.rows.contains { $0[0] == "7E9" && $0[1] == "P0716" && $0[2] == "pending" } && codes.text == nil, "\(codes)")
    #expect(codes.rows.contains { $0[0] == "7E8" && $0[1] == "P0133" })
    // Earlier requests are not repeated, and the fast request has its timing back.
    #expect(rig.asked.count { $0.command == "03" } == 1 && rig.asked.count { $0.command == "07" } == 2)
    rig.run(for: 5 * .second)
    #expect(rig.status == "polling" && rig.asked.last { $0.command.hasPrefix("ATST") }?.command == "ATST32")
  }

  @Test func `a known ECU that does not respond prevents clearing`() throws {
    let rig = try VehicleRig(SlowSecond(delay: 0, isMute: true))
    rig.run(for: 20 * .second)
    let result = rig.act("dtc-clear", ["confirm": .bool(true)], for: 20 * .second)
    #expect(
      result
        == .failure(
          .refused(code: .noAnswer, "7E9 does not respond, and its codes would be lost unread; switch the ignition on")))
    #expect(!rig.asked.contains { $0.command == "04" })
  }

  @Test func `a sleeping car is not reported without codes`() throws {
    let rig = try VehicleRig(PetrolCar(.can11, CarCareTests.turned((.run, 0), (.off, 10))))
    rig.run(for: 30 * .second)
    let result = rig.act("dtc")
    guard case .failure(.refused(code: .noAnswer, _))? = result else { Issue.record("\(String(describing: result))"); return }
  }

  @Test func `one ECU's failure does not hide the codes of the others`() {
    var rig = Self.standing()
    rig.adapter.answer("03", "7E80443010133000000\r7E90443000000000000\r\r>")
    rig.adapter.answer("0A", "7E9037F0A78\r7E8024A00\r\r>")
    rig.give(.perform(1, .run(action: 1, arguments: [:])))
    rig.run(for: 2 * .second)
    #expect(rig.rows()?.first?.prefix(3) == ["7E8", "P0133", "stored"])
    guard case .success(let report)? = rig.results[1]?.first else { Issue.record("\(String(describing: rig.results[1]))"); return }
    #expect(report.text?.contains("7E9 does not report its permanent codes: response pending") == true)
  }

  // MARK: Damage

  @Test(arguments: Self.unconfirmed)
  func `a damaged reply to any request prevents clearing`(_ question: String) {
    let damages = [
      ">", "?\r\r>", "7E8\r\r>", "7E8064302013304\r\r>", "7E806430201\r\r>", "7E80443020133\r\r>", "7E80241\r\r>", "7E803410D\r\r>",
      "7E8054202000\r\r>", "7E80641018207\r\r>", "7E803410CXX\r\r>", "7E8044105640000\r\r>", "VENDOR MODE\r\r>", "STOPPED\r\r>",
      "BUFFER FULL\r\r>", "7E80641\r<RX ERROR\r\r>", "CAN ERROR\r\r>", "BUS ERROR\r\r>", "\rLV RESET\r\r>", "7E8101A43\r\r>", "",
    ]
    for damage in damages {
      var rig = Self.standing()
      rig.adapter.answer(question, damage)
      Self.storing(&rig)
      rig.give(Self.stored())
      rig.run(for: 20 * .second)
      #expect(rig.heard("04") == 0 && rig.results[1]?.count == 1 && rig.refusal() != nil, "\(question): \(damage)")
      #expect(rig.status == "polling" && rig.stored["cleared-codes"] == nil, "\(question): \(damage)")
    }
  }

  @Test(arguments: ["010D", "010C"]) func `a damaged reply to the final motion check prevents clearing`(_ question: String) {
    for damage in [">", "7E803410D\r\r>", "7E804410C00\r\r>", "STOPPED\r\r>", "LV RESET\r\r>", "7E8044105640000\r\r>", ""] {
      var rig = Self.standing()
      Self.storing(&rig)
      rig.adapter.answer(question, damage)
      rig.give(Self.stored())
      rig.run(for: 20 * .second)
      #expect(rig.heard("04") == 0 && rig.results[1]?.count == 1 && rig.refusal() != nil, "\(question): \(damage)")
      #expect(rig.status == "polling", "\(question): \(damage)")
    }
  }

  @Test(arguments: ["7E80\r\r>", "7E804410C0000\r\r>", "LV RESET\r\r>", "STOPPED\r\r>", ">", ""])
  func `a lost reply to service 04 gives an unknown outcome`(_ reply: String) {
    var rig = Self.standing()
    rig.adapter.answer("04", reply)
    Self.clear(&rig)
    rig.run(for: 60 * .second)
    #expect(Self.code(rig.refusal()) == "outcome-unknown" && rig.heard("04") == 1 && rig.status == "polling", "\(reply)")
  }

  @Test(arguments: ["7E8064302013304\r\r>", "LV RESET\r\r>", ""])
  func `a clearing is reported even if the remaining codes cannot be read`(_ reply: String) {
    var rig = Self.standing()
    Self.storing(&rig)
    rig.adapter.answer("03", reply)
    rig.give(Self.stored())
    rig.run(for: 20 * .second)
    guard case .success(let report)? = rig.results[1]?.first else { Issue.record("\(String(describing: rig.results[1]))"); return }
    #expect(rig.results[1]?.count == 1 && rig.heard("04") == 1 && report.rows.map { $0[2] } == ["cleared", "cleared"])
    #expect(report.text?.contains("cannot read which codes remain") == true && rig.status == "polling")
  }

  // MARK: Disconnected callers

  @Test func `codes are not cleared for a caller that has disconnected`() {
    for command in Self.unconfirmed {
      var rig = Self.standing()
      Self.ask(&rig, confirm: true)
      rig.run(untilHeard: command)
      rig.give(.cancelled(1))
      rig.give(.time(Self.noon))
      rig.give(Self.stored())
      let isPolled = Self.polls(&rig)
      #expect(rig.heard("04") == 0 && rig.asksTime == 0 && rig.results.isEmpty && isPolled, "\(command)")
    }
    for command in ["ATSH7DF", "010D", "010C"] {
      var rig = Self.standing()
      Self.storing(&rig)
      rig.give(Self.stored())
      rig.run(untilHeard: command, times: 2)
      rig.give(.cancelled(1))
      let isPolled = Self.polls(&rig)
      #expect(rig.heard("04") == 0 && rig.results.isEmpty && isPolled, "\(command)")
    }
    var rig = Self.standing()
    Self.ask(&rig, confirm: true)
    rig.run(for: .second)
    rig.give(.cancelled(1))
    rig.give(.time(Self.noon))
    #expect(rig.stored["cleared-codes"] == nil && rig.events.isEmpty)
  }

  @Test func `the completed write of an abandoned clearing starts no other one`() {
    for ending in [Input.cancelled(1), .linkChanged(.main, .down("unplugged"))] {
      var rig = Self.standing()
      Self.storing(&rig)
      rig.give(ending)
      rig.connect()
      rig.run(for: 2 * .second)
      Self.ask(&rig, confirm: true, id: 2)
      #expect(Self.code(rig.refusal(2)) == "busy")
      rig.give(Self.stored())
      rig.run(for: 2 * .second)
      #expect(rig.heard("04") == 0)
      Self.ask(&rig, confirm: true, id: 3)
      rig.run(for: .second)
      rig.give(.time(Self.noon))
      rig.give(Self.stored())
      rig.run(for: .second)
      #expect(rig.heard("04") == 1 && rig.results[3]?.count == 1 && rig.rows(3)?.first?[2] == "cleared")
    }
  }

  @Test func `a late disconnect is logged with the outcome`() {
    var rig = Self.standing()
    Self.storing(&rig)
    rig.give(Self.stored())
    rig.run(untilHeard: "04")
    rig.give(.cancelled(1))
    let isPolled = Self.polls(&rig)
    #expect(rig.results.isEmpty && rig.events.last == "codes-cleared: trouble codes: 7E8 cleared; 7E9 cleared" && isPolled)
  }

  @Test func `two simultaneous confirmations clear once`() {
    var rig = Self.standing()
    Self.ask(&rig, confirm: true, id: 1)
    Self.ask(&rig, confirm: true, id: 2)
    Self.ask(&rig, confirm: false, id: 3)
    rig.run(for: .second)
    rig.give(.time(Self.noon))
    rig.give(Self.stored())
    rig.run(for: .second)
    #expect(rig.heard("04") == 1 && Self.code(rig.refusal(2)) == "busy" && rig.rows(1)?.first?[2] == "cleared" && rig.rows(3) != nil)
  }

  @Test func `a broken link ends it once, at any stage`() {
    for ending in [Input.linkChanged(.main, .down("unplugged")), .stopping, .linkChanged(.main, .up(maximumSend: nil))] {
      for stop in ["03", "010C", "time", "disk", "010D again", "04", "0A again"] {
        var rig = Self.standing()
        Self.ask(&rig, confirm: true)
        switch stop {
        case "03", "010C": rig.run(untilHeard: stop)
        case "time": rig.run(for: .second)
        case "disk":
          rig.run(for: .second)
          rig.give(.time(Self.noon))
        default:
          rig.run(for: .second)
          rig.give(.time(Self.noon))
          rig.give(Self.stored())
          rig.run(untilHeard: String(stop.prefix { $0 != " " }), times: stop == "04" ? 1 : 2)
        }
        rig.give(ending)
        rig.give(.time(Self.noon))
        rig.give(Self.stored())
        rig.connect()
        rig.run(for: 20 * .second)
        #expect(rig.results[1]?.count == 1, "\(stop)")
        let cleared = rig.rows()?.first?[2]
        switch stop {
        case "0A again": #expect(cleared == "cleared")
        case "04": #expect(Self.code(rig.refusal()) == "outcome-unknown")
        default: if case .notConnected? = rig.refusal() {} else { Issue.record("\(stop) ended otherwise") }
        }
        #expect(rig.heard("04") == (stop == "04" || stop == "0A again" ? 1 : 0) && rig.status == "polling", "\(stop)")
      }
    }
  }

  @Test func `an adapter that restarts during the write is set up first`() {
    var rig = Self.standing()
    Self.storing(&rig)
    rig.adapter.say("\rELM327 v1.5\r\r>", at: rig.now)
    rig.run(for: 10 * .millisecond)
    rig.give(Self.stored())
    rig.run(for: 3 * .second)
    let commands = rig.commands
    let reset = commands.lastIndex(of: "ATZ") ?? 0
    #expect(rig.heard("ATZ") == 2 && rig.heard("04") == 1 && rig.rows()?.first?[2] == "cleared")
    #expect(commands[reset...].contains("010D") && (commands.lastIndex(of: "04") ?? 0) > (commands.lastIndex(of: "010C") ?? 0))
  }

  // MARK: Other protocols

  static func taken<S: MultiECUQuery>(_ survey: S, _ replies: [[UInt8]]) throws -> S {
    var (survey, reader) = (survey, CANReader())
    for (place, reply) in replies.enumerated() {
      let outcome = reader.read(reply.dropLast())
      try #require(outcome == .messages || outcome == .status(.noData), "\(outcome)")
      try survey.take(outcome == .messages ? reader.answers(to: survey.questions[place]) : [], place)
    }
    return survey
  }

  @Test func `on a K-line codes come in several messages with ECU addresses`() throws {
    func frame(_ bytes: UInt8...) -> String { spacedHex(bytes + [bytes.reduce(0, &+)]) }
    let none = Vector.reply("NO DATA")
    let loss = try Self.taken(
      CodeLoss(isConfirmed: true),
      [
        Vector.legacyCodes, none, none, Vector.reply(frame(0x85, 0xF1, 0x10, 0x42, 0x02, 0x00, 0x01, 0x33)),
        Vector.reply(frame(0x86, 0xF1, 0x10, 0x41, 0x01, 0x84, 0x01, 0x00, 0x00), frame(0x86, 0xF1, 0x18, 0x41, 0x01, 0, 4, 0, 0)),
        Vector.reply(frame(0x83, 0xF1, 0x10, 0x41, 0x0D, 0x00)), Vector.reply(frame(0x84, 0xF1, 0x10, 0x41, 0x0C, 0, 0)),
      ])
    #expect(loss.message == "10 P0133 (stored), P0171 (stored), P0300 (stored), P0420 (stored), freeze frame of P0133; 18 no code")
    #expect(loss.objection == nil && loss.motion.isKnown)
    let clearing = try Self.taken(
      CodeClearing(loss.controllers, Motion(), mustAnswer: false),
      [none, none, Vector.reply(frame(0x81, 0xF1, 0x10, 0x44), frame(0x83, 0xF1, 0x18, 0x7F, 0x04, 0x22)), none, none, none])
    #expect(clearing.report.rows.map { $0.prefix(3).joined(separator: " ") } == ["10 clearing cleared", "18 clearing refused"])
    #expect(clearing.report.text?.hasSuffix("no trouble codes remain") == true)
  }

  @Test func `a silent or busy ECU is not reported without codes after clearing`() throws {
    let none = Vector.reply("NO DATA")
    let cleared = [none, none, Vector.reply("7E80144")]
    let silent = try Self.taken(CodeClearing([0x7E8], Motion(), mustAnswer: true), cleared + [none, none, none])
    #expect(silent.report.text?.hasSuffix("cannot read which codes remain; read them again") == true)
    let busy = try Self.taken(
      CodeClearing([0x7E8], Motion(), mustAnswer: true), cleared + ["7E8037F0321", "7E8024700", "7E8024A00"].map { Vector.reply($0) })
    #expect(busy.report.text?.contains("7E8 does not report its stored codes: busy") == true)
    #expect(busy.report.text?.contains("no trouble code") == false)
  }

  @Test(arguments: ["22", "10", "21", "78", "7F"]) func `an ECU that rejects the request is not reported without codes`(_ code: String)
    throws
  {
    let replies = ["7E8037F03\(code)", "7E8024700", "7E8024A00"].map { Vector.reply($0) }
    let codes = try Self.taken(CodeList(mustAnswer: true), replies)
    #expect(codes.report.text?.contains("7E8 does not report its stored codes") == true)
    #expect(try Self.taken(CodeLoss(isConfirmed: true), replies).objection != nil)
  }

  @Test(arguments: ["11", "12", "31"]) func `an ECU without the service has no such codes`(_ code: String) throws {
    let codes = try Self.taken(CodeList(mustAnswer: true), ["7E8037F03\(code)", "7E8024700", "7E8024A00"].map { Vector.reply($0) })
    #expect(codes.report.text == "no trouble codes: none stored, pending or permanent")
  }

  @Test func `without headers a pending ECU is not taken for the one that responded`() throws {
    let codes = try Self.taken(
      CodeList(mustAnswer: true), [Vector.reply("43010133", "7F0378"), Vector.reply("4700"), Vector.reply("4A00")])
    #expect(codes.doubts.count == 1 && codes.entries.count == 1)
    let same = try Self.taken(CodeList(mustAnswer: true), [Vector.reply("7F0378", "43010133"), Vector.reply("4700"), Vector.reply("4A00")])
    #expect(same.doubts.isEmpty && same.entries.count == 1)
  }

  @Test func `codes are not cleared while polled values show motion`() throws {
    let rig = try VehicleRig(
      VehiclePollingTests.car([
        "0100": [(0x7E8, "410008180000")], "010C0D": [(0x7E8, "410C1AF80D32")], "03": [(0x7E8, "43010133")], "07": [(0x7E8, "4700")],
        "0A": [(0x7E8, "4A00")], "04": [(0x7E8, "44")],
      ]))
    rig.run(for: 20 * .second)
    #expect(rig.number("speed") == 50)
    guard case .failure(.refused(code: .moving, let words))? = rig.act("dtc-clear", ["confirm": .bool(true)], for: 20 * .second) else {
      Issue.record("it was not refused")
      return
    }
    #expect(words.contains("road speed 50 km/h") && !rig.asked.contains { $0.command == "04" })
  }

  @Test func `it works on 29-bit CAN and without headers`() throws {
    let none = Vector.reply("NO DATA")
    let quiet = [none, none, none, none, none, none]
    let long = try Self.taken(
      CodeLoss(isConfirmed: true), [Vector.reply("18DAF1100443010133000000", "18DAF118024300")] + quiet)
    #expect(long.message == "18DAF110 P0133 (stored); 18DAF118 no code" && long.objection == nil)
    let cleared = try Self.taken(
      CodeClearing(long.controllers, Motion(), mustAnswer: true),
      [none, none, Vector.reply("18DAF1180144", "18DAF110037F0422")] + quiet.prefix(3))
    #expect(cleared.message.hasPrefix("18DAF110 refused (conditions not correct") && cleared.message.hasSuffix("; 18DAF118 cleared"))
    let nameless = try Self.taken(CodeLoss(isConfirmed: true), [Vector.reply("43010133", "430104 20")] + quiet)
    #expect(nameless.message == "P0133 (stored), P0420 (stored)")
    let both = try Self.taken(
      CodeClearing(nameless.controllers, Motion(), mustAnswer: true), [none, none, Vector.reply("44", "7F0422")] + quiet.prefix(3))
    #expect(both.hasCleared && both.report.rows.map { $0[2] } == ["cleared", "refused"])
  }

  // MARK: A whole car

  @Test func `codes of a petrol car with the engine off are cleared`() throws {
    let rig = try VehicleRig(PetrolCar(.can11, Ignition([Ignition.Turn(.on, at: 0)])))
    rig.run(for: 10 * .second)
    #expect(rig.text("mil") == "on" && rig.number("dtc-count") == 2)
    let report = try #require(rig.act("dtc-clear", ["confirm": .bool(true)], for: 20 * .second)).get()
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
    #expect(try #require(rig.act("dtc")).get().rows.map { $0[1] } == ["P0420"])
  }

  @Test func `codes of one with a running engine are not`() throws {
    let rig = try VehicleRig(PetrolCar(.can11))
    rig.run(for: 10 * .second)
    guard case .failure(.refused(code: .moving, _))? = rig.act("dtc-clear", ["confirm": .bool(true)], for: 20 * .second) else {
      Issue.record("cleared"); return
    }
    #expect(rig.count("04", last: 60 * .second) == 0 && rig.disk["cleared-codes"] == nil)
  }
}
