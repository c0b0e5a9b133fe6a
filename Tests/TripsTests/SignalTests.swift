// The properties that the kinds declare have the roles that they should have.

import Testing
import Trips

@testable import Protocols

@Suite("Roles of properties") struct SignalTests {
  private func roles(_ properties: [Property]) -> [String: Role] {
    var roles: [String: Role] = [:]
    for property in properties { roles[property.name] = Signal(property: property.name, type: property.type, unit: property.unit)?.role }
    return roles
  }

  @Test func `an electric Hyundai or Kia`() {
    let rows = BMSRecord.entries.map(\.dataRow) + ManufacturerRecord.all.flatMap(\.rows)
    #expect(
      roles(rows.map(\.property)) == [
        "speed": .speed, "speed-brakes": .fallbackSpeed, "rpm": .motorSpeed, "rpm-2": .secondMotorSpeed, "gear": .gear,
        "ignition": .ignition, "odometer": .odometer, "state-of-charge": .stateOfCharge, "state-of-charge-display": .displayedStateOfCharge,
        "battery-current": .batteryCurrent, "battery-voltage": .batteryVoltage, "battery-power": .batteryPower, "energy-in": .energyIn,
        "energy-out": .energyOut, "charging": .charging, "ac-plug": .acPlug, "dc-plug": .dcPlug,
        "battery-temperature-max": .batteryTemperature, "outdoor-temperature": .outdoorTemperature,
      ])
  }

  @Test(arguments: VehicleProfile.all) func `cars with a profile have the values from which energy is computed`(_ profile: VehicleProfile) {
    let roles = Set(roles(profile.signals.map(\.row.property)).values)
    #expect(roles.isSuperset(of: [.batteryCurrent, .batteryVoltage, .stateOfCharge]))
  }

  @Test func `a Tesla that is listened to`() throws {
    let signals = try #require(CANProfile(name: "tesla-model-3")).signals(with: [])
    #expect(
      roles(signals.map(\.property)) == [
        "speed": .speed, "gear": .gear, "odometer": .odometer, "battery-voltage": .batteryVoltage, "battery-current": .batteryCurrent,
        "battery-power": .batteryPower, "state-of-charge": .stateOfCharge, "state-of-charge-display": .displayedStateOfCharge,
        "charging": .charging, "ac-plug": .acPlug, "dc-plug": .dcPlug, "battery-temperature-max": .batteryTemperature,
        "outdoor-temperature": .outdoorTemperature, "energy-out": .energyOut, "energy-in": .energyIn,
      ])
  }

  @Test func `a car of SAE J1979`() {
    #expect(
      roles(StandardParameter.all.values.flatMap(\.rows).map(\.property)) == [
        "speed": .speed, "rpm": .engineSpeed, "odometer": .odometer, "hybrid-battery-remaining": .stateOfCharge, "fuel-rate": .fuelRate,
        "fuel-mass-rate": .fuelMassRate, "air-flow": .airFlow, "air-flow-a": .airFlow, "commanded-lambda": .lambda,
        "fuel-level": .fuelLevel,
        "fuel-type": .fuelType, "ignition-type": .ignitionType, "ambient-temperature": .outdoorTemperature,
      ])
  }

  @Test func `the longboards`() throws {
    #expect(
      roles(ELCommProperty.properties(period: .second)) == ["speed": .speed, "battery": .stateOfCharge, "total-distance": .odometer])
    let options = try VESCOptions(Setup(device: "board"))
    #expect(
      roles(VESCProperty.properties(options, period: .second)) == [
        "speed": .speed, "battery": .stateOfCharge, "total-distance": .odometer, "battery-voltage": .batteryVoltage,
        "battery-current": .batteryCurrent, "battery-power": .batteryPower, "rpm": .motorSpeed, "energy-used": .energyOut,
        "energy-regenerated": .energyIn,
      ])
  }

  @Test func `units are converted, and a property with another unit is not a signal`() {
    #expect(
      Signal(property: "battery-power", type: .float, unit: "W")?.sample(.value(.float(1500)), at: 1) == Sample(1, .batteryPower, 1.5))
    #expect(Signal(property: "energy-used", type: .float, unit: "Wh")?.scale == 0.001)
    #expect(Signal(property: "speed", type: .float, unit: "m/s") == nil)
    #expect(Signal(property: "coolant-temperature", type: .int, unit: "°C") == nil)
  }

  @Test func `absences and values of another type are absent`() {
    let speed = Signal(property: "speed", type: .float, unit: "km/h")
    for content in [Reading.Content.absent("stale"), .value(.list([])), .value(.string("fast")), .value(.float(.nan))] {
      #expect(speed?.sample(content, at: 1) == Sample(1, .speed, nil))
    }
  }

  @Test(arguments: [
    ("parked", DeviceState.resting), ("car-asleep", .resting), ("adapter-asleep", .resting), ("car-silent", .silent), ("waiting", .down),
    ("polling", .responding), ("live", .responding), ("driving", .responding), ("anything", .responding),
  ])
  func `the name of a state`(_ name: String, _ state: DeviceState) {
    #expect(DeviceState(name) == state)
    #expect(Signal.state.sample(.value(.string(name)), at: 1).value == state.rawValue)
  }
}
