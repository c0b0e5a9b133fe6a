import Testing

@testable import Protocols

/// The values of real cars from their replies, compared as published.
@Suite struct OBDVectorTests {
  struct Car: CustomTestStringConvertible {
    var testDescription: String
    let request: FastRequest
    let reply: [UInt8]
    let values: [String: Double]
    var absent: [String: String] = [:]
  }

  static let notReported = "not reported by this car"
  static let cars = [
    Car(
      testDescription: "Kona driving", request: .bmsUDS, reply: Vector.kona,
      values: [
        "state-of-charge": 65, "battery-voltage": 375.2, "battery-current": 12, "battery-power": 4.5, "battery-temperature-max": 21,
        "battery-temperature-min": 21, "module-temperature-1": 21, "module-temperature-4": 21, "inlet-temperature": 21,
        "cell-voltage-max": 3.82, "cell-voltage-max-cell": 11, "cell-voltage-min": 3.82, "cell-voltage-min-cell": 65,
        "aux-battery-voltage": 13.8, "charge-in": 10665.5, "charge-out": 10557.3, "energy-in": 3888.6, "energy-out": 3773.9,
        "operating-time": 18_618_214, "inverter-voltage": 374, "rpm": 824, "rpm-2": 824, "isolation-resistance": 3000,
        "max-charge-power": 0, "max-discharge-power": 0, "fan-status": 0, "fan-speed": 0,
      ], absent: ["module-temperature-5": notReported]),
    Car(
      testDescription: "EV6 cold", request: .bmsUDS, reply: Vector.ev6,
      values: [
        "state-of-charge": 55.5, "battery-voltage": 715.7, "battery-current": 0.7, "battery-power": 0.5, "battery-temperature-max": 1,
        "battery-temperature-min": -1, "aux-battery-voltage": 12.8, "inverter-voltage": 717, "rpm": 4363, "rpm-2": 0,
        "isolation-resistance": 1668, "cell-voltage-max": 3.72, "module-temperature-5": 0,
      ],
      absent: [
        "inlet-temperature": notReported, "charging": notReported, "ignition": notReported, "main-relay": notReported,
        "ac-plug": notReported, "max-discharge-power": notReported,
      ]),
    Car(
      testDescription: "EV6 on a wallbox", request: .bmsUDS, reply: Vector.wallbox,
      values: [
        "state-of-charge": 53.5, "battery-voltage": 719, "battery-current": -1.4, "battery-power": -1.01, "battery-temperature-max": 32,
        "battery-temperature-min": 30, "rpm": 0, "rpm-2": 0,
      ]),
    Car(
      testDescription: "Soul 30 kWh", request: .bmsKWP, reply: Vector.soul,
      values: [
        "state-of-charge": 59, "battery-current": 3.6, "battery-voltage": 369.7, "max-charge-power": 90, "max-discharge-power": 90,
        "inlet-temperature": 8, "cell-voltage-max": 3.68, "cell-voltage-max-cell": 21, "aux-battery-voltage": 14, "charge-in": 3511.1,
        "charge-out": 3532.7, "energy-in": 1349.7, "energy-out": 1321.4, "operating-time": 2_301_462, "inverter-voltage": 369, "rpm": 0,
        "isolation-resistance": 1000,
      ]),
    Car(
      testDescription: "Ioniq 28 kWh", request: .bmsKWP, reply: Vector.ioniq,
      values: [
        "state-of-charge": 90, "battery-voltage": 391.2, "battery-temperature-max": 22, "energy-in": 5703.4, "energy-out": 5552.6, "rpm": 0,
      ]),
    Car(
      testDescription: "E-GMP without line ends", request: .bmsUDS, reply: Vector.glued,
      values: [
        "state-of-charge": 90.5, "battery-voltage": 746.6, "battery-current": -9.9, "battery-temperature-max": 18,
        "battery-temperature-min": 12, "aux-battery-voltage": 12, "inverter-voltage": 6, "rpm": 0, "rpm-2": 0,
      ]),
  ]

