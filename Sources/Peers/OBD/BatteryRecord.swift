// Data record 01 of the BMS: the response to 220101 (or 2101), 59 bytes, counted from the first byte after the echoed identifier.
// Numbers are big endian; s = signed; `/10 A`: divide by 10 to get A. Source: captures of Kona, Niro, EV6, Ioniq and Soul.
//
//   0-3 bitmap of fields · 4 SOC /2 % · 5-6 max charge and 7-8 max discharge power /100 kW · 9 status bits
//   10-11s current /10 A · 12-13 voltage /10 V · 14s max and 15s min temperature · 16-20s modules 1-5 · 22s inlet
//   23 max cell voltage /50 V, 24 its cell number · 25 min cell voltage /50 V, 26 its cell number
//   27 fan status, 28 fan Hz · 29 12 V battery /10 V · 30-33 charged and 34-37 discharged /10 Ah
//   38-41 charged and 42-45 discharged /10 kWh · 46-49 operating time s · 50 ignition bits
//   51-52 inverter V · 53-54s and 55-56s rpm of motors 1 and 2 · 57-58 isolation resistance kΩ

/// The constant fields of the battery record of a car.
struct BatteryRecord: Sendable {
  var header: [UInt8]  // positive response and identifier
  var fieldBitmap: UInt32
  var maxPower: (charge: UInt16, discharge: UInt16)
  var status: UInt8
  var inletTemperature: UInt8
  var ignitionBits: UInt8
  var isolationResistance: UInt16
  /// Whether the car has only one motor, whose speed is in the record twice.
  var repeatsMotorSpeed = false

  func bytes(_ sample: DriveCycle.Sample, cells: Double, supplyMillivolts: Int) -> [UInt8] {
    let temperature = Int(sample.batteryTemperature)
    let cell = BatteryRecord.cellVoltage(sample, cells)
    var record = BigEndianWriter(header)
    record.add(fieldBitmap)
    record.add(UInt8(clamping: Int((sample.stateOfCharge * 2).rounded())))
    record.add(maxPower.charge)
    record.add(maxPower.discharge)
    record.add(status)
    record.add(Int16(clamping: Int((sample.current * 10).rounded())))
    record.add(UInt16(clamping: Int((sample.voltage * 10).rounded())))
    for offset in [1, -1, 0, 1, 0, -1, 0] { record.add(Int8(clamping: temperature + offset)) }
    record.add(UInt8(0))
    record.add(inletTemperature)
    record.add([cell &+ 1, BatteryRecord.highestCell, cell, cells > 112 ? 113 : 65] as [UInt8])
    record.add([0, 0, UInt8(clamping: (supplyMillivolts + 50) / 100)] as [UInt8])
    // The counters do not start at 0.
    for (initial, added) in [(3184, sample.chargeIn), (3026, sample.chargeOut), (2210, sample.energyIn), (2058, sample.energyOut)] {
      record.add(UInt32(clamping: Int((Double(initial) + added) * 10)))
    }
    record.add(UInt32(clamping: 2_301_462 + Int(sample.seconds)))
    record.add(ignitionBits)
    record.add(UInt16(clamping: Int(sample.voltage.rounded())))
    let motorSpeed = Int16(clamping: Int(sample.motorSpeed.rounded()))
    record.add([motorSpeed, repeatsMotorSpeed ? motorSpeed : 0])
    record.add(isolationResistance)
    return record.bytes
  }

  /// The number of the cell whose voltage is one step above all others.
  static let highestCell: UInt8 = 19

  /// The voltage of all other cells in 1/50 V.
  static func cellVoltage(_ sample: DriveCycle.Sample, _ cells: Double) -> UInt8 {
    UInt8(clamping: Int((sample.voltage * 10).rounded() * 5 / cells))
  }
}
