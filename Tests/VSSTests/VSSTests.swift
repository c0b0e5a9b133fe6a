// The table of VSS signals: it fits the properties that the protocols declare, and converts signs, units and numbering.

import Protocols
import Testing
import VSS

@Suite struct VSSTests {
  private let electric = ["state-of-charge", "speed"]

  private func convert(_ property: String, _ unit: String?, _ value: Value, of properties: [String]? = nil) -> [String: Value] {
    let signals = VSSTable.signals(for: property, unit: unit, of: properties ?? electric)
    return Dictionary(uniqueKeysWithValues: signals.compactMap { signal in signal.value(value).map { (signal.path, $0) } })
  }

  @Test func `signs, units and numbers are those of VSS`() {
    #expect(convert("battery-power", "kW", .float(-7.2)) == ["Vehicle.Powertrain.TractionBattery.CurrentPower": .float(7200)])
    #expect(convert("battery-current", "A", .float(12.5)) == ["Vehicle.Powertrain.TractionBattery.CurrentCurrent": .float(-12.5)])
    #expect(convert("odometer", "km", .float(25_413.4)) == ["Vehicle.TraveledDistance": .int(25_413_400)])
    #expect(convert("speed", "km/h", .float(-4)) == ["Vehicle.Speed": .float(4), "Vehicle.IsMoving": .bool(true)])
    #expect(convert("cell-voltage-max-cell", nil, .int(1)) == ["Vehicle.Powertrain.TractionBattery.CellVoltage.IdMax": .int(0)])
    #expect(convert("ignition", nil, .bool(true)) == ["Vehicle.LowVoltageSystemState": .string("ON")])
    #expect(convert("engine-time", "s", .int(7200)) == ["Vehicle.Powertrain.CombustionEngine.EngineHours": .float(2)])
  }

  @Test func `gears are numbers, and park is no current gear`() {
    let (current, selected) = ("Vehicle.Powertrain.Transmission.CurrentGear", "Vehicle.Powertrain.Transmission.SelectedGear")
    #expect(convert("gear", nil, .string("drive")) == [current: .int(1), selected: .int(127)])
    #expect(convert("gear", nil, .string("park")) == [selected: .int(126)])
    #expect(convert("gear", nil, .string("park-or-neutral")) == [:])
  }

  @Test func `the engine of a car with a traction battery is its motor`() {
    #expect(convert("rpm", "rpm", .int(0)).keys.sorted() == ["Vehicle.Powertrain.ElectricMotor.Speed"])
    let paths = convert("rpm", "rpm", .float(800), of: ["rpm", "fuel-level"])
    #expect(paths["Vehicle.Powertrain.CombustionEngine.IsRunning"] == .bool(true) && paths.count == 2)
  }

  @Test func `other units, other types and values out of range give nothing`() {
    #expect(convert("battery-power", "W", .float(1)) == [:])
    #expect(convert("speed", "m/s", .float(1)) == [:])
    #expect(convert("vin", nil, .int(5)) == [:] && convert("charging", nil, .float(1)) == [:])
    #expect(convert("dtc-count", nil, .int(256)) == [:])
    #expect(convert("fuel-trim", "%", .float(1)) == [:])
  }

  @Test func `each signal is given once`() {
    let keys = VSSTable.all.map { "\($0.property) \($0.signal.path)" }
    #expect(Set(keys).count == keys.count && keys.count > 50)
    #expect(VSSTable.all.allSatisfy { $0.signal.path.wholeMatch(of: /Vehicle(\.[A-Z][A-Za-z0-9]*)+/) != nil })
  }
}