  /// A machine that has just sent the request.
  static func asking(_ request: FastRequest, of vehicle: VehicleChoice = .auto, echo: Bool = false) -> AdapterRig {
    var rig = AdapterRig(vehicle: vehicle)
    rig.adapter.answer("220101", "")
    rig.adapter.answer("2101", "")
    rig.start(restored: ["request": Array(request.rawValue.utf8)])
    rig.run(untilHeard: request.rawValue)
    return rig
  }

  @Test(arguments: cars) func everyFieldOfARealCarHasItsPublishedValue(_ car: Car) {
    var rig = Self.asking(car.request)
    rig.give(.received(.main, car.reply))
    for (name, value) in car.values { #expect(rig.number(name) == value, "\(name)") }
    for (name, reason) in car.absent { #expect(rig.absence(name) == reason, "\(name)") }
    #expect(rig.status == "polling")
    #expect(rig.text("request") == car.request.rawValue)
  }

  @Test(arguments: cars) func aReplySplitAnywhereGivesTheSameValues(_ car: Car) {
    let ready = Self.asking(car.request)
    for split in 1..<car.reply.count {
      var rig = ready
      rig.give(.received(.main, Array(car.reply[..<split])))
      #expect(rig.number("rpm") == nil)
      rig.give(.received(.main, Array(car.reply[split...])))
      for (name, value) in car.values where rig.number(name) != value { Issue.record("split at \(split): \(name)") }
    }
  }

  @Test(arguments: cars) func byteByByteWithNULsAndAnEchoGivesTheSameValues(_ car: Car) {
    var rig = Self.asking(car.request)
    let separator: [UInt8] = car.reply.contains(13) ? [13] : []
    for byte in Array(car.request.rawValue.utf8) + separator + car.reply {
      rig.give(.received(.main, [0]))
      rig.give(.received(.main, [byte, 0]))
    }
    for (name, value) in car.values { #expect(rig.number(name) == value, "\(name)") }
  }

  @Test func theMotorSpeedIsReadAfterTheEchoedIdentifier() {
    // Counted from 0x62, bytes 53 and 54 give 3329, 2 and 369 rpm: constant and plausible.
    let wrong = [(Vector.kona, 3329), (Vector.ev6, 2)]
    for (reply, reading) in wrong {
      let payload: [UInt8] = [0x62, 0x01, 0x01] + Vector.data(of: reply)
      #expect(Int(payload[53]) << 8 | Int(payload[54]) == reading)
      var rig = Self.asking(.bmsUDS)
      rig.give(.received(.main, reply))
      #expect(rig.number("rpm") != Double(reading))
      #expect(rig.number("rpm-2") != Double(reading))
    }
  }

  @Test func inverterAndBatteryVoltageAgreeWithClosedContactors() {
    for car in Self.cars where car.testDescription != "E-GMP without line ends" && car.testDescription != "Ioniq 28 kWh" {
      var rig = Self.asking(car.request)
      rig.give(.received(.main, car.reply))
      #expect(abs((rig.number("inverter-voltage") ?? 0) - (rig.number("battery-voltage") ?? 999)) < 15)
    }
  }

  @Test func interleavedECUsWithoutHeadersAreAmbiguousAndGiveNoNumber() {
    let ready = Self.asking(.bmsKWP)
    for split in 0..<Vector.interleaved.count {
      var rig = ready
      rig.give(.received(.main, Array(Vector.interleaved[..<split])))
      rig.give(.received(.main, Array(Vector.interleaved[split...])))
      #expect(OBDMachine.batteryProperties.allSatisfy { rig.number($0) == nil })
      #expect(rig.number("bad-replies") == 1)
      #expect(rig.text("last-bad-reply")?.hasPrefix("02C|0:6101FFFFF800|01E|") == true)
    }
    var reader = ReplyReader()
    #expect(reader.read(Vector.interleaved.dropLast()) == .unreadable("ambiguous: several ECUs responded without headers"))
  }

  @Test func regenerationFollowsTheCurrentAndNotTheDirection() {
    let driving = [
      (current: UInt8(0xFF), speed: UInt8(0x10), regenerating: "on"), (0x00, 0xFF, "off"), (0x00, 0x10, "off"), (0xFF, 0x00, "off"),
    ]
    for (current, speed, expected) in driving {
      var rig = Self.asking(.bmsUDS)
      rig.give(.received(.main, Vector.record(Vector.ev6, [10: current, 11: 0x9C, 53: speed, 54: 0])))
      #expect(rig.text("regenerating") == expected)
    }
    var backwards = Self.asking(.bmsUDS)
    backwards.give(.received(.main, Vector.record(Vector.ev6, [53: 0xFE, 54: 0x1B])))
    #expect(backwards.number("rpm") == -485)
    #expect(backwards.text("regenerating") == "off")
  }

  @Test func sentinelsAndImplausibleNumbersAreAbsentWithAReason() {
    var rig = Self.asking(.bmsUDS, of: .hkmcEV)
    rig.give(.received(.main, Vector.record(Vector.kona, [4: 0, 53: 0x7F, 54: 0xFF, 55: 0x4E, 56: 0x21, 14: 0x9F, 24: 0, 23: 0xFF])))
    #expect(rig.number("state-of-charge") == 0)
    #expect(rig.absence("rpm") == "not available now")
    #expect(rig.absence("rpm-2") == "implausible")
    #expect(rig.absence("battery-temperature-max") == "implausible")
    #expect(rig.absence("cell-voltage-max") == "implausible")
    #expect(rig.absence("cell-voltage-max-cell") == "implausible")
    #expect(rig.absence("regenerating") == "not available now")
    #expect(rig.text("main-relay") == "on")
    #expect(rig.text("ignition") == "on")
    #expect(rig.text("charging") == "off")
    rig.run(untilHeard: "220101", times: 2)
  }

  @Test func aPowerThatRoundsToNothingHasNoSign() {
    var rig = Self.asking(.bmsUDS, of: .hkmcEV)
    rig.give(.received(.main, Vector.record(Vector.ev6, [10: 0xFF, 11: 0xFF, 12: 0x01, 13: 0x90])))
    #expect(rig.number("battery-current") == -0.1 && rig.number("battery-power")?.sign == .plus)
  }

  @Test func theFastestSpeedEverSeenIsNotCutOff() {
    var rig = Self.asking(.bmsUDS)
    rig.give(.received(.main, Vector.record(Vector.ev6, [53: 0x29, 54: 0x97])))
    #expect(rig.number("rpm") == 10647)
  }

  @Test func anAbsenceIsPublishedOnce() {
    var rig = Self.asking(.bmsUDS)
    rig.give(.received(.main, Vector.ev6))
    var effects = Effects()
    rig.adapter.answer("2201019", "")
    rig.run(untilHeard: "2201019")
    rig.machine.handle(.received(.main, Vector.ev6), at: rig.now, &effects)
    #expect(effects.readings.count > 25)
    #expect(effects.readings.allSatisfy { if case .value = $0.content { true } else { false } })
  }

  @Test func repliesWithAStrayLineOrAPromptBeforeTheEchoGiveNoNumber() {
    for noise in ["000\r", "001\r", "002\r", ">220101\r", "22010\r", "2101\r"] {
      var rig = Self.asking(.bmsUDS)
      rig.give(.received(.main, Array(noise.utf8) + Vector.ev6))
      #expect(rig.number("rpm") == nil, "\(noise)")
      #expect(rig.number("bad-replies") == 1)
    }
  }

  @Test func schemaRowsAreInOrderAndHaveUniqueNames() {
    let properties = OBDMachine().schema.properties
    #expect(properties.count == BMSRecord.entries.count + DeviceProperty.allCases.count)
    #expect(Set(properties.map(\.name)).count == properties.count)
    #expect(properties[BMSRecord.motorSpeeds].map(\.name) == ["rpm", "rpm-2"] && properties.last?.name == "last-bad-reply")
    #expect(OBDMachine(rate: 20).schema.properties[0].lifetime == .fresh(2 * .second))
    #expect(OBDMachine(rate: 0).schema.properties[0].lifetime == .fresh(2 * .second))
    #expect(OBDMachine(rate: 0.1).schema.properties[0].lifetime == .fresh(30 * .second))
  }
}
