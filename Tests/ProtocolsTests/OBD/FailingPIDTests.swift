// One polled PID fails: no response, a negative response, or a wrong length, from the start or later. It is absent with a reason, all
// others keep their rate, and it returns when it is answered again.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct FailingPIDTests {
  /// A car with one PID that fails for a while.
  struct FlawedCar: Car {
    var car: any Car
    var flaw: String
    var parameter: UInt8
    var from: Instant = 0
    var until: Instant = .max

    var bus: DiagnosticBus { car.bus }
    var padding: UInt8? { car.padding }
    var ignition: Ignition { car.ignition }
    func supplyMillivolts(at now: Instant) -> Int { car.supplyMillivolts(at: now) }
    mutating func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
      let replies = car.replies(to: request, at: address, now)
      guard now >= from, now < until, request.first == 0x01, request.dropFirst().contains(parameter) else { return replies }
      return switch flaw {
      case "silent": []
      case "refused": replies.map { Reply(id: $0.id, payload: [0x7F, 0x01, 0x12]) }
      case "unready": replies.map { Reply(id: $0.id, payload: [0x7F, 0x01, 0x22]) }
      case "pending": replies.map { Reply(id: $0.id, payload: [0x7F, 0x01, 0x78]) }
      case "contradiction": replies + replies.map { Reply(id: $0.id, payload: $0.payload.dropLast() + [($0.payload.last ?? 0) ^ 1]) }
      default: replies.map { Reply(id: $0.id, payload: $0.payload + [0]) }
      }
    }
  }

  static let flaws = ["silent", "refused", "unready", "long", "pending", "contradiction"]

  @Test(arguments: flaws, [0x0C, 0x0D] as [UInt8]) func `a failing PID does not affect the rate of the others`(
    _ flaw: String, _ parameter: UInt8
  ) throws {
    let (bad, good) = parameter == 0x0C ? ("rpm", "speed") : ("speed", "rpm")
    let request = parameter == 0x0C ? "010D" : "010C"
    for bus in [DiagnosticBus.can11, .can29] {
      var rig = try VehicleRig(FlawedCar(car: PetrolCar(bus), flaw: flaw, parameter: parameter))
      rig.run(for: 60 * .second)
      #expect(rig.status == "polling" && rig.fault == nil, "\(rig.status) \(rig.fault ?? "")")
      #expect(rig.seen[bad] == nil && rig.absence(bad) != nil && rig.number(good) != nil)
      #expect(rig.number("coolant-temperature") != nil && rig.number("engine-load") != nil && rig.number("fuel-level") != nil)
      #expect(rig.count(request, last: 20 * .second) > 350, "\(rig.count(request, last: 20 * .second))")
      // The failed PID is requested now and then.
      let failing = "01" + String(decoding: hexText([parameter]), as: UTF8.self)
      #expect((1...8).contains(rig.count(failing, last: 30 * .second)), "\(rig.count(failing, last: 30 * .second))")
      // The ECU does not count as one that answers one PID at a time.
      #expect(!String(decoding: rig.disk["ecus"] ?? [], as: UTF8.self).contains("most 1"))
    }
  }

  // With an expected frame count the adapter drops the second response.
  @Test(arguments: flaws.filter { $0 != "contradiction" })
  func `a PID that fails later is replaced and restored`(_ flaw: String) throws {
    var rig = try VehicleRig(
      FlawedCar(car: PetrolCar(.can11), flaw: flaw, parameter: 0x0C, from: 20 * .second, until: 60 * .second))
    rig.run(for: 19 * .second)
    #expect(rig.count("010C0D", last: 5 * .second) >= 99)
    rig.run(for: 36 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.absence("rpm") != nil && rig.number("speed") != nil)
    #expect(rig.count("010D", last: 10 * .second) > 180)
    rig.run(for: 35 * .second)
    #expect(rig.number("rpm") != nil && rig.count("010C0D", last: 5 * .second) >= 99)
    #expect(rig.status == "polling" && rig.fault == nil)
  }

  @Test(arguments: [
    "BUFFER FULL", "7E804410C1A <DATA ERROR", "7E804410C1A <RX ERROR", "STOPPED", "FB ERROR", "CAN ERROR", "BUS BUSY", "~~",
  ])
  func `a request whose response is always damaged does not blame the adapter`(_ reply: String) throws {
    var rig = try VehicleRig(PetrolCar(.can11))
    rig.overriddenReplies = ["010C": reply + "\r\r>", "0104": reply + "\r\r>"]
    rig.run(for: 60 * .second)
    #expect(rig.status == "polling" && rig.fault == nil, "\(rig.status) \(rig.fault ?? "")")
    #expect(rig.number("speed") != nil && rig.number("coolant-temperature") != nil && rig.count("010D", last: 20 * .second) > 300)
    for name in ["rpm", "engine-load"] { #expect(rig.absence(name).map { $0 != "stale" } == true, "\(rig.absence(name) ?? "")") }
    rig.overriddenReplies = [:]
    rig.run(for: 60 * .second)
    #expect(rig.number("rpm") != nil && rig.number("engine-load") != nil)
  }

  @Test func `if both fail the fastest other PID is polled`() throws {
    let car = FlawedCar(car: FlawedCar(car: PetrolCar(.can11), flaw: "silent", parameter: 0x0C), flaw: "refused", parameter: 0x0D)
    var rig = try VehicleRig(car)
    rig.run(for: 60 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.absence("rpm") != nil && rig.absence("speed") != nil)
    #expect(rig.number("engine-load") != nil && rig.number("throttle-position") != nil && rig.number("coolant-temperature") != nil)
  }

  @Test(arguments: [DiagnosticBus.kwp, .iso9141]) func `before CAN a PID fails alone as well`(_ bus: DiagnosticBus) throws {
    var rig = try VehicleRig(FlawedCar(car: PetrolCar(bus), flaw: "silent", parameter: 0x0C))
    rig.run(for: 180 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.absence("rpm") != nil && rig.number("speed") != nil)
    #expect(rig.number("coolant-temperature") != nil)
  }

  @Test func `a car that was silent is polled with both PIDs again`() throws {
    var rig = try VehicleRig(PetrolCar(.can11, Ignition([Ignition.Turn(.off, at: 30 * .second), Ignition.Turn(.run, at: 100 * .second)])))
    rig.run(for: 60 * .second)
    #expect(rig.status != "polling" && rig.number("rpm") == nil)
    rig.run(for: 90 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.count("010C0D", last: 5 * .second) >= 99)
  }

  @Test(arguments: ["dead-pid:0C", "refused-pid:0C", "long-pid:0C"]) func `the simulator's faulty cars are polled`(_ fault: String) throws {
    var rig = try VehicleRig(PetrolCar(.can11), faults: [fault])
    rig.run(for: 60 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.absence("rpm") != nil && rig.number("speed") != nil)
  }

  // MARK: Several responses in one reply

  private func car(_ answers: [(UInt32, String)], alone: [(UInt32, String)] = []) -> ScriptedCar {
    VehiclePollingTests.car(["0100": [(0x7E8, "410000180000")], "010C0D": answers, "010C": alone, "010D": [(0x7E8, "410D32")]])
  }

  @Test(arguments: [
    ["410C0D740D32", "410564"], ["410564", "410C0D740D32"], ["410C0D740D32", "410C0D740D32"], ["410C0D740D32", "410D32"],
    ["410D32", "410C0D740D32"],
  ]) func `stray and repeated messages do not affect a response`(_ messages: [String]) throws {
    var rig = try VehicleRig(car(messages.map { (0x7E8, $0) }))
    rig.run(for: 20 * .second)
    #expect(rig.seen["rpm"] == ["861"] && rig.seen["speed"] == ["50"] && rig.fault == nil && rig.status == "polling")
    #expect(rig.number("bad-replies") == 0 && rig.count("010C0D", last: 5 * .second) >= 99)
  }

  @Test func `contradictory responses give no value`() throws {
    for messages in [["410C0D740D32", "410C0D750D32"], ["410C0D740D32", "410D33"], ["410C0D740D32", "410C0D"]] {
      var rig = try VehicleRig(car(messages.map { (0x7E8, $0) }, alone: [(0x7E8, "410C0D74"), (0x7E8, "410C0D75")]))
      rig.run(for: 10 * .second)
      #expect(rig.seen["rpm"] == nil && rig.number("bad-replies") ?? 0 > 0, "\(messages)")
    }
  }

  @Test(arguments: ["stray", "twice"]) func `an ECU that sends extra messages is polled`(_ fault: String) throws {
    var rig = try VehicleRig(PetrolCar(.can11), faults: [fault])
    rig.run(for: 30 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.number("rpm") != nil && rig.number("speed") != nil)
    #expect(rig.number("coolant-temperature") != nil)
  }

  // MARK: Only PIDs that change rarely

  /// PIDs 01 (polled every minute) and 1C (every hour) are supported, and in `answers` if they are answered.
  private static func rareCar(_ answers: [String: String], fast: Bool) -> ScriptedCar {
    let all = answers.merging(["0100": fast ? "410080180010" : "410080000010"]) { first, _ in first }
    return VehiclePollingTests.car(all.mapValues { [(UInt32(0x7E8), $0)] })
  }

  @Test(arguments: [["011C": "411C01"], ["0101": "7F0122", "011C": "411C01"]], [false, true])
  func `a car that answers only PIDs with a long period is polled soon`(_ answers: [String: String], _ fast: Bool) throws {
    var (rig, frames) = (try VehicleRig(Self.rareCar(answers, fast: fast)), try FramesRig(Self.rareCar(answers, fast: fast)))
    rig.run(for: 60 * .second)
    frames.run(for: 60 * .second)
    for (status, fault, request) in [
      (rig.status, rig.fault, rig.text("request")), (frames.status, frames.fault, frames.text("request")),
    ] {
      #expect(status == "polling" && fault == nil && request == "011C", "\(status) \(fault ?? "") \(request ?? "")")
    }
  }

  @Test(arguments: [[:], ["0101": "7F0112", "011C": "7F0112"], ["0101": "7F0122", "011C": "7F0122"]])
  func `a car that answers none of its PIDs is a fault soon`(_ answers: [String: String]) throws {
    var (rig, frames) = (try VehicleRig(Self.rareCar(answers, fast: true)), try FramesRig(Self.rareCar(answers, fast: true)))
    rig.run(for: 90 * .second)
    frames.run(for: 90 * .second)
    #expect(rig.status == "car-silent" && rig.fault != nil && frames.status == "car-silent" && frames.fault != nil)
  }
}
