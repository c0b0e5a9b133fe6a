// The figures of trips, charges and parked periods against the truth of the simulated vehicle.

import Testing
import Trips

@Suite("Figures of periods") struct StatisticsTests {
  /// Whether a quantity states a bound that holds.
  private func isTrue(_ quantity: Quantity?, _ truth: Double, maxBound: Double, _ source: Quantity.Source) -> Bool {
    guard let quantity else { return false }
    return abs(quantity.value - truth) <= quantity.bound + 1e-9 && quantity.bound <= maxBound && quantity.source == source
  }

  @Test func `a trip of an electric car`() throws {
    var vehicle = SimulatedVehicle(.eGMP)
    vehicle.emit(.batteryTemperature, 20)
    vehicle.park(120)
    vehicle.drive(1800, 60, power: 12)
    vehicle.idle(120)
    vehicle.drive(299, 70, power: -6)
    vehicle.emit(.batteryTemperature, 24)
    vehicle.drive(1, 70, power: -6)
    vehicle.park(400)
    let trip = try #require(Replay(vehicle).trips.first)
    let figures = trip.statistics
    let distance = 30.0 + 70.0 / 12
    #expect(isTrue(figures.distance, distance, maxBound: 1.6, .odometer))
    // The integral decides within the resolution of the odometer.
    #expect(abs((figures.distance?.value ?? 0) - distance) < 0.1)
    #expect(isTrue(figures.regenerated, 0.5, maxBound: 0.2, .counters))
    let energy = 6 + 0.5 * 120 / 3600 - 0.5
    #expect(isTrue(figures.energy, energy, maxBound: 0.4, .counters))
    #expect(isTrue(figures.energyPer100Kilometres, energy / distance * 100, maxBound: 2.5, .counters))
    #expect(abs((figures.standingEnergy ?? 0) - 0.5 * 120 / 3600) < 0.01)
    #expect(figures.drivenTime / 1_000_000 == 2099 && figures.standingTime / 1_000_000 == 120 && figures.unknownTime == 0)
    #expect(figures.maxSpeed == 70)
    #expect(abs((figures.meanSpeed ?? 0) - distance / (2100.0 / 3600)) < 0.5)
    #expect(figures.odometer == .init(20_000, 20_035))
    #expect(figures.stateOfCharge.start == 80 && abs((figures.stateOfCharge.end ?? 0) - 72) <= 0.5)
    #expect(figures.batteryTemperature == .init(20, 24))
    #expect(trip.pauses.count == 1 && trip.journey == trip.start)
  }

  @Test func `the distance across a gap comes from the odometer`() throws {
    var vehicle = SimulatedVehicle(.eGMP)
    vehicle.park(120)
    vehicle.drive(600, 60)
    vehicle.offline(300, 60, power: 10)
    vehicle.drive(600, 60)
    vehicle.park(400)
    let figures = try #require(Replay(vehicle).trips.first).statistics
    #expect(isTrue(figures.distance, 25, maxBound: 1.5, .odometer))
    #expect(isTrue(figures.energy, 25.0 / 6, maxBound: 0.4, .counters))
    #expect(figures.unknownTime / 1_000_000 == 301)
  }

  @Test(arguments: [true, false]) func `the time asleep is no part of the next trip`(_ isStateFirst: Bool) throws {
    var vehicle = SimulatedVehicle(.eGMP)
    vehicle.park(60)
    vehicle.drive(600, 60)
    vehicle.park(640)
    vehicle.state("parked")
    vehicle.sleep(39_000)
    if isStateFirst { vehicle.state("polling") }
    vehicle.idle(10)
    vehicle.state("polling")
    vehicle.drive(600, 60)
    vehicle.park(400)
    let trips = Replay(vehicle).trips
    try #require(trips.count == 2)
    #expect(trips[1].statistics.drivenTime / 1_000_000 >= 590 && trips[1].statistics.unknownTime / 1_000_000 <= 15)
    #expect(abs((trips[1].statistics.distance?.value ?? 0) - 10) < 0.5)
  }

  @Test func `without odometer and counters the bound covers a gap`() throws {
    let model = SimulatedVehicle.Model(odometerResolution: nil, counters: false)
    var vehicle = SimulatedVehicle(model)
    vehicle.park(120)
    vehicle.drive(600, 60)
    vehicle.offline(300, 60, power: 10)
    vehicle.drive(600, 60)
    vehicle.park(400)
    let figures = try #require(Replay(vehicle).trips.first).statistics
    #expect(isTrue(figures.distance, 25, maxBound: 6, .speed))
    #expect(isTrue(figures.energy, 25.0 / 6, maxBound: 1, .power))
  }

