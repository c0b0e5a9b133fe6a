// A vehicle that sleeps, has a low battery or is unused is polled at growing intervals, and again within one pause after ignition on.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct PauseConditionsTests {
  static func turned(_ turns: (Ignition.Position, Int64)...) -> Ignition { Ignition(turns.map { Ignition.Turn($0.0, at: $0.1 * .second) }) }

  static func bus(_ rig: VehicleRig, after: Instant) -> [Instant] {
    rig.sentCommands.filter { $0.at > after && !$0.command.hasPrefix("AT") && !$0.command.hasPrefix("ST") }.map(\.at)
  }

  @Test(arguments: [CarModel.eGMP, .petrol, .petrol29, .petrolKWP])
  func `a car that falls asleep is probed, and polled again within one probe of its ignition`(_ model: CarModel) throws {
    var rig = try VehicleRig(model.car(Self.turned((.off, 60), (.run, 3000))))
    rig.run(for: 50 * .second)
    #expect(rig.status == "polling" && (rig.number("adapter-voltage") ?? 0) > 13)
    rig.run(for: 550 * .second)
    #expect(rig.status == "car-asleep" && rig.number("rpm") == nil)
    #expect(rig.fault?.hasSuffix("; it is polled every 30 s") == true)
    rig.run(for: 2395 * .second)
    #expect(rig.number("adapter-voltage").map { $0 < 12.5 } == true)
    let asked = Self.bus(rig, after: 600 * .second)
    let pauses = zip(asked, asked.dropFirst()).map { $1 - $0 }
    // A probe is one request; for a car with an unknown request, one of each kind.
    #expect(asked.count <= 82 && pauses.contains { $0 >= 29 * .second }, "\(asked.count)")
    rig.run(for: 36 * .second)
    #expect(rig.status == "polling" && rig.number("rpm") != nil && rig.fault == nil)
  }

  @Test func `a low battery ends the polling, and a charged one begins it`() throws {
    var rig = try VehicleRig(
      WeakCar(volts: { $0 < 100 * .second || $0 > 1000 * .second ? 12_500 : 11_700 }), pauseConditions: PauseConditions(idleAfter: 0))
    rig.run(for: 120 * .second)
    #expect(rig.status == "polling")
    rig.run(for: 30 * .second)
    #expect(rig.status == "car-asleep" && rig.number("rpm") == nil)
    #expect(rig.fault == "the 12 V battery is low (min-voltage = 11.8): polling is suspended until it reaches 12.1 V")
    rig.run(for: 840 * .second)
    #expect(Self.bus(rig, after: 150 * .second).isEmpty)
    rig.run(for: 45 * .second)
    #expect(rig.status == "polling" && rig.fault == nil)
  }

  @Test func `a voltage drop by the starter is not a low battery`() throws {
    var rig = try VehicleRig(
      WeakCar(volts: { $0 % (60 * .second) < 11 * .second ? 9_000 : 12_400 }), pauseConditions: PauseConditions(idleAfter: 0))
    rig.run(for: 300 * .second)
    #expect(rig.status == "polling" && rig.fault == nil)
  }

  @Test func `a car that is driven is polled, whatever its adapter measures`() throws {
    var car = WeakCar(volts: { _ in 11_000 })
    car.car = PetrolCar(.can11)
    var rig = try VehicleRig(car)
    rig.run(for: 300 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.number("adapter-voltage") == 11)
  }

  @Test func `polling of a parked 24 V lorry is paused`() throws {
    var rig = try VehicleRig(WeakCar(volts: { _ in 24_600 }), pauseConditions: PauseConditions(idleAfter: 60 * .second))
    rig.run(for: 200 * .second)
    #expect(rig.status == "parked")
    var driven = WeakCar(volts: { _ in 28_200 })
    driven.car = PetrolCar(.can11)
    var other = try VehicleRig(driven, pauseConditions: PauseConditions(idleAfter: 60 * .second))
    other.run(for: 200 * .second)
    #expect(other.status == "polling")
  }

  @Test func `an adapter without a vehicle is reported as no-car`() throws {
    var rig = try VehicleRig(WeakCar(volts: { _ in 100 }, isDead: true))
    rig.run(for: 100 * .second)
    #expect(rig.status == "no-car")
    #expect(rig.fault == "the adapter measures no battery voltage; plug it into a vehicle, or check the contacts")
  }

  @Test func `a running car that does not respond is silent, not asleep`() throws {
    var rig = try VehicleRig(WeakCar(volts: { _ in 14_200 }, isDead: true))
    rig.run(for: 100 * .second)
    #expect(rig.status == "car-silent")
  }

  @Test func `an adapter without voltage measurement is asked once`() throws {
    var rig = try VehicleRig(PetrolCar(.can11, Self.turned((.off, 60))), unknown: ["ATRV"])
    rig.run(for: 600 * .second)
    #expect(rig.sentCommands.count { $0.command == "ATRV" } == 1 && rig.status == "car-silent")
    #expect(rig.absence("adapter-voltage") == "the adapter does not report it" && rig.fault?.hasSuffix("it is polled every 30 s") == true)
  }

  @Test(arguments: [CarModel.eGMP, .petrol]) func `polling of an unused car is paused until it is used`(_ model: CarModel) throws {
    var rig = try VehicleRig(
      model.car(Self.turned((.on, 60), (.run, 2000))), pauseConditions: PauseConditions(minVoltage: 0, idleAfter: 120 * .second))
    rig.run(for: 100 * .second)
    #expect(rig.status == "polling")
    rig.run(for: 1400 * .second)
    // The electric car is on: its DC-DC converter charges the 12 V battery, which counts as use.
    if model == .eGMP { return #expect(rig.status == "polling") }
    #expect(rig.status == "parked" && rig.fault == "the vehicle has not been used for 120 s: it is polled every 30 s")
    let asked = Self.bus(rig, after: 1000 * .second)
    #expect(asked.count <= 17)
    rig.run(for: 535 * .second)
    #expect(rig.status == "polling" && rig.fault == nil && rig.number("rpm") != nil)
  }

  @Test func `a link that is lost often does not cause a parked car to be polled without end`() throws {
    var rig = try VehicleRig(
      PetrolCar(.can11, Self.turned((.on, 0))), pauseConditions: PauseConditions(minVoltage: 0, idleAfter: 120 * .second))
    rig.run(for: 100 * .second)
    rig.reconnect()
    rig.run(for: 40 * .second)
    #expect(rig.status == "polling")
    rig.run(for: 40 * .second)
    #expect(rig.status == "parked")
    rig.reconnect()
    rig.run(for: 40 * .second)
    #expect(rig.status == "polling")
    rig.run(for: 40 * .second)
    #expect(rig.status == "parked")
  }

  @Test func `the adapter sleeps with the car and is woken for every probe and query`() throws {
    var rig = try VehicleRig(
      PetrolCar(.can11, Self.turned((.off, 60), (.run, 2000))), pauseConditions: PauseConditions(usesLowPower: true))
    rig.run(for: 600 * .second)
    #expect(rig.status == "adapter-asleep" && rig.sentCommands.last?.command == "ATLP")
    let began = rig.sentCommands.count
    rig.run(for: 300 * .second)
    let sleeps = rig.sentCommands[began...].count { $0.command == "ATLP" }
    #expect((8...10).contains(sleeps) && rig.number("timeouts") == 0 && rig.status == "adapter-asleep")
    let voltage = try rig.report("query", ["request": .string("ATRV")])
    #expect(voltage.rows.first?[2].hasSuffix("V") == true)
    rig.run(for: 1140 * .second)
    #expect(rig.status == "polling" && rig.fault == nil)
    var clone = try VehicleRig(
      PetrolCar(.can11, Self.turned((.off, 60))), unknown: ["ATLP"], pauseConditions: PauseConditions(usesLowPower: true))
    clone.run(for: 600 * .second)
    #expect(clone.status == "car-asleep" && clone.sentCommands.count { $0.command == "ATLP" } == 1)
  }

  @Test(arguments: ["LV RESET\r\r>", "\r\rELM327 v1.5\r\r>"])
  func `an adapter that restarts during a voltage measurement is reinitialised`(_ text: String) {
    var rig = AdapterRig(pauseConditions: PauseConditions())
    rig.adapter.answer("ATRV", text, "12.6V\r\r>")
    rig.start(for: 2 * .second)
    rig.run(for: 3 * .second)
    #expect(rig.heard("ATZ") == 2 && rig.status == "polling" && rig.number("adapter-voltage") == 12.6)
  }

  @Test(arguments: ["12.6\r\r>", "-3V\r\r>", "nanV\r\r>", "1e9V\r\r>", "OK\r\r>", "\u{80}V\r\r>", "\r>"])
  func `an invalid voltage is absent and is measured again`(_ text: String) {
    var rig = AdapterRig(pauseConditions: PauseConditions())
    rig.adapter.answer("ATRV", text, "12.6V\r\r>")
    rig.start(for: 2 * .second)
    #expect(rig.number("adapter-voltage") == nil && rig.number("bad-replies") == 1)
    rig.run(for: 11 * .second)
    #expect(rig.number("adapter-voltage") == 12.6 && rig.status == "polling" && rig.number("rpm") == 4363)
  }

  @Test func `a low battery stays low after reconnecting`() {
    var rig = AdapterRig(pauseConditions: PauseConditions())
    rig.adapter.answer("ATRV", "11.2V\r\r>")
    rig.adapter.bmsReply = Vector.glued
    rig.start(for: 2 * .second)
    rig.run(for: 60 * .second)
    #expect(rig.status == "car-asleep")
    let polls = rig.heard("2201019")
    for _ in 0..<5 {
      rig.give(.linkChanged(.main, .down("unplugged")))
      rig.connect()
      rig.run(for: 20 * .second)
    }
    #expect(rig.heard("2201019") == polls && rig.heard("220101") == 1 && rig.status == "car-asleep")
    rig.adapter.answer("ATRV", "12.5V\r\r>")
    rig.run(for: 31 * .second)
    #expect(rig.status == "polling" && rig.fault == nil)
  }

  /// A petrol car with the given battery voltage.
  struct WeakCar: Car {
    let volts: @Sendable (Instant) -> Int
    var isDead = false
    /// Ignition on, engine off.
    var car = PetrolCar(.can11, PauseConditionsTests.turned((.on, 0)))

    init(volts: @escaping @Sendable (Instant) -> Int, isDead: Bool = false) { (self.volts, self.isDead) = (volts, isDead) }

    var bus: DiagnosticBus { car.bus }
    var padding: UInt8? { car.padding }
    var ignition: Ignition { car.ignition }
    func supplyMillivolts(at now: Instant) -> Int { volts(now) }
    mutating func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
      isDead ? [] : car.replies(to: request, at: address, now)
    }
  }
}
