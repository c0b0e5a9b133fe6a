// Whole cars behind a CAN adapter in virtual time: everything that works over an ELM327 works over frames, and faults never become values.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct FramesSessionTests {
  private static func turned(_ turns: (Ignition.Position, Int64)...) -> Ignition {
    Ignition(turns.map { Ignition.Turn($0.0, at: $0.1 * .second) })
  }

  // MARK: Whole cars

  @Test func `an electric car is detected and polled at the device's rate, with all records beside it`() throws {
    var rig = try FramesRig(ElectricCar(.eGMP))
    rig.run(for: 20 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.text("vehicle") == "electric Hyundai or Kia (e-gmp)")
    #expect(rig.text("adapter") == "slcan V1013" && rig.text("protocol") == "ISO 15765-4 (CAN 11 bit, 500 kbit/s)")
    #expect(rig.number("state-of-charge-display") != nil && rig.number("remaining-energy") != nil && rig.number("odometer") != nil)
    #expect(rig.number("speed") != nil && rig.number("tyre-pressure-front-left") != nil && rig.number("outdoor-temperature") == 11.5)
    #expect(rig.absence("adapter-voltage") == "a CAN adapter does not measure it")
    let (missed, polls) = (rig.number("missed"), rig.sent("t7E480322010100000000").count)
    rig.run(for: 30 * .second)
    #expect(abs(rig.sent("t7E480322010100000000").count - polls - 600) <= 1 && rig.number("missed") == missed)
    #expect((rig.number("lateness-p99") ?? 99) < 1 && rig.number("bad-replies") == 0, "\(rig.number("lateness-p99") ?? -1) ms")
  }

  @Test func `the channel is opened with the configured bit rate, and without one the adapter keeps its own`() throws {
    var rig = try FramesRig()
    rig.run(for: 2 * .second)
    #expect(rig.sentLines.prefix(6).map(\.line) == ["C", "C", "V", "S6", "O", "t7E480322010100000000"])
    var other = try FramesRig(bitRate: nil)
    other.run(for: 2 * .second)
    #expect(other.status == "polling" && other.sent("S").isEmpty)
  }

  @Test func `the protocol has the bit rate of the interface`() throws {
    for (bus, bits) in [("6\n7E8", 11), ("7\n18DAF110", 29)] {
      var rig = try FramesRig(bitRate: 250_000, disk: ["ecus": Array("bus \(bus) 0C0D\n".utf8)])
      rig.run(for: 10 * .millisecond)
      #expect(rig.text("protocol") == "ISO 15765-4 (CAN \(bits) bit, 250 kbit/s)")
    }
    #expect(OBDProtocol.can.name() == "ISO 15765-4 (CAN 11 bit, 500 kbit/s)" && OBDProtocol.automatic.name(at: 250_000) == nil)
  }

  /// A standing car, whose 12 V battery has this voltage in 0.1 V at request 220042.
  private static func standingCar(decivolts: UInt8) -> ScriptedCar {
    func reply(_ bytes: UInt8...) -> [Reply] { [Reply(id: 0x7E8, payload: bytes)] }
    return ScriptedCar(responses: [
      [0x01, 0x00]: reply(0x41, 0x00, 0x00, 0x18, 0x00, 0x00), [0x01, 0x0C, 0x0D]: reply(0x41, 0x0C, 0, 0, 0x0D, 0),
      [0x22, 0x00, 0x42]: reply(0x62, 0x00, 0x42, decivolts),
    ])
  }

  @Test(arguments: [112, 124] as [UInt8]) func `a configured property is the voltage that protects the 12 V battery`(_ decivolts: UInt8)
    throws
  {
    let signal = CustomSignal("twelve-volt", try SignalRequest("220042", allowRaw: false), try Expression("A/10"), help: "own")
    for property in ["twelve-volt", nil] {
      var rig = try FramesRig(
        Self.standingCar(decivolts: decivolts), signals: [signal], pauseConditions: PauseConditions(idleAfter: 0), voltageProperty: property
      )
      rig.run(for: 60 * .second)
      let isLow = property != nil && decivolts == 112
      #expect(rig.status == (isLow ? "car-asleep" : "polling") && rig.fault?.contains("the 12 V battery is low") ?? false == isLow)
      let before = rig.sentLinesCount
      rig.run(for: 120 * .second)
      #expect(rig.sentLinesCount - before < 20 || !isLow, "one probe in 30 s: \(rig.sentLinesCount - before)")
    }
  }

  /// A standing car whose 12 V battery is charged from some time on.
  struct ChargedCar: Car {
    let time: Instant
    var low = FramesSessionTests.standingCar(decivolts: 112)
    var charged = FramesSessionTests.standingCar(decivolts: 138)
    var bus: DiagnosticBus { low.bus }
    var padding: UInt8? { low.padding }
    var ignition: Ignition { low.ignition }
    func supplyMillivolts(at now: Instant) -> Int { low.supplyMillivolts(at: now) }
    mutating func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
      now < time ? low.replies(to: request, at: address, now) : charged.replies(to: request, at: address, now)
    }
  }

  @Test func `the pause for a low battery ends when its property reports that it is charged`() throws {
    let signal = CustomSignal("twelve-volt", try SignalRequest("220042", allowRaw: false), try Expression("A/10"), help: "own")
    var rig = try FramesRig(
      ChargedCar(time: 300 * .second), signals: [signal], pauseConditions: PauseConditions(idleAfter: 0), voltageProperty: "twelve-volt")
    rig.run(for: 290 * .second)
    #expect(rig.status == "car-asleep" && rig.fault?.contains("the 12 V battery is low") == true)
    rig.run(for: 45 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.number("twelve-volt") == 13.8)
  }

  @Test func `a car is polled when it is driven after a long time, although the fast request shows no sign of use`() throws {
    let leaf = VehicleChoice.profile(try #require(VehicleProfile(name: "nissan-leaf")))
    var rig = try FramesRig(
      ManufacturerCar(.leaf, Self.turned((.run, 0), (.off, 60), (.run, 600))), vehicle: leaf,
      pauseConditions: PauseConditions(idleAfter: 120 * .second))
    rig.run(for: 590 * .second)
    #expect(rig.status.hasPrefix("car-") && rig.absence("speed") != nil, "\(rig.status)")
    rig.run(for: 75 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && (rig.number("speed") ?? 0) > 0, "\(rig.status) \(rig.fault ?? "")")
  }

  @Test func `a property that this vehicle does not have is reported`() throws {
    var rig = try FramesRig(PetrolCar(.can11), voltageProperty: "nonsense")
    rig.run(for: 10 * .second)
    #expect(rig.notes.contains { $0.contains("no property nonsense (voltage-property)") }, "\(rig.notes)")
  }

  @Test func `the link selects the adapter, and the bit rate must be one of slcan's`() throws {
    func machine(_ link: String, _ options: [String: Value] = [:]) throws -> any Machine {
      var setup = Setup(options: options)
      setup.links[.main] = link
      return try Kind.obd.make(setup)
    }
    #expect(try machine("slcan:tcp:h:1", ["bit-rate": .int(500_000)]) is VehicleMachine<FramesSession>)
    #expect(try machine("tcp:h:1") is OBDMachine && machine("replay:/x") is OBDMachine)
    let wrong = #expect(throws: OptionError.self) { try machine("slcan:tcp:h:1", ["bit-rate": .int(83_300)]) }
    #expect(wrong?.option == "bit-rate" && wrong?.message.contains("use one of 10000, ") == true)
    let misplaced = #expect(throws: OptionError.self) { try machine("tcp:h:1", ["bit-rate": .int(500_000)]) }
    #expect(misplaced?.option == "bit-rate")
  }

  @Test(arguments: [DiagnosticBus.can11, .can29]) func `a petrol car with several ECUs is found, polled and stored`(_ bus: DiagnosticBus)
    throws
  {
    var rig = try FramesRig(PetrolCar(bus))
    rig.run(for: 40 * .second)
    #expect(rig.status == "polling" && rig.fault == nil, "\(rig.fault ?? "")")
    #expect(rig.text("vehicle") == (bus == .can11 ? "standard OBD-II (7E8, 7E9)" : "standard OBD-II (18DAF110, 18DAF111)"))
    #expect(rig.text("protocol") == OtherBusTests.names[String(bus.rawValue)] ?? "ISO 15765-4 (CAN 11 bit, 500 kbit/s)")
    #expect(rig.number("rpm") != nil && rig.number("speed") != nil && rig.number("coolant-temperature") != nil)
    #expect(rig.text("vin") == "WVWZZZ1KZAW000042" && rig.text("calibration-ids-2") == "VSIM-TCM-7DQ-042")
    // On 11-bit CAN, another ECU answers the request for battery data.
    #expect(rig.number("bad-replies") == (bus == .can11 ? 3 : 0))
    var again = try FramesRig(PetrolCar(bus), disk: rig.disk)
    again.run(for: 20 * .second)
    #expect(again.status == "polling" && again.number("rpm") != nil && again.machine.schema == rig.machine.schema)
  }

  @Test(arguments: [CarModel.kona, .ioniq28, .petrolTurbo]) func `the values are those of an ELM327`(_ model: CarModel) throws {
    var (frames, text) = (try FramesRig(model.car()), try VehicleRig(model.car()))
    frames.run(for: 60 * .second)
    text.run(for: 60 * .second)
    let names = Set(frames.machine.schema.properties.map(\.name))
    #expect(names == Set(text.machine.schema.properties.map(\.name)) && frames.text("vehicle") == text.text("vehicle"))
    let isValue = { (content: Reading.Content?) in if case .value? = content { true } else { false } }
    let missing = names.filter { isValue(text.values[$0]) && !isValue(frames.values[$0]) }
    #expect(missing == ["adapter-voltage"], "\(missing)")
  }

  // MARK: Addressing and flow control

  @Test func `flow control goes to the physical address of the sender of a first frame`() throws {
    var rig = try FramesRig(PetrolCar(.can29))
    rig.run(for: 20 * .second)
    #expect(
      rig.sentFrames.contains { $0.line == "T18DA10F183000000000000000" }
        && rig.sentFrames.contains { $0.line == "T18DA11F183000000000000000" })
    #expect(!rig.sentFrames.contains { $0.line.hasPrefix("T18DB33F1830") })
    var electric = try FramesRig(ElectricCar(.eGMP))
    electric.run(for: 20 * .second)
    // The pairs of the manufacturer's ECUs are not those of ISO 15765-4.
    #expect(electric.sentFrames.contains { $0.line == "t7E483000000000000000" } && electric.number("tyre-pressure-front-left") != nil)
  }

  @Test func `the answers of several ECUs are received at once`() throws {
    var rig = try FramesRig(PetrolCar(.can11, Self.turned((.on, 0))))
    rig.run(for: 10 * .second)
    let report = try rig.report("query", ["request": .string("0904")])
    #expect(Set(report.rows.map { $0[0] }) == ["7E8", "7E9"], "\(report.rows)")
  }

  // MARK: Diagnostics

  @Test(arguments: [DiagnosticBus.can11, .can29]) func `trouble codes, freeze frames and monitors are read`(_ bus: DiagnosticBus) throws {
    var rig = try FramesRig(PetrolCar(bus, Self.turned((.on, 0))))
    rig.run(for: 10 * .second)
    var text = try VehicleRig(PetrolCar(bus, Self.turned((.on, 0))))
    text.run(for: 10 * .second)
    for action in ["dtc", "freeze-frames", "monitors", "ecu-codes"] {
      let (report, expected) = (try rig.report(action, for: 30 * .second), try text.report(action, for: 120 * .second))
      #expect(report.rows == expected.rows && report.text == expected.text, "\(action): \(report) \(expected)")
    }
    let before = rig.published["rpm"] ?? 0
    rig.run(for: 5 * .second)
    #expect(rig.status == "polling" && (rig.published["rpm"] ?? 0) > before + 90)
  }

  @Test func `trouble codes are cleared once, after they were stored`() throws {
    var rig = try FramesRig(PetrolCar(.can11, Self.turned((.on, 0))))
    rig.run(for: 10 * .second)
    let report = try rig.report("dtc-clear", ["confirm": .bool(true)], for: 30 * .second)
    #expect(report.rows.contains { $0.contains("cleared") } && rig.sent("t7DF80104").count == 1 && rig.disk["cleared-codes"] != nil)
  }

  @Test func `values are read again after clearing, although responses take longer than the gaps between polls`() throws {
    var rig = try FramesRig(PetrolCar(.can11, Self.turned((.on, 0))), faults: ["nrc-78:3:250"])
    rig.run(for: 30 * .second)
    #expect(rig.text("mil") == "on" && rig.number("dtc-count") ?? 0 > 0)
    _ = try rig.report("dtc-clear", ["confirm": .bool(true)], for: 20 * .second)
    rig.run(for: 20 * .second)
    #expect(rig.text("mil") == "off" && rig.number("dtc-count") == 0)
  }

  @Test func `only read services are sent, and commands to an adapter are rejected`() throws {
    var rig = try FramesRig()
    rig.run(for: 5 * .second)
    #expect(rig.code(rig.run("query", ["request": .string("2EF190")])) == "raw-not-allowed")
    #expect(rig.code(rig.run("query", ["request": .string("ATRV")])) == "not-supported")
    #expect(rig.code(rig.run("tune")) == "not-supported")
    let answer = try rig.report("query", ["request": .string("220101"), "header": .string("7E4")])
    #expect(answer.rows.first?.first == "7EC")
    rig.run(for: 20 * .second)
    // Services, and flow control.
    let kinds = Set(rig.sentFrames.map { $0.line.dropFirst(5).prefix(1) == "3" ? "3" : String($0.line.dropFirst(7).prefix(2)) })
    #expect(kinds.isSubset(of: ["3", "01", "09", "21", "22", "19"]), "\(kinds)")
  }

  // MARK: Faults

  @Test(arguments: ["lost-frame:7", "wrong-sequence:7", "garbage", "nrc-78:10:300", "no-data:9", "babble", "silent"])
  func `polling continues, and no wrong value is published`(_ fault: String) throws {
    var rig = try FramesRig(ElectricCar(.eGMP), faults: [fault])
    rig.run(for: 60 * .second)
    #expect(rig.status == "polling", "\(rig.status) \(rig.fault ?? "")")
    #expect(rig.number("state-of-charge-display").map { (0...100).contains($0) } ?? false && rig.number("odometer") != nil)
    #expect((rig.published["rpm"] ?? 0) > 300)
  }

  @Test func `a response may follow a "response pending" after 4 s`() throws {
    var rig = try FramesRig(ElectricCar(.eGMP), faults: ["nrc-78:200:4000"])
    rig.run(for: 120 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.number("bad-replies") == 0)
    #expect(rig.number("missed").map { $0 > 80 } ?? false)
  }

  @Test func `a gateway that blocks requests to all ECUs does not block an electric car`() throws {
    var rig = try FramesRig(ElectricCar(.eGMP), faults: ["no-broadcasts"])
    rig.run(for: 20 * .second)
    #expect(rig.status == "polling" && rig.number("odometer") != nil)
  }

  @Test(arguments: [DiagnosticBus.can11, .can29]) func `behind such a gateway, all ECUs are found and asked by their own addresses`(
    _ bus: DiagnosticBus
  ) throws {
    let car = PetrolCar(bus, Self.turned((.on, 0)))
    var (rig, other) = (try FramesRig(car, faults: ["no-broadcasts"]), try FramesRig(car))
    rig.run(for: 20 * .second)
    other.run(for: 20 * .second)
    #expect(rig.status == "polling" && rig.number("rpm") != nil, "\(rig.status) \(rig.fault ?? "")")
    #expect(rig.text("vin") != nil && rig.text("vin") == other.text("vin") && rig.text("vehicle") == other.text("vehicle"))
    for action in ["dtc", "freeze-frames", "monitors"] {
      let (report, expected) = (try rig.report(action, for: 30 * .second), try other.report(action, for: 30 * .second))
      #expect(!report.rows.isEmpty && report.rows == expected.rows && report.text == expected.text, "\(action): \(report) \(expected)")
    }
    let clearing = try rig.report("dtc-clear", ["confirm": .bool(true)], for: 30 * .second)
    let expected = try other.report("dtc-clear", ["confirm": .bool(true)], for: 30 * .second)
    #expect(clearing == expected && clearing.rows.count { $0.contains("cleared") } == 2, "\(clearing)")
    let (physical, functional) = bus == .can11 ? ("t7E080104", "t7DF80104") : ("T18DA10F180104", "T18DB33F180104")
    #expect(rig.sent(physical).count == 1 && rig.sent(functional).isEmpty)
  }

  @Test func `trouble codes behind such a gateway are read from a car that was found without functional requests`() throws {
    var rig = try FramesRig(
      VehiclePollingTests.car(["03": [(0x7E8, "43010133")], "07": [(0x7E8, "4700")], "0A": [(0x7E8, "7F0A11")]]),
      vehicle: .eGMP, faults: ["no-broadcasts"])
    rig.run(for: 5 * .second)
    let report = try rig.report("dtc")
    #expect(report.rows.map { $0.prefix(3).joined(separator: " ") } == ["7E8 P0133 stored"])
    #expect(report.text == "no ECU responds to the request for permanent codes")
  }

  @Test func `a bus without nodes is a sleeping car, which is probed at growing intervals`() throws {
    var rig = try FramesRig(PetrolCar(.can11, Self.turned((.run, 0), (.off, 30))))
    rig.run(for: 120 * .second)
    #expect(
      rig.status == "car-silent" && rig.fault?.hasPrefix("no CAN bus at the OBD connector") == true, "\(rig.status) \(rig.fault ?? "")")
    let before = rig.sentFrames.count
    rig.run(for: 300 * .second)
    #expect(rig.sentFrames.count - before <= 40, "\(rig.sentFrames.count - before)")
  }

  @Test func `a car that is not used is no longer polled, so that it falls asleep`() throws {
    var rig = try FramesRig(
      PetrolCar(.can11, Self.turned((.run, 0), (.on, 60))),
      pauseConditions: PauseConditions(probeInterval: 60 * .second, idleAfter: 120 * .second))
    rig.run(for: 300 * .second)
    #expect(rig.status == "parked", "\(rig.status) \(rig.fault ?? "")")
    let before = rig.sentFrames.count
    rig.run(for: 600 * .second)
    #expect((5...40).contains(rig.sentFrames.count - before), "\(rig.sentFrames.count - before)")
  }

  @Test func `an adapter that rejects frames is a fault, and its channel is opened again`() throws {
    var rig = try FramesRig(ElectricCar(.eGMP), faults: ["bus-off:@20:600000"])
    rig.run(for: 22 * .second)
    #expect(rig.statuses.contains("polling"))
    rig.run(for: 60 * .second)
    #expect(rig.sent("O").count >= 2 && rig.status == "polling", "\(rig.status) \(rig.fault ?? "") \(rig.faults)")
  }

  @Test(arguments: [true, false]) func `responses over a slow connection are received`(_ acknowledges: Bool) throws {
    var rig = try FramesRig(ElectricCar(.eGMP))
    rig.surroundings.delay = 150 * .millisecond
    rig.surroundings.acknowledges = acknowledges
    rig.disconnect()
    rig.connect()
    rig.run(for: 60 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.number("bad-replies") == 0, "\(rig.status) \(rig.fault ?? "")")
    #expect(rig.text("adapter") == "slcan V1013" && rig.number("odometer") != nil && rig.number("speed") != nil)
    // The connection becomes slower.
    rig.surroundings.delay = 300 * .millisecond
    let before = rig.published["rpm"] ?? 0
    rig.run(for: 60 * .second)
    #expect(rig.status == "polling" && rig.statuses.filter { $0 == "car-silent" }.isEmpty, "\(rig.statuses)")
    #expect((rig.published["rpm"] ?? 0) - before > 20 && rig.sent("O").count == 1, "\(rig.sent("O")) \(rig.notes)")
  }

  @Test(arguments: [true, false]) func `a gateway that blocks requests to all ECUs is recognised over a slow connection`(
    _ acknowledges: Bool
  ) throws {
    var rig = try FramesRig(PetrolCar(.can11, Self.turned((.on, 0))), vehicle: .generic, faults: ["no-broadcasts"])
    rig.surroundings.delay = 200 * .millisecond
    rig.surroundings.acknowledges = acknowledges
    rig.disconnect()
    rig.connect()
    rig.run(for: 40 * .second)
    #expect(rig.status == "polling" && rig.text("vehicle") == "standard OBD-II (7E8, 7E9)", "\(rig.status) \(rig.fault ?? "")")
    #expect(rig.text("vin") != nil)
  }

  @Test func `all ECUs count that respond before the reply to the status query`() throws {
    var rig = try FramesRig(PetrolCar(.can11, Self.turned((.on, 0))))
    rig.surroundings.acknowledges = false
    rig.run(for: 20 * .second)
    let expected = try rig.report("dtc")
    // The connection is slower than when the channel was opened.
    rig.surroundings.delay = 90 * .millisecond
    let report = try rig.report("dtc")
    #expect(Set(expected.rows.map { $0[0] }).count > 1 && report == expected, "\(report) \(expected)")
  }

  @Test func `a car is found through an adapter that replies to nothing`() throws {
    var rig = try FramesRig(PetrolCar(.can11), faults: ["silent"])
    rig.run(for: 20 * .second)
    #expect(rig.status == "polling" && rig.resets.isEmpty && rig.number("rpm") != nil, "\(rig.status) \(rig.fault ?? "")")
  }

  @Test func `while the car does not respond, the channel is closed between the probes`() throws {
    var rig = try FramesRig(PetrolCar(.can11), faults: ["no-data:1"])
    rig.run(for: 120 * .second)
    #expect(rig.status == "car-silent" && rig.sentLines.last?.line == "C", "\(rig.status) \(rig.sentLines.suffix(4))")
    // With its bit rate, because the adapter may have been restarted.
    let opened = rig.sentLines.indices.filter { rig.sentLines[$0].line == "O" }
    #expect(opened.count > 1 && opened.allSatisfy { rig.sentLines[$0 - 1].line == "S6" })
  }

  @Test func `the channel is closed when the daemon stops, and opened again after a frame that no node acknowledges`() throws {
    var rig = try FramesRig(PetrolCar(.can11, Self.turned((.run, 0), (.off, 30))))
    rig.run(for: 25 * .second)
    #expect(rig.sent("C").count == 2)
    rig.run(for: 35 * .second)
    let lines = rig.sentLines.map(\.line)
    let last = try #require(lines.lastIndex { $0.hasPrefix("t") })
    #expect(lines[last...].dropFirst().prefix(2) == ["F", "C"], "\(lines[last...])")
    rig.run(for: 60 * .second)
    rig.give(.stopping)
    #expect(rig.sentLines.last?.line == "C")
  }

  @Test func `a bus with errors is tried at growing intervals`() throws {
    var rig = try FramesRig(ElectricCar(.eGMP), bitRate: 250_000)
    rig.run(for: 600 * .second)
    // The rate is tried after 10, 30, 70, 150, 310 s; the first time, two requests must show the errors.
    let times = Set(rig.sentFrames.map(\.at))
    #expect((5...8).contains(times.count) && rig.sentLines.last?.line == "C", "\(times.sorted())")
    // Without waiting, once the link comes up again.
    rig.disconnect()
    rig.connect()
    rig.run(for: 15 * .second)
    // Two requests show the errors, and one more 10 s later; one of them is sent to all ECUs, and then to the engine ECU.
    #expect((1...6).contains(Set(rig.sentFrames.map(\.at)).subtracting(times).count))
  }

  @Test func `a wrong bit rate has a remedy`() throws {
    var rig = try FramesRig(ElectricCar(.eGMP), bitRate: 250_000)
    rig.run(for: 5 * .second)
    #expect(rig.status == "degraded" && rig.fault == "errors on the CAN bus; check bit-rate (250000), wiring and termination")
    #expect(rig.sent("S").allSatisfy { $0.line == "S5" })
  }

  @Test func `an adapter that says nothing is reset`() throws {
    var rig = try FramesRig()
    rig.surroundings.isConnected = false
    rig.disconnect()
    rig.connect()
    rig.run(for: 10 * .second)
    #expect(rig.resets.first == SLCANOpening.silentMessage && rig.fault == SLCANOpening.silentMessage)
  }

  // MARK: Arbitrary adapters

  /// What an adapter may say: replies, frames that look like responses, and noise.
  private static func input(_ random: inout SeededRandom) -> [UInt8] {
    switch random.next() % 30 {
    case 0: return [UInt8(random.next() % 2 == 0 ? 0x0D : 0x07)]
    case 1: return Array("F\(random.next() % 10)\(random.next() % 10)\rz\rV1013\r".utf8)
    case 2: return (0..<Int(random.next() % 40)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    default:
      let identifiers: [UInt32] = [0x7E8, 0x7E9, 0x7EC, 0x7DF, 0x18DA_F110, 0x7D9]
      var bytes = (0..<8).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      bytes[0] = [3, 6, 7, 0x10, 0x10, 0x21, 0x22, 0x23, 0x30, 0x32][Int(random.next() % 10)]
      let start = bytes[0] == 0x10 ? 2 : 1
      bytes.replaceSubrange(
        start..<start + 3, with: [[0x41, 0, 0xBE], [0x62, 1, 1], [0x7F, 0x22, 0x78], [0x7F, 1, 0x12]][Int(random.next() % 4)])
      return SLCAN.text(of: CANFrame(CANIdentifier(identifiers[Int(random.next() % 6)]), bytes))
    }
  }

  @Test(arguments: 0..<6) func `an arbitrary adapter makes the machine send only commands and requests to read`(_ seed: Int) throws {
    var rig = try FramesRig(rate: [20, 0, 100][seed % 3], maxLoad: seed % 2 == 0 ? 0.3 : 0)
    rig.surroundings.isConnected = false
    rig.disconnect()
    rig.connect()
    var random = SeededRandom(seed: UInt64(seed))
    for _ in 0..<2000 {
      rig.give(.received(.main, Self.input(&random)))
      rig.run(for: Nanoseconds(random.next() % 30) * .millisecond)
      guard random.next() % 200 == 0 else { continue }
      rig.disconnect()
      rig.connect()
    }
    for (_, line) in rig.sentLines where !["C", "V", "S6", "O", "F"].contains(line) {
      let frame = SLCANTests.frame(line)
      let isRequest = frame.map { (1...7).contains($0[0]) && OBDQuery.readServices.contains($0[1]) } ?? false
      #expect(isRequest || frame?[0] == 0x30, "\(line)")
    }
    #expect(rig.sentFrames.count > 10)
  }

  // MARK: The load of the bus

  @Test(arguments: [0.3, 0.1]) func `requests use no more of the bus than permitted`(_ share: Double) throws {
    var rig = try FramesRig(ElectricCar(.eGMP), rate: 0, maxLoad: share, isInstant: true)
    rig.run(for: 5 * .second)
    let before = rig.sent("t7E480322010100000000").count
    rig.run(for: 10 * .second)
    // 11 frames of at most 135 bits; the other requests use the rest.
    let load = Double(rig.sent("t7E480322010100000000").count - before) * 11 * 135 / (10 * 500_000)
    #expect(load <= share * 1.01 && load > share * 0.6, "\(load)")
  }
}
