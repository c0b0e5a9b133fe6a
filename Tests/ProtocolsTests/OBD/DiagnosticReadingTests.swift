// Freeze frames, monitors with test results, and trouble codes over UDS, against whole simulated cars: only data that was read is reported,
// ECUs without support are listed, and polling continues.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct DiagnosticReadingTests {
  private static func rig(_ car: any Car, chip: ELM327Adapter.Personality = .elm327) throws -> VehicleRig {
    var rig = try VehicleRig(car, chip: chip)
    rig.run(for: 10 * .second)
    return rig
  }

  private static func petrol(_ bus: DiagnosticBus = .can11) throws -> VehicleRig {
    try rig(PetrolCar(bus, PauseConditionsTests.turned((.on, 0))))
  }

  /// Polling continues as before.
  private static func polls(_ rig: inout VehicleRig) -> Bool {
    let before = rig.published["rpm"] ?? 0
    rig.run(for: 5 * .second)
    return rig.status == "polling" && rig.fault == nil && (rig.published["rpm"] ?? 0) > before
  }

  // MARK: Freeze frames

  @Test(arguments: [DiagnosticBus.can11, .can29, .kwp, .iso9141]) func `a freeze frame is read completely`(_ bus: DiagnosticBus) throws {
    var rig = try Self.petrol(bus)
    let report = try rig.report("freeze-frames", for: 120 * .second)
    #expect(report.columns == ["ecu", "frame", "code", "name", "value", "unit"] && report.text == nil, "\(report)")
    let ecu = [DiagnosticBus.can11: "7E8", .can29: "18DAF110"][bus] ?? "10"
    #expect(report.rows.allSatisfy { $0.prefix(3) == [ecu, "0", "P0133"] })
    // At 80 km/h, whatever the car does now.
    let values = Dictionary(uniqueKeysWithValues: report.rows.map { ($0[3], "\($0[4]) \($0[5])") })
    #expect(values["speed"] == "80 km/h" && values["coolant-temperature"]?.hasSuffix(" °C") == true && values["run-time"] == "70 s")
    #expect(values["rpm"] == "2720 rpm" && values["fuel-system-1"] == "closed-loop " && values.count == 18, "\(values)")
    // On CAN three PIDs per request: the codes of frames 0 and 1, three bitmaps, seven groups.
    if bus == .can11 { #expect(rig.sentCommands.count { $0.command.hasPrefix("02") } <= 12) }
    let isPolled = Self.polls(&rig)
    #expect(isPolled)
  }

  @Test func `an ECU that answers one PID of several is queried for each`() throws {
    struct OneByOne: Car {
      var car = PetrolCar(.can11, PauseConditionsTests.turned((.on, 0)))
      let answersFirst: Bool
      var bus: DiagnosticBus { car.bus }
      var padding: UInt8? { car.padding }
      var ignition: Ignition { car.ignition }
      func supplyMillivolts(at now: Instant) -> Int { car.supplyMillivolts(at: now) }
      mutating func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
        guard request.first == 0x02, request.count > 3 else { return car.replies(to: request, at: address, now) }
        return answersFirst ? car.replies(to: Array(request.prefix(3)), at: address, now) : []
      }
    }
    var petrol = try Self.petrol()
    let whole = try petrol.report("freeze-frames", for: 60 * .second)
    for answersFirst in [true, false] {
      var rig = try Self.rig(OneByOne(answersFirst: answersFirst))
      let report = try rig.report("freeze-frames", for: 60 * .second)
      #expect(report.rows.map { $0.joined() }.sorted() == whole.rows.map { $0.joined() }.sorted() && report.text == nil)
    }
  }

  @Test func `several frames of several ECUs are distinguished`() throws {
    var rig = try Self.rig(
      VehiclePollingTests.car([
        "0100": [(0x7E8, "410000180000"), (0x7E9, "410000080000")], "010C": [(0x7E8, "410C0D74")], "010D": [(0x7E9, "410D32")],
        "020200": [(0x7E8, "4202000133"), (0x7E9, "4202000715")], "020201": [(0x7E8, "4202010420"), (0x7E9, "4202010000")],
        "020000": [(0x7E8, "42000000180000"), (0x7E9, "42000000080000")], "020001": [(0x7E8, "42000100080000")],
        "020C000D00": [(0x7E8, "420C000D740D0032")], "020D00": [(0x7E9, "420D0033")], "020D01": [(0x7E8, "420D0134")],
      ]))
    let report = try rig.report("freeze-frames", for: 30 * .second)
    #expect(
      report.rows.map { $0.prefix(5).joined(separator: " ") } == [
        "7E8 0 P0133 rpm 861", "7E8 0 P0133 speed 50", "7E8 1 P0420 speed 52", "7E9 0 P0715 speed 51",
      ], "\(report.rows)")
  }

  @Test func `a missing freeze frame is reported`() throws {
    var rig = try Self.petrol()
    _ = rig.act("dtc-clear", ["confirm": .bool(true)], for: 20 * .second)
    let cleared = try rig.report("freeze-frames", for: 20 * .second)
    #expect(cleared.rows.isEmpty && cleared.text == "no freeze frame is stored")
    var car = try Self.rig(ElectricCar(.eGMP))
    let electric = try car.report("freeze-frames", for: 20 * .second)
    #expect(electric.rows.isEmpty && electric.text?.contains("no ECU responds to service 02") == true)
  }

  // MARK: Monitors

  @Test(arguments: [DiagnosticBus.can11, .can29]) func `monitors and test results are read by ECU`(_ bus: DiagnosticBus) throws {
    var rig = try Self.petrol(bus)
    let report = try rig.report("monitors", for: 60 * .second)
    let (first, second) = bus == .can11 ? ("7E8", "7E9") : ("18DAF110", "18DAF111")
    #expect(report.text == "test results (service 06) are not supported by \(second)")
    let rows = report.rows.map { $0.joined(separator: "|") }
    #expect(
      rows.first == "\(first)|lamp|malfunction indicator lamp (MIL)||on||||" && rows.contains("\(first)|codes|stored trouble codes|||2|||"))
    #expect(rows.contains("\(first)|readiness|catalyst|since clearing|complete||||") && rows.count { $0.contains("|readiness|") } == 8)
    #expect(rows.contains("\(first)|test|oxygen sensor bank 1 sensor 1|rich to lean threshold|passed|449.692|0|7995.27|mV"), "\(rows)")
    #expect(rows.contains("\(first)|test|oxygen sensor bank 1 sensor 1|rich to lean switch time|failed|125|0|100|ms"))
    #expect(rows.contains { $0.hasPrefix("\(first)|test|catalyst bank 1|test 80|failed") })
    #expect(rows.contains("\(first)|test|misfire cylinder 1|misfire counts, last driving cycle|passed|0|0|65535|"))
    #expect(rows.contains("\(second)|lamp|malfunction indicator lamp (MIL)||off||||"))
    let isPolled = Self.polls(&rig)
    #expect(isPolled)
  }

  @Test func `readiness of this driving cycle is listed beside that since clearing, and a test that has not run has not passed`() throws {
    var rig = try Self.rig(
      VehiclePollingTests.car([
        "0100": [(0x7E8, "410080180000")], "010C0D": [(0x7E8, "410C0D740D32")], "0101": [(0x7E8, "410100070100")],
        "0141": [(0x7E8, "414100070101")], "0600": [(0x7E8, "460080000000")], "0601": [(0x7E8, "4601810A000000000000")],
      ]))
    let report = try rig.report("monitors", for: 30 * .second)
    let rows = report.rows.map { $0.joined(separator: "|") }
    #expect(
      rows.contains("7E8|readiness|catalyst|since clearing|complete||||")
        && rows.contains("7E8|readiness|catalyst|this driving cycle|incomplete||||"))
    #expect(rows.last == "7E8|test|oxygen sensor bank 1 sensor 1|test 81|not run|0|0|0|mV" && report.text == nil, "\(rows)")
  }

  @Test func `a raw query describes a test that has not run as such`() {
    let text = ResponseDescription.of([0x46, 0x01, 0x81, 0x0A, 0, 0, 0, 0, 0, 0])
    #expect(text.hasSuffix("(0 to 0), not run"), "\(text)")
  }

  @Test func `missing monitors are reported`() throws {
    var petrol = try Self.petrol(.kwp)
    let before = try petrol.report("monitors", for: 60 * .second)
    #expect(before.text == "test results (service 06) are read on CAN only" && !before.rows.isEmpty)
    var electric = try Self.rig(ElectricCar(.kona))
    guard case .failure(.refused(code: .noAnswer, let message))? = electric.act("monitors", for: 30 * .second)
    else {
      Issue.record("a car without service 01 reported monitors")
      return
    }
    #expect(message.contains("no SAE J1979 (OBD-II) monitors") && !message.contains("ignition"))
    #expect(try Self.refusal(of: MonitorQuery(isCAN: true)).contains("the ignition is off, or"))
  }

  /// The error of a query that no ECU responds to.
  private static func refusal(of query: some MultiECUQuery) throws -> String {
    var query = query
    for index in query.requests.indices { try query.process([], index) }
    guard case .refused(_, let message)? = query.abortError else { return "" }
    return message
  }

  @Test func `an electric car that responds is not asked for its ignition`() throws {
    var electric = try Self.rig(ElectricCar(.kona))
    guard case .failure(.refused(code: .noAnswer, let message))? = electric.act("dtc", for: 30 * .second) else {
      Issue.record("a car without service 03 reported codes")
      return
    }
    #expect(message.hasPrefix("the vehicle reports no trouble codes of SAE J1979") && message.contains("vehiclectl dtc"))
    // Whether a poll is in flight at the moment does not matter.
    var other = try Self.rig(ElectricCar(.kona))
    for _ in 0..<20 {
      other.run(for: 7 * .millisecond)
      guard case .failure(.refused(_, let again))? = other.act("dtc", for: 30 * .second) else { Issue.record("no refusal"); continue }
      #expect(again == message)
    }
    var silent = TroubleCodeQuery(requiresResponse: true)
    for index in silent.requests.indices { silent.process([], index) }
    #expect(silent.abortError == .refused(code: .noAnswer, "no ECU responds; switch the ignition on"))
    let ecus = [Target(CANIdentifier(0x7E0))]
    #expect(try Self.refusal(of: UDSTroubleCodeQuery(ecus, known: [])).hasSuffix("switch the ignition on"))
    #expect(try Self.refusal(of: UDSTroubleCodeQuery(ecus, known: [], isResponding: true)).hasSuffix("give the identifiers of other ECUs"))
    guard case .failure(.refused(code: .noAnswer, let refusal))? = electric.act("dtc-clear", for: 30 * .second) else {
      Issue.record("a car without service 03 has codes to clear")
      return
    }
    #expect(refusal.hasPrefix("nothing to clear: ") && !refusal.contains("ignition"), "\(refusal)")
    for isConfirmed in [false, true] {
      for isResponding in [false, true] {
        var loss = ClearingPreview(isConfirmed: isConfirmed, isResponding: isResponding)
        for place in loss.requests.indices { try loss.process([], place) }
        let error = isResponding ? refusal : "no ECU responds; switch the ignition on"
        #expect(loss.abortError == .refused(code: .noAnswer, error))
      }
    }
  }

  // MARK: ECUs beyond emissions

  @Test func `an ECU beyond emissions reports codes with failure types, and others are listed`() throws {
    var rig = try Self.petrol()
    let report = try rig.report("ecu-codes", for: 30 * .second)
    #expect(report.columns == ["ecu", "code", "state", "meaning"])
    #expect(report.rows.map { $0.prefix(3).joined(separator: " ") } == ["7EC P1899-98 stored, pending", "7EC U0121-87 pending"])
    #expect(report.rows.allSatisfy { $0[3].hasSuffix($0[1].hasSuffix("87") ? "missing message" : "component over temperature") })
    #expect(report.text == "trouble codes over UDS (service 19) are not supported by 7E8, 7E9")
    // dtc itself uses SAE J1979, as clearing does.
    #expect(try rig.report("dtc").rows.allSatisfy { $0[0] != "7EC" })
    let isPolled = Self.polls(&rig)
    #expect(isPolled)
  }

  @Test func `an electric car's known ECUs are queried, and those given`() throws {
    var rig = try VehicleRig(ElectricCar(.eGMP))
    rig.run(for: 60 * .second)
    let report = try rig.report("ecu-codes", ["ecus": .string("7B0, 760")], for: 60 * .second)
    #expect(report.rows.map { $0.prefix(3).joined(separator: " ") } == ["7D9 C1000-64 stored"], "\(report)")
    #expect(report.rows.first?[3].hasSuffix("signal implausible") == true)
    #expect(report.text?.contains("no response to UDS from 768, 7B8") == true && report.text?.contains("not supported by 7E8") == true)
    #expect(
      Set(rig.sentCommands.filter { $0.command == "ATSH7B0" || $0.command == "ATSH7D1" || $0.command == "ATSH7E7" }.map(\.command)).count
        == 3)
    guard case .failure(.invalid(argument: "ecus", _))? = rig.act("ecu-codes", ["ecus": .string("7B0 X")]) else {
      Issue.record("X is a CAN identifier")
      return
    }
    let isPolled = Self.polls(&rig)
    #expect(isPolled)
  }

  @Test func `missing CAN, response or ECU is the reason`() throws {
    func refusal(_ rig: VehicleRig) -> String? {
      var rig = rig
      return if case .failure(.refused(let code, _))? = rig.act("ecu-codes", for: 30 * .second) { code.rawValue } else { nil }
    }
    #expect(refusal(try Self.petrol(.kwp)) == "no-can")
    var asleep = try VehicleRig(PetrolCar(.can11, PauseConditionsTests.turned((.run, 0), (.off, 10))))
    asleep.run(for: 60 * .second)
    #expect(refusal(asleep) == "no-answer")
  }

  @Test func `a long query reports progress and ends with its client`() throws {
    var rig = try Self.petrol()
    _ = rig.act("monitors", for: 60 * .second)
    #expect(rig.progress[1]?.count ?? 0 >= 3 && rig.progress[1]?.first?.text == "1 of 3 requests")
  }

  @Test func `UDS codes are read from complete messages only`() {
    #expect(UDSTroubleCode.read([0x59, 0x02, 0xFF]) == .codes([]))
    #expect(UDSTroubleCode.read([0x59, 0x02, 0xFF, 0, 0, 0, 0x09]) == .codes([]))
    // Not tested yet is not a fault.
    #expect(UDSTroubleCode.read([0x59, 0x02, 0xFF, 0xC1, 0x00, 0x87, 0x50]) == .codes([]))
    guard case .codes(let codes) = UDSTroubleCode.read([0x59, 0x02, 0xFF, 0xC1, 0x00, 0x87, 0x89, 0x01, 0x33, 0x00, 0x04]) else {
      Issue.record("two codes are none")
      return
    }
    #expect(codes.map(\.text) == ["U0100-87", "P0133"])
    #expect(codes.map(\.states) == [["stored", "active", "warning lamp"], ["pending"]])
    for broken: [UInt8] in [[], [0x59], [0x59, 0x02], [0x59, 0x03, 0xFF], [0x59, 0x02, 0xFF, 0xC1], [0x7F, 0x19, 0x11]] {
      guard case .malformed = UDSTroubleCode.read(broken) else { Issue.record("\(broken)"); continue }
    }
  }

  @Test func `no responses trap a query or make it endless`() {
    var random = SeededRandom(seed: 19)
    let ecus = (UInt32(0x7E0)...0x7E7).map { Target(CANIdentifier($0)) }
    for round in 0..<600 {
      let queries: [any MultiECUQuery] = [
        FreezeFrameQuery(isCAN: round % 2 == 0), MonitorQuery(isCAN: true), UDSTroubleCodeQuery(ecus, known: []),
      ]
      var query = queries[round % 3]
      var index = 0
      while index < query.requests.count, index < 5000, query.abortError == nil {
        let request = query.requests[index]
        let answers = (0..<Int.random(in: 0...3, using: &random)).map { number -> ECUAnswer in
          let head = Bool.random(using: &random) ? [request[0] + 0x40] + request.dropFirst() : [0x7F, request[0]]
          let data = (0..<Int.random(in: 0...20, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
          return ECUAnswer(source: number == 2 ? nil : 0x7E8 + UInt32(number), bytes: head + data)
        }
        do throws(Unreadable) { try query.process(answers, index) } catch { _ = query.handleUnusableReply(to: index, error.reason) }
        index += 1
      }
      #expect(index < 5000 && query.report.rows.allSatisfy { $0.count == query.report.columns.count })
    }
  }
}
