// Cars with another protocol than 11-bit CAN, found by protocol detection: requests, stored state, and no wrong header or needless search.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct OtherBusTests {
  static let names = [
    "7": "ISO 15765-4 (CAN 29 bit, 500 kbit/s)", "5": "ISO 14230-4 (KWP, fast)", "3": "ISO 9141-2",
  ]

  @Test(arguments: [DiagnosticBus.can29, .kwp, .iso9141]) func `a car on any bus is found, polled and stored`(_ bus: DiagnosticBus)
    throws
  {
    var rig = try VehicleRig(PetrolCar(bus))
    rig.run(for: 60 * .second)
    #expect(rig.status == "polling" && rig.fault == nil)
    #expect(rig.text("protocol") == Self.names[String(bus.rawValue)])
    #expect(rig.number("rpm") != nil && rig.number("speed") != nil && rig.number("coolant-temperature") != nil)
    #expect(rig.number("bad-replies") == 0 && rig.number("timeouts") == 0)
    #expect(rig.text("vin") == "WVWZZZ1KZAW000042" && rig.text("calibration-ids") == "VSIM-ENG-16T-042")
    #expect((rig.text("calibration-ids-2") == "VSIM-TCM-7DQ-042") == bus.isCAN)
    #expect(rig.sentCommands.count { $0.command == "ATDPN" } == 1)
    var again = try VehicleRig(PetrolCar(bus), disk: rig.disk)
    again.run(for: 20 * .second)
    #expect(again.status == "polling" && again.number("rpm") != nil && again.machine.schema == rig.machine.schema)
    #expect(!again.sentCommands.contains { $0.command == "0120" || $0.command.hasPrefix("22") || $0.command.hasSuffix("P6") })
  }

  @Test func `a 29-bit car is polled as fast as any other, one ECU at a time`() throws {
    var rig = try VehicleRig(PetrolCar(.can29))
    rig.run(for: 60 * .second)
    #expect(abs(rig.count("010C0D", last: 10 * .second) - 200) <= 1)
    #expect((rig.number("lateness-p99") ?? 99) < 5)
    let commands = rig.sentCommands.filter { $0.at > 30 * .second }.map(\.command)
    #expect(rig.sentCommands.contains { $0.command == "ATCRA18DAF110" })
    #expect(!commands.contains { $0.hasPrefix("ATCRA7") || $0.hasPrefix("ATSP") || $0.hasPrefix("ATSH7") })
  }

  @Test(arguments: [DiagnosticBus.kwp, .iso9141]) func `on a K-line rpm and speed alternate, and the rest is polled as well`(
    _ bus: DiagnosticBus
  ) throws {
    var rig = try VehicleRig(PetrolCar(bus))
    rig.run(for: 120 * .second)
    let counts = (rpm: rig.count("010C", last: 30 * .second), speed: rig.count("010D", last: 30 * .second))
    #expect(
      counts.rpm > 60 && counts.speed > 60 && abs(counts.rpm - counts.speed) < counts.rpm / 4,
      "\(counts) \(rig.sentCommands.suffix(40).map { "\($0.at / 1_000_000) \($0.command)" })")
    let others = Set(rig.sentCommands.filter { $0.at > 60 * .second && $0.command.hasPrefix("01") }.map { String($0.command.prefix(4)) })
    #expect(others.count > 10)
    // No header is set where the adapter addresses by itself.
    #expect(!rig.sentCommands.drop { $0.command != "ATDPN" }.contains { $0.command.hasPrefix("ATSH") || $0.command.hasPrefix("ATCRA") })
  }

  @Test(arguments: [DiagnosticBus.can29, .kwp, .iso9141]) func `trouble codes and queries go to all ECUs of any protocol`(
    _ bus: DiagnosticBus
  ) throws {
    var rig = try VehicleRig(PetrolCar(bus))
    rig.run(for: 30 * .second)
    let codes = try rig.report("dtc")
    var reference = try VehicleRig(PetrolCar(.can11))
    reference.run(for: 30 * .second)
    let expected = try reference.report("dtc")
    #expect(
      !codes.rows.isEmpty && codes.rows.map { $0[1] } == expected.rows.map { $0[1] }
        && codes.rows.map { $0[3] } == expected.rows.map { $0[3] })
    let report = try rig.report("query", ["request": .string("010C")])
    #expect(report.rows.count == 2 && report.rows.allSatisfy { $0[2].hasPrefix("rpm ") })
    rig.run(for: 5 * .second)
    #expect(rig.status == "polling" && rig.fault == nil)
  }

  @Test func `a header before CAN is an error`() throws {
    let request = try SignalRequest("220101", allowRaw: false)
    let own = CustomSignal("own", request, header: CANIdentifier("7E4"), try Expression("A"), help: "own")
    var rig = try VehicleRig(PetrolCar(.kwp), signals: [own])
    rig.run(for: 90 * .second)
    let result = rig.act("query", ["request": .string("22F190"), "header": .string("7E0")])
    #expect(
      result == .failure(.refused(code: .noCAN, "a header is a CAN identifier, and the vehicle has no CAN bus; leave it out")))
    #expect(rig.absence("own") == "a header is a CAN identifier, and the vehicle has no CAN bus")
    #expect(rig.status == "polling" && rig.fault == nil)
  }

  @Test func `an adapter that cannot report its protocol is used`() throws {
    for bus in [DiagnosticBus.can29, .kwp] {
      var rig = try VehicleRig(PetrolCar(bus), unknown: ["ATDPN"])
      rig.run(for: 60 * .second)
      #expect(rig.status == "polling" && rig.number("rpm") != nil && rig.number("speed") != nil)
    }
  }

  @Test func `a sleeping car does not cause repeated protocol detection`() throws {
    var known = try VehicleRig(PetrolCar(.can11))
    known.run(for: 10 * .second)
    var rig = try VehicleRig(PetrolCar(.can11, Ignition([Ignition.Turn(.off, at: 0)])), disk: known.disk)
    rig.run(for: 600 * .second)
    #expect(rig.status == "car-asleep" && rig.sentCommands.count { $0.command == "ATSP0" } <= 4)
  }

  @Test func `another car's stored protocol does not hide this one`() throws {
    for stored in ["bus 7\n18DAF110 0C0D\n", "bus 3\n10 0C0D\n", "18DAF110 0C", "bus 0\n7E8 0C", "bus X\n7E8 0C", "bus 7\n"] {
      var rig = try VehicleRig(PetrolCar(.can11), disk: ["ecus": Array(stored.utf8)])
      rig.run(for: 60 * .second)
      #expect(
        rig.status == "polling" && rig.number("coolant-temperature") != nil,
        "\(stored) \(rig.status) \(rig.sentCommands.suffix(60).map { "\($0.at / 1_000_000) \($0.command)" })")
    }
  }

  /// Volkswagen's MEB: 17FC007B responds as 17FE007B. Automatic flow control would go to 17FE7B00.
  @Test func `a long response from a manufacturer's own address is read to its end`() throws {
    func reply(_ id: UInt32, _ bytes: UInt8...) -> Reply { Reply(id: id, payload: bytes) }
    let car = ScriptedCar(
      .can29,
      responses: [
        [0x01, 0x00]: [reply(0x18DA_F110, 0x41, 0x00, 0x00, 0x18, 0x00, 0x00)],
        [0x01, 0x0C, 0x0D]: [reply(0x18DA_F110, 0x41, 0x0C, 0x0D, 0x74, 0x0D, 0x32)],
        [0x22, 0x1E, 0x3B]: [reply(0x17FE_007B, 0x62, 0x1E, 0x3B, 1, 2, 3, 4, 5, 6, 7, 8, 9, 42)],
        [0x22, 0x02, 0x8C]: [reply(0x18DA_F111, 0x62, 0x02, 0x8C, 9, 8, 7, 6, 5, 4, 3, 2, 1, 43)],
      ])
    let own = [("far", "221E3B", "17FC007B", "17FE007B"), ("near", "22028C", "18DA11F1", "18DAF111")]
    let signals = try own.map { name, request, header, reply in
      CustomSignal(
        name, try SignalRequest(request, allowRaw: false), header: CANIdentifier(header), reply: CANIdentifier(reply), try Expression("J"),
        help: "own")
    }
    var rig = try VehicleRig(car, signals: signals)
    rig.run(for: 20 * .second)
    #expect(rig.number("far") == 42 && rig.number("near") == 43 && rig.fault == nil, "\(rig.fault ?? "")")
    let commands = rig.sentCommands.map(\.command)
    let first = try #require(commands.firstIndex(of: "ATFCSH17FC007B"))
    #expect(commands[first...].starts(with: ["ATFCSH17FC007B", "ATFCSD300000", "ATFCSM1"]))
    #expect(commands.contains("ATFCSM0"), "the others are reached by the adapter's own")
  }
}