  /// Cars with a profile of kind obd, such as a VW ID.4, report the current five times per second and the voltage twice, but no power.
  @Test func `a trip has energy if the car reports current and voltage in different responses, and no power`() throws {
    var replay = Replay()
    let origin: Int64 = 1_790_000_000_000_000
    func add(_ property: String, _ unit: String, _ value: Double, at milliseconds: Int) throws {
      let signal = try #require(Signal(property: property, type: .float, unit: unit))
      replay.add(signal.sample(.value(.float(value)), at: origin + Int64(milliseconds) * 1000))
    }
    let (parked, driven) = (60_000, 1_260_000)
    for time in stride(from: 0, to: driven + 400_000, by: 100) {
      let isDriving = (parked..<driven).contains(time)
      if time % 200 == 0 { try add("speed", "km/h", isDriving ? 90 : 0, at: time) }
      if time % 200 == 100 { try add("battery-current", "A", isDriving ? 50 : 1, at: time) }
      if time % 500 == 300 { try add("battery-voltage", "V", isDriving ? 360 : 366, at: time) }
      if time % 1000 == 0 { try add("state-of-charge", "%", 80 - Double(max(0, time - parked)) / 200_000, at: time) }
    }
    replay.advance(to: origin + Int64(driven + 400_000) * 1000)
    let trip = try #require(replay.trips.first)
    // 18 kW for 20 minutes.
    #expect(isTrue(trip.statistics.energy, 6, maxBound: 0.3, .power), "\(String(describing: trip.statistics.energy))")
    #expect(trip.statistics.energyPer100Kilometres.map { (19...21).contains($0.value) } == true)
  }

  @Test func `the figures of a drive without data come from the odometer and the counters`() throws {
    var vehicle = SimulatedVehicle(.eGMP)
    vehicle.park(600)
    vehicle.offline(3000)
    vehicle.offline(1200, 60, power: 10)
    vehicle.offline(4000)
    vehicle.park(400)
    let replay = Replay(vehicle)
    let trip = try #require(replay.trips.first)
    #expect(trip.marks == .unrecorded)
    #expect(isTrue(trip.statistics.distance, 20, maxBound: 1, .odometer))
    #expect(isTrue(trip.statistics.energy, 20.0 / 6, maxBound: 0.2, .counters))
    #expect(trip.statistics.drivenTime == 0 && trip.statistics.maxSpeed == nil)
    #expect(replay.parkedPeriods.last?.statistics.energy.map { abs($0.value) < 0.01 } == true)
  }

  @Test func `a charge`() throws {
    var vehicle = SimulatedVehicle(.kona)
    vehicle.charge = 20
    vehicle.emit(.batteryTemperature, 15)
    vehicle.park(100)
    vehicle.emit(.dcPlug, 1)
    vehicle.plugIn(600, kilowatts: 70)
    vehicle.emit(.batteryTemperature, 19)
    vehicle.plugIn(600, kilowatts: 50)
    vehicle.emit(.dcPlug, 0)
    vehicle.park(2400)
    let charge = try #require(Replay(vehicle).charges.first)
    let figures = charge.statistics
    #expect(charge.marks == [])
    #expect(isTrue(figures.charged, 20, maxBound: 0.2, .counters))
    #expect(figures.maxChargePower == 70 && figures.chargeType == .dc)
    #expect(abs((figures.meanChargePower ?? 0) - 60) < 0.5)
    #expect(figures.stateOfCharge.start == 20 && figures.stateOfCharge.end == 48.5)
    #expect(figures.batteryTemperature == .init(15, 19))
    #expect(figures.chargeCurve.count == 29)
    #expect(figures.chargeCurve.first.map { $0.stateOfCharge == 20 && abs($0.power - 70) < 1 } == true)
    #expect(figures.chargeCurve.last.map { $0.stateOfCharge == 48 && abs($0.power - 50) < 1 } == true)
  }

  @Test func `a charge that is derived from the current is marked, and its type is known only above AC power`() throws {
    for (power, type) in [(7.0, Statistics.ChargeType?.none), (120, .dc)] {
      var vehicle = SimulatedVehicle(.eGMP)
      vehicle.charge = 10
      vehicle.park(100)
      vehicle.plugIn(900, kilowatts: power)
      vehicle.park(2400)
      let charge = try #require(Replay(vehicle).charges.first)
      #expect(charge.marks == .derived)
      #expect(charge.statistics.chargeType == type)
      #expect(isTrue(charge.statistics.charged, power / 4, maxBound: 0.2, .counters))
    }
  }

  /// The first minute is charging too, although it is certain only at its end.
  @Test func `the mean power of a derived charge is not above its maximum`() throws {
    var vehicle = SimulatedVehicle(.eGMP)
    vehicle.charge = 10
    vehicle.park(1)
    vehicle.plugIn(900, kilowatts: 120)
    vehicle.park(2400)
    let charge = try #require(Replay(vehicle).charges.first)
    let figures = charge.statistics
    #expect(charge.pauses.isEmpty, "\(charge.pauses)")
    #expect(figures.chargingTime.map { $0 / 1_000_000 } == 899)
    #expect(figures.maxChargePower == 120 && figures.meanChargePower.map { (119.9...120.0001).contains($0) } == true, "\(figures)")
  }

