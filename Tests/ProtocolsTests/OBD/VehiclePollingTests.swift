// Whole cars in virtual time: detection, the period of every data record, and no delay of the fast request.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct VehiclePollingTests {
  @Test func `an electric car is detected by its first data record, and the others are polled beside it`() throws {
    var rig = try VehicleRig(ElectricCar(.eGMP))
    rig.run(for: 30 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.text("vehicle") == "electric Hyundai or Kia (e-gmp)")
    #expect(rig.number("rpm") != nil && rig.number("state-of-charge-display") != nil && rig.number("remaining-energy") != nil)
    #expect(rig.number("speed") != nil && rig.number("odometer") != nil && rig.number("tyre-pressure-front-left") != nil)
    #expect(rig.number("outdoor-temperature") == 11.5 && rig.number("aux-battery-charge") == 88 && rig.number("dc-dc-voltage") != nil)
    #expect(rig.declared == 1 && rig.disk["request"] == Array("220101".utf8))
  }

  @Test func `after the first seconds the fast request keeps its slots with all records beside it`() throws {
    var rig = try VehicleRig(ElectricCar(.eGMP))
    rig.run(for: 20 * .second)
    let missed = rig.number("missed")
    rig.run(for: 30 * .second)
    #expect(abs(rig.count("220101", last: 10 * .second) - 200) <= 1)
    #expect(rig.number("missed") == missed)
    #expect((rig.number("lateness-p99") ?? 99) < 5, "\(rig.number("lateness-p99") ?? -1) ms")
    // Each at its own period: brakes and pedal every second, charge every ten.
    #expect((8...12).contains(rig.count("22E004", last: 10 * .second)) && (8...12).contains(rig.count("220104", last: 10 * .second) - 1))
    #expect((1...2).contains(rig.count("220105", last: 10 * .second)))
  }

  @Test func `a slow adapter polls the other records as well, a few at a time`() throws {
    var rig = try VehicleRig(ElectricCar(.eGMP), faults: ["latency:60"])
    rig.run(for: 120 * .second)
    #expect(rig.count("220105", last: 60 * .second) >= 3 && rig.count("22E004", last: 60 * .second) >= 5)
    #expect(rig.count("220101", last: 60 * .second) > 400, "\(rig.count("220101", last: 60 * .second))")
  }

  @Test func `a request that does not fit into the gap delays the next poll only by the difference`() throws {
    // 26.5 ms for the fast request, and up to 32 ms for another ECU's with retargeting there and back.
    var rig = try VehicleRig(ElectricCar(.eGMP), faults: ["latency:8"])
    rig.run(for: 60 * .second)
    let delays = rig.sentCommands.filter { $0.at > 30 * .second && $0.command.hasPrefix("220101") }.map { $0.at % (50 * .millisecond) }
    #expect(delays.count > 590 && delays.max() ?? .max < 12 * .millisecond, "\(delays.max() ?? 0)")
  }

  @Test(arguments: [(ElectricCar.Model.kona, "kona-niro", "220101"), (.ioniq28, "older", "2101")])
  func `other families have other data records`(_ model: ElectricCar.Model, _ name: String, _ request: String) throws {
    var rig = try VehicleRig(ElectricCar(model))
    rig.run(for: 30 * .second)
    #expect(rig.text("vehicle") == "electric Hyundai or Kia (\(name))" && rig.text("request") == request)
    #expect(rig.number("state-of-health") != nil && rig.number("rpm") != nil && rig.number("remaining-energy") == nil)
  }

  @Test func `a petrol car reports its PIDs, and each value comes from one ECU`() throws {
    var rig = try VehicleRig(PetrolCar(.can11))
    rig.run(for: 20 * .second)
    #expect(rig.text("vehicle") == "standard OBD-II (7E8, 7E9)" && rig.text("request") == "010C0D" && rig.fault == nil)
    let names = rig.machine.schema.properties.map(\.name)
    #expect(names.contains("coolant-temperature") && names.contains("fuel-level") && !names.contains("state-of-charge"))
    #expect(Set(names).count == names.count)
    for name in ["rpm", "speed", "engine-load", "throttle-position", "coolant-temperature", "fuel-level", "odometer", "dtc-count"] {
      #expect(rig.number(name) != nil, "\(name): \(rig.absence(name) ?? "no reason")")
    }
    #expect(rig.number("dtc-count") == 2 && rig.text("fuel-type") == "petrol" && rig.text("mil") == "on")
    // The transmission ECU adds only its own calibration, which is requested twice: once to measure its duration.
    #expect(rig.text("calibration-ids-2") == "VSIM-TCM-7DQ-042" && rig.sentCommands.count { $0.command == "ATSH7E1" } <= 2)
  }

  @Test func `speed and rpm of a petrol car come twenty times a second, the rest in their own time`() throws {
    var rig = try VehicleRig(PetrolCar(.can11))
    rig.run(for: 30 * .second)
    #expect(abs(rig.count("010C0D", last: 10 * .second) - 200) <= 1)
    #expect((rig.number("lateness-p99") ?? 99) < 5)
    let report = try rig.report("rates")
    #expect(report.rows.first?.first == "010C0D" && report.columns.count == 6)
    let rates = report.rows.dropFirst().compactMap { row in Double(row[3]).map { (row[0], Double(row[2]) ?? 0, $0) } }
    #expect(rates.count >= 3)
    for (request, target, rate) in rates { #expect(rate > target * 0.85 && rate < target * 1.2, "\(request): \(rate) of \(target) Hz") }
  }

  @Test func `the stored vehicle is used at the next start, after the electric car's request`() throws {
    var first = try VehicleRig(PetrolCar(.can11))
    first.run(for: 5 * .second)
    var rig = try VehicleRig(PetrolCar(.can11), disk: first.disk)
    #expect(rig.machine.schema == first.machine.schema && rig.declared == 1)
    rig.run(for: 5 * .second)
    #expect(rig.number("rpm") != nil && !rig.sentCommands.contains { $0.command == "0120" })
    // The same stored state with another car: detection is repeated.
    var other = try VehicleRig(ElectricCar(.eGMP), disk: first.disk)
    other.run(for: 5 * .second)
    #expect(other.number("state-of-charge") != nil && other.text("vehicle") == "electric Hyundai or Kia (e-gmp)")
    // Damaged, without a known PID, or without an ECU address.
    for damaged in ["", "7E8", "XYZ 0C", "7E8 0C0", "7E8 0C\n7E8", "7E8 FE", "5 0C", "FFFFFFFF 0C"] {
      var rig = try VehicleRig(PetrolCar(.can11), disk: ["ecus": Array(damaged.utf8)])
      rig.run(for: 20 * .second)
      #expect(rig.number("rpm") != nil, "\(damaged)")
    }
  }

  @Test func `ECUs that an earlier version stored as controllers are moved and used`() throws {
    var first = try VehicleRig(PetrolCar(.can11))
    first.run(for: 20 * .second)
    let ecus = try #require(first.disk["ecus"])
    // If both exist, the new one is used.
    for disk in [["controllers": ecus], ["controllers": Array("7E8 0C\n".utf8), "ecus": ecus]] {
      var rig = try VehicleRig(PetrolCar(.can11), disk: disk)
      rig.run(for: 5 * .second)
      #expect(rig.number("rpm") != nil && !rig.sentCommands.contains { $0.command == "0120" })
      #expect(rig.disk["ecus"] == ecus && rig.disk["controllers"] == nil)
    }
  }

  @Test func `a configured vehicle gets no other requests`() throws {
    var generic = try VehicleRig(PetrolCar(.can11), vehicle: .generic)
    generic.run(for: 5 * .second)
    #expect(generic.number("rpm") != nil && !generic.sentCommands.contains { $0.command.hasPrefix("22") || $0.command == "2101" })
    var electric = try VehicleRig(PetrolCar(.can11), vehicle: .eGMP)
    electric.run(for: 20 * .second)
    #expect(electric.status == "car-silent" && !electric.sentCommands.contains { $0.command.hasPrefix("01") || $0.command == "2101" })
  }

  /// A car with two ECUs that support some PIDs each.
  static func car(_ answers: [String: [(UInt32, String)]]) -> ScriptedCar {
    func bytes(_ hex: String) -> [UInt8] {
      let digits = Array(hex.utf8)
      return stride(from: 0, to: digits.count - 1, by: 2).map { hexValue(digits[$0]) << 4 | hexValue(digits[$0 + 1]) }
    }
    let all = answers.map { (bytes($0.key), $0.value.map { Reply(id: $0.0, payload: bytes($0.1)) }) }
    return ScriptedCar(.can11, responses: Dictionary(uniqueKeysWithValues: all))
  }

  @Test func `engine speed of one ECU and road speed of another are both polled`() throws {
    var rig = try VehicleRig(
      Self.car([
        "0100": [(0x7E8, "410000100000"), (0x7E9, "410000080000")], "010C": [(0x7E8, "410C0D74")], "010D": [(0x7E9, "410D32")],
      ]))
    rig.run(for: 20 * .second)
    #expect(rig.number("rpm") == 861 && rig.number("speed") == 50 && rig.fault == nil)
    #expect(rig.count("010C", last: 5 * .second) >= 90 && rig.count("010D", last: 5 * .second) >= 10)
  }

  @Test func `an ECU that answers one PID at a time is polled so, which is stored`() throws {
    var answers: [String: [(UInt32, String)]] = [
      "0100": [(0x7E8, "410018180000")], "0104": [(0x7E8, "410480")], "0105": [(0x7E8, "410564")], "010C": [(0x7E8, "410C0D74")],
      "010D": [(0x7E8, "410D32")],
    ]
    // NO DATA to several PIDs, or a response to the first only.
    for alone in [[:], ["010C0D": "410C0D74", "0105": "410564", "010405": "410480"]] {
      for (request, answer) in alone { answers[request] = [(0x7E8, answer)] }
      var rig = try VehicleRig(Self.car(answers))
      rig.run(for: 60 * .second)
      #expect(rig.status == "polling" && rig.fault == nil && rig.number("rpm") == 861 && rig.number("speed") == 50)
      #expect(rig.number("coolant-temperature") == 60 && rig.number("engine-load") == 50.2)
      #expect(rig.count("010C", last: 10 * .second) >= 190 && rig.count("010D", last: 10 * .second) >= 90)
      if !alone.isEmpty { continue }
      #expect(String(decoding: rig.disk["ecus"] ?? [], as: UTF8.self).contains("most 1"))
      var again = try VehicleRig(Self.car(answers), disk: rig.disk)
      again.run(for: 20 * .second)
      #expect(again.number("speed") == 50 && !again.sentCommands.contains { $0.command.hasPrefix("010C0D") })
    }
  }

  @Test(arguments: ["410000000000", "410000000001", "4100FFFFFFFF"])
  func `ECUs without known PIDs, or with false bitmaps, are handled`(_ bitmap: String) throws {
    var rig = try VehicleRig(Self.car(["0100": [(0x7E8, bitmap)]]))
    rig.run(for: 60 * .second)
    #expect(rig.status != "polling" && rig.number("rpm") == nil && rig.fault != nil)
    // Another start with the stored state.
    var again = try VehicleRig(Self.car(["0100": [(0x7E8, bitmap)]]), disk: rig.disk)
    again.run(for: 60 * .second)
    #expect(again.status != "polling")
  }

  @Test func `an ECU that was missed at first is found later`() throws {
    var first = try VehicleRig(PetrolCar(.can11))
    first.run(for: 20 * .second)
    let stored = ["ecus": Array("bus 6\n7E8 0C0D05\n".utf8)]
    var rig = try VehicleRig(PetrolCar(.can11), disk: stored)
    rig.run(for: 30 * .second)
    #expect(rig.text("vehicle") == "standard OBD-II (7E8, 7E9)" && rig.number("fuel-level") != nil && rig.status == "polling")
    #expect(rig.disk["ecus"] == first.disk["ecus"])
    // However many ECUs have responded, the adapter waits for the others as well.
    var check = try #require(rig.machine.router.vehicle.polling.scheduler.queue.requests.first { $0.isSupportCheck })
    check.recordResponse(at: rig.now, took: .millisecond, frames: 2, from: nil)
    #expect(String(decoding: check.bytes, as: UTF8.self) == "0100\r")
    // Known ECUs are not queried again.
    #expect(first.declared == 1 && rig.sentCommands.count { $0.command == "0120" } == 1)
  }

  @Test func `slowly polled values stay fresh from one poll to the next`() throws {
    var rig = try VehicleRig(PetrolCar(.can11), rate: 0.2)
    rig.run(for: 60 * .second)
    #expect(rig.machine.schema.properties.first { $0.name == "rpm" }?.lifetime == .fresh(15 * .second))
  }

  @Test func `one pending response does not slow polling down for good`() throws {
    var rig = try VehicleRig(PetrolCar(.can11), faults: ["nrc-78:500:400"])
    rig.run(for: 120 * .second)
    #expect(rig.status == "polling" && rig.count("010C0D", last: 20 * .second) > 300)
  }

  @Test func `a PID of wrong length is absent with the reason`() throws {
    var rig = try VehicleRig(
      Self.car([
        "0100": [(0x7E8, "410000180000")], "010C0D": [(0x7E8, "410C0D74000D32")], "010C": [(0x7E8, "410C0D7400")],
        "010D": [(0x7E8, "410D32")],
      ]))
    rig.run(for: 60 * .second)
    #expect(rig.seen["rpm"] == nil && rig.absence("rpm")?.contains("does not match SAE J1979") == true)
    #expect(rig.number("speed") == 50 && rig.fault == nil && rig.status == "polling")
  }

  @Test func `polled properties stay in the schema over reconnections`() throws {
    var answers: [String: [(UInt32, String)]] = [
      "0100": [(0x7E8, "410000180000")], "010C": [(0x7E8, "410C0D74")], "010D": [(0x7E8, "410D32")],
    ]
    answers["010C0D"] = [(0x7E8, "410C0D74")]
    var rig = try VehicleRig(Self.car(answers))
    for _ in 0..<5 {
      rig.run(for: 20 * .second)
      #expect(
        rig.number("rpm") == 861 && rig.number("speed") == 50 && rig.machine.router.vehicle.polling.scheduler.queue.requests.count <= 4)
      rig.reconnect()
    }
    rig.run(for: 20 * .second)
    #expect(rig.count("010D", last: 10 * .second) <= 200 && rig.number("speed") == 50)
  }

  @Test func `a functional signal comes from one ECU and stays there`() throws {
    let request = try SignalRequest("0105", allowRaw: false)
    let own = CustomSignal("own-coolant", request, try Expression("A-40"), unit: "°C", help: "own")
    var rig = try VehicleRig(
      Self.car([
        "0100": [(0x7E8, "410000100000"), (0x7E9, "410008000000")], "010C": [(0x7E8, "410C0D74")],
        "0105": [(0x7E9, "410564"), (0x7E8, "410550")],
      ]), signals: [own])
    rig.run(for: 20 * .second)
    #expect(rig.number("own-coolant") == 40 && rig.number("bad-replies") == 0)
  }

  @Test func `a manufacturer-specific query goes to the polled ECU, whatever the adapter's current target`() throws {
    var rig = try VehicleRig(ElectricCar(.eGMP))
    rig.run(for: 10 * .second)
    // At any time within a second, with other requests in between.
    for _ in 0..<40 {
      let report = try rig.report("query", ["request": .string("220105")])
      #expect(report.rows.count == 1 && report.rows.first?.first == "7EC")
      rig.run(for: 27 * .millisecond)
    }
    #expect(rig.fault == nil && rig.status == "polling")
  }

  @Test func `an electric car detected as a standard one is stored correctly later`() throws {
    var standard = try VehicleRig(PetrolCar(.can11))
    standard.run(for: 5 * .second)
    var rig = try VehicleRig(ElectricCar(.eGMP), disk: standard.disk)
    rig.run(for: 5 * .second)
    #expect(rig.text("vehicle") == "electric Hyundai or Kia (e-gmp)" && rig.disk["ecus"] == nil)
  }

  @Test func `another vehicle with the same ECUs is detected by its VIN`() throws {
    var first = try VehicleRig(PetrolCar(.can11))
    first.run(for: 20 * .second)
    let stored = String(decoding: try #require(first.disk["ecus"]), as: UTF8.self)
    #expect(stored.contains("\nmark ") && !stored.contains("WVWZZZ1KZAW000042"))
    let answers: [String: [(UInt32, String)]] = [
      "0100": [(0x7E8, "410000180000")], "010C": [(0x7E8, "410C0D74")], "010C0D": [(0x7E8, "410C0D740D32")],
      "010D": [(0x7E8, "410D32")],
      "0902": [(0x7E8, "490201" + hex("1D4GP00R55B123456"))],
    ]
    var other = try VehicleRig(Self.car(answers), disk: first.disk)
    other.run(for: 60 * .second)
    #expect(other.text("vin") == "1D4GP00R55B123456" && other.number("rpm") == 861 && other.number("speed") == 50)
    #expect(!other.machine.schema.properties.contains { $0.name == "coolant-temperature" })
    // With a VIN that changes at each response, detection is repeated once at most.
    var changing = try VehicleRig(ChangingVINCar(car: PetrolCar(.can11)), disk: first.disk)
    changing.run(for: 200 * .second)
    #expect(
      changing.sentCommands.count { $0.command == "0120" } <= 1 && changing.status == "polling"
        && changing.number("coolant-temperature") != nil)
    // A car that never reported a VIN is not another car.
    var same = try VehicleRig(PetrolCar(.can11), disk: first.disk)
    same.run(for: 30 * .second)
    #expect(!same.sentCommands.contains { $0.command == "0120" })
  }

  /// One car until some time, nothing for a while, then another.
  struct SwappedCar: Car {
    var cars: [ScriptedCar]
    let gone: Range<Instant>

    var bus: DiagnosticBus { .can11 }
    var padding: UInt8? { 0 }
    var ignition: Ignition { cars[0].ignition }
    func supplyMillivolts(at now: Instant) -> Int { gone.contains(now) ? 100 : 14_200 }
    mutating func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
      if gone.contains(now) { return [] }
      return cars[now < gone.lowerBound ? 0 : 1].replies(to: request, at: address, now)
    }
  }

  private func carWithVIN(_ vin: String, _ parameters: String) -> ScriptedCar {
    Self.car([
      "0100": [(0x7E8, "4100\(parameters)")], "010C0D": [(0x7E8, "410C0D740D32")], "010C": [(0x7E8, "410C0D74")],
      "010D": [(0x7E8, "410D32")],
      "0105": [(0x7E8, "410564")], "0902": [(0x7E8, "490201" + vin)],
    ])
  }

  @Test func `an adapter moved to another car shows no values of the first`() throws {
    let first = carWithVIN(hex("WVWZZZ1KZAW000042"), "08180000")
    var rig = try VehicleRig(
      SwappedCar(cars: [first, carWithVIN(hex("1D4GP00R55B123456"), "00180000")], gone: 30 * .second..<75 * .second))
    rig.run(for: 25 * .second)
    #expect(rig.text("vin") == "WVWZZZ1KZAW000042" && rig.number("coolant-temperature") == 60)
    rig.run(for: 45 * .second)
    #expect(rig.status == "no-car" && rig.absence("vin")?.contains("no battery voltage") == true, "\(rig.status) \(rig.text("vin") ?? "")")
    rig.run(for: 90 * .second)
    let details =
      "\(rig.text("vin") ?? rig.absence("vin") ?? "") \(rig.number("rpm") ?? 0) \(rig.status) \(rig.fault ?? "") \(rig.sentCommands.suffix(30).map(\.command))"
    #expect(rig.text("vin") == "1D4GP00R55B123456" && rig.number("rpm") == 861, "\(details)")
    #expect(rig.number("coolant-temperature") == nil)
    #expect(!rig.machine.schema.properties.contains { $0.name == "coolant-temperature" })
    // An unreadable VIN does not keep the first car's.
    var blank = try VehicleRig(
      SwappedCar(cars: [first, carWithVIN(String(repeating: "FF", count: 17), "08180000")], gone: 30 * .second..<75 * .second))
    blank.run(for: 160 * .second)
    #expect(blank.number("rpm") == 861 && blank.text("vin") == nil && blank.seen["vin"] == ["WVWZZZ1KZAW000042"])
  }

  @Test func `a response of wrong length is reported, and polled less and less often`() throws {
    var rig = try VehicleRig(
      Self.car([
        "0100": [(0x7E8, "410008180000")], "010C0D": [(0x7E8, "410C0D740D32")], "0105": [(0x7E8, "41056400")],
      ]))
    rig.run(for: 120 * .second)
    #expect(rig.absence("coolant-temperature")?.contains("does not match SAE J1979") == true)
    #expect(rig.number("bad-replies").map { $0 < 12 } == true && rig.number("rpm") == 861)
  }

  @Test func `back to back the others have a fifth of the time`() throws {
    var rig = try VehicleRig(PetrolCar(.can11), rate: 0)
    rig.run(for: 60 * .second)
    let frequent = rig.machine.router.vehicle.polling.scheduler.queue.requests.filter {
      $0.period == .second / 2 && $0.support == .answered
    }
    #expect(frequent.count > 2 && frequent.allSatisfy { ($0.rate(at: rig.now) ?? 0) > 1 }, "\(frequent.map { $0.rate(at: rig.now) })")
    #expect(rig.number("poll-rate").map { $0 > 90 } == true, "\(rig.number("poll-rate") ?? 0)")
  }

  /// A car whose VIN changes with each response.
  struct ChangingVINCar: Car {
    var car: PetrolCar
    var number = 0

    var bus: DiagnosticBus { car.bus }
    var padding: UInt8? { car.padding }
    var ignition: Ignition { car.ignition }
    func supplyMillivolts(at now: Instant) -> Int { car.supplyMillivolts(at: now) }
    mutating func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
      guard request == [0x09, 0x02] else { return car.replies(to: request, at: address, now) }
      number += 1
      return [Reply(id: 0x7E8, payload: [0x49, 0x02, 0x01] + Array("WVWZZZ1KZAW0\(10000 + number)".utf8))]
    }
  }

  private func hex(_ text: String) -> String { String(decoding: hexText(Array(text.utf8)), as: UTF8.self) }

  @Test func `trouble codes are read from all ECUs, with states and descriptions`() throws {
    var rig = try VehicleRig(PetrolCar(.can11))
    rig.run(for: 5 * .second)
    let report = try rig.report("dtc")
    #expect(report.columns == ["ecu", "code", "state", "meaning"])
    let codes = report.rows.map { $0.prefix(3).joined(separator: " ") }
    #expect(codes == ["7E8 P0133 stored", "7E8 P0171 pending", "7E8 P0420 stored, permanent", "7E9 P0715 stored"])
    #expect(report.rows.allSatisfy { !$0[3].isEmpty })
    // It is polled as before.
    let before = rig.count("010C0D", last: .max / 4)
    rig.run(for: 2 * .second)
    #expect(rig.count("010C0D", last: 2 * .second) >= 38 && before > 0 && rig.fault == nil)
  }

  @Test func `custom signals are polled beside the fast request, one request for all in a response`() throws {
    let request = try SignalRequest("220105", allowRaw: false)
    let own = try [("my-charge", "AF/2"), ("my-health", "(Z*256+AA)/10")].map { name, formula in
      CustomSignal(name, request, header: CANIdentifier("7E4"), try Expression(formula), unit: "%", period: 2 * .second, help: "own")
    }
    var rig = try VehicleRig(ElectricCar(.eGMP), signals: own)
    rig.run(for: 20 * .second)
    #expect(rig.number("my-charge") == rig.number("state-of-charge-display") && rig.number("my-health") == 100)
    #expect((5...8).contains(rig.count("220105", last: 10 * .second)))
  }

  @Test func `a custom signal's name has precedence`() throws {
    let request = try SignalRequest("220105", allowRaw: false)
    let own = CustomSignal("odometer", request, header: CANIdentifier("7E4"), try Expression("AF"), unit: "km", help: "own")
    var rig = try VehicleRig(ElectricCar(.eGMP), signals: [own])
    rig.run(for: 20 * .second)
    #expect(rig.machine.schema.properties.count { $0.name == "odometer" } == 1)
    #expect(rig.number("odometer") == rig.number("state-of-charge-display").map { $0 * 2 })
  }
}
