// The battery's page 01 as the car sends it: the answer to 220101 (or 2101), byte by byte. Big endian, s = signed.
// It must never know who asked. Facts: the field layout confirmed against captures of Kona, Niro, EV6, Ioniq and Soul.
//
//   0-3 fields present · 4 SOC /2 % · 5-6 charge and 7-8 discharge power /100 kW · 9 status bits · 10-11s current /10 A
//   12-13 voltage /10 V · 14s max and 15s min temperature · 16-20s modules 1-5 · 22s inlet · 23 max cell /50 V, 24 its number
//   25 min cell, 26 its number · 27 fan status, 28 fan Hz · 29 12 V battery /10 V · 30-33 in and 34-37 out /10 Ah
//   38-41 in and 42-45 out /10 kWh · 46-49 operating time s · 50 ignition bits · 51-52 inverter V · 53-54s and 55-56s rpm
//   57-58 isolation kΩ        (counted from the first byte after the echoed identifier: 59 bytes)

/// What differs between the battery pages of two cars beside their values.
struct BatteryPage: Sendable {
  var head: [UInt8]  // positive response and identifier
  var fields: UInt32
  var power: (charge: UInt16, discharge: UInt16)
  var status: UInt8
  var inlet: UInt8
  var ignition: UInt8
  var isolation: UInt16

  func bytes(_ moment: DriveCycle.Moment, cells: Double) -> [UInt8] {
    let temperature = Int(moment.batteryTemperature)
    let tenths = (moment.voltage * 10).rounded()
    // The pack lies between all cells at their lowest and all at their highest.
    let cell = UInt8(clamping: Int(tenths * 5 / cells))
    var page = BigEndian(head)
    page.add(fields)
    page.add(UInt8(clamping: Int((moment.stateOfCharge * 2).rounded())))
    page.add(power.charge)
    page.add(power.discharge)
    page.add(status)
    page.add(Int16(clamping: Int((moment.current * 10).rounded())))
    page.add(UInt16(clamping: Int(tenths)))
    for offset in [1, -1, 0, 1, 0, -1, 0] { page.add(Int8(clamping: temperature + offset)) }
    page.add(UInt8(0))
    page.add(inlet)
    page.add([cell &+ 1, 19, cell, 113] as [UInt8])
    page.add([0, 0, ElectricCar.auxiliaryVoltage] as [UInt8])
    // The counters stood somewhere when this journey began.
    for (base, driven) in [(3184, moment.chargeIn), (3026, moment.chargeOut), (2210, moment.energyIn), (2058, moment.energyOut)] {
      page.add(UInt32(clamping: Int((Double(base) + driven) * 10)))
    }
    page.add(UInt32(clamping: 2_301_462 + Int(moment.seconds)))
    page.add(ignition)
    page.add(UInt16(clamping: Int(moment.voltage.rounded())))
    page.add(Int16(clamping: Int(moment.motorSpeed.rounded())))
    page.add(Int16(0))
    page.add(isolation)
    return page.bytes
  }
}

/// Bytes under construction, most significant first.
struct BigEndian {
  private(set) var bytes: [UInt8]

  init(_ head: [UInt8]) {
    bytes = head
    bytes.reserveCapacity(64)
  }

  mutating func add(_ more: [UInt8]) { bytes += more }

  mutating func add<Number: FixedWidthInteger>(_ number: Number) {
    for shift in stride(from: Number.bitWidth - 8, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
  }
}