  /// The power is highest before the charge is certain.
  @Test func `the maximum power of a derived charge contains that of its first minute`() throws {
    var vehicle = SimulatedVehicle(.eGMP)
    vehicle.charge = 10
    vehicle.park(1)
    vehicle.plugIn(30, kilowatts: 150)
    vehicle.plugIn(900, kilowatts: 60)
    vehicle.park(2400)
    let charge = try #require(Replay(vehicle).charges.first)
    #expect(charge.statistics.maxChargePower == 150)
  }

  @Test func `a resumed charge contains the energy of the gap once`() throws {
    var vehicle = SimulatedVehicle(.eGMP)
    vehicle.charge = 20
    vehicle.park(100)
    vehicle.plugIn(1800, kilowatts: 7)
    vehicle.offline(7200, power: -7)
    vehicle.plugIn(1800, kilowatts: 7)
    vehicle.park(2400)
    let charges = Replay(vehicle).charges
    #expect(charges.count == 1)
    #expect(isTrue(charges.first?.statistics.charged, 21, maxBound: 0.2, .counters))
    #expect(charges.first?.marks == [.derived, .interrupted])
    #expect(charges.first?.statistics.meanChargePower.map { abs($0 - 7) < 0.1 } == true)
  }

  @Test func `a longboard ride`() throws {
    var vehicle = SimulatedVehicle(.board)
    vehicle.park(20)
    vehicle.drive(720, 25, power: 0.5)
    vehicle.drive(60, -15, power: -0.2)
    vehicle.sleep(1200, state: "waiting")
    let figures = try #require(Replay(vehicle).trips.first).statistics
    // The last second of motion is not recorded.
    #expect(isTrue(figures.distance, 5.25 - 15.0 / 3600, maxBound: 0.1, .odometer))
    #expect(figures.maxSpeed == 25)
    let wattHoursPerKilometre = figures.energyPer100Kilometres.map { $0.value * 10 } ?? 0
    #expect(abs(wattHoursPerKilometre - (100 - 200.0 / 60) / 5.25) < 0.5)
  }

  @Test(arguments: [Quantity.Source.fuelRate, .fuelMassRate, .airFlow, .fuelLevel]) func `the fuel comes from the best source`(
    _ source: Quantity.Source
  ) throws {
    var vehicle = SimulatedVehicle(.petrol)
    if source != .fuelRate { vehicle.absent = [.fuelRate] }
    vehicle.emit("ignition-type", .string, nil, .string("spark"))
    vehicle.emit(.fuelLevel, 60)
    vehicle.park(60)
    for _ in 0..<1800 {
      if source == .fuelMassRate { vehicle.emit(.fuelMassRate, 4.4 * 747 / 3600) }
      if source == .airFlow { vehicle.emit(.airFlow, 4.4 * 747 / 3600 * 14.7) }
      vehicle.drive(1, 60)
    }
    vehicle.emit(.fuelLevel, 56)
    vehicle.drive(1, 60)
    vehicle.park(300)
    vehicle.sleep(900)
    var rules = PeriodRules()
    rules.tankVolume = 55
    let figures = try #require(Replay(vehicle, rules: rules).trips.first).statistics
    #expect(isTrue(figures.fuel, 2.2, maxBound: source == .fuelLevel ? 1.7 : 0.25, source))
    #expect(isTrue(figures.fuelPer100Kilometres, 2.2 / 30 * 100, maxBound: 6, source))
    #expect(figures.energy == nil && figures.regenerated == nil)
  }

  @Test func `trips of one journey share its start`() {
    var vehicle = SimulatedVehicle(.eGMP)
    for pause in [1800, 3 * 3600, 600] {
      vehicle.park(60)
      vehicle.drive(600, 50)
      vehicle.park(pause)
    }
    let trips = Replay(vehicle).trips
    #expect(trips.count == 3)
    #expect(Set(trips.compactMap(\.journey)).count == 2 && trips.first?.journey == trips.dropFirst().first?.journey)
  }

  @Test func `marks name what is uncertain`() {
    let marks = Dictionary(uniqueKeysWithValues: Scenario.golden.map { ($0.name, Replay($0.run()).trips.map(\.marks)) })
    #expect(marks["towing: the wheels turn with the ignition off"] == [.towed])
    #expect(marks["90 s of lost Bluetooth during the drive"] == [.interrupted])
    #expect(marks["no data for 40 min, in which the odometer moved"] == [.interrupted])
    #expect(marks["a drive without the adapter"] == [.unrecorded])
    #expect(marks["a commute"] == [[]])
  }

  @Test func `wrong values do not count`() throws {
    let scenario = try #require(Scenario.golden.first { $0.name == "wrong values" })
    let figures = try #require(Replay(scenario.run()).trips.first).statistics
    #expect(figures.maxSpeed == 50)
    #expect(isTrue(figures.distance, 50.0 / 6, maxBound: 1.5, .odometer))
    #expect(isTrue(figures.energy, 10.0 / 6, maxBound: 0.4, .counters))
    #expect(figures.stateOfCharge.end.map { $0 > 70 } == true)
  }
}
