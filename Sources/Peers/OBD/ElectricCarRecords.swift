// The data records of an electric car, except the first one of the BMS. Byte positions count from the first byte after the echoed
// identifier; s = signed; LE = little endian, others big endian. The formulas decode: `/10 %` means that the raw value divided by 10 is
// in %, and x stands for the raw value. Bytes not listed are constant, mostly 0.
// Source: captures recorded by owners.
//
//   7E4 22/21 05   0-3 bitmap of fields · 9-15s modules 6-12 °C · 16-17 max charge and 18-19 max discharge power /100 kW
//                  20 cell voltage deviation /50 V · 22 airbag signal duty % · 23s, 24s heaters °C · 25-26 SoH /10 %
//                  27 number of the most deteriorated cell · 28-29 deterioration of the least deteriorated cell /10 % · 30 its number
//                  E-GMP: 28-29 remaining energy instead, 2 Wh per bit
//                  31 displayed SoC /2 % · 39-42s modules 13-16 °C, E-GMP only
//   7E4 22/21 02…  4-35 cells 1-32 /50 V; cells 33-96 in 03 and 04, cells 97-192 in 0A, 0B and 0C
//   7E4 220106     4s coolant °C · 24 b0 charging
//   7E2 2101       5 b0 P b1 R b2 N b3 D · 12 pedal /2 % · 13-14s LE /100 mph
//   7E2 2102       21-22s current of the 12 V battery /1000 A · 23 SoC of the 12 V battery %
//   7E2 22E004     8-9 LE pedal /512 % · 10-11s LE /64 km/h · 12-13 LE supply voltage, 0.4883 mV per bit
//   7E3 2102       14s inverter, 15s motor °C
//   7E5 22E011     DC-DC converter: 9 temperature - 100 °C · 10-11 output /1000 V · 12-13 output /100 A · 14-15 input /10 V
//                  12 V battery: 18-19 current 327 - x/100 A · 20 SoC % · 21-22 voltage x/1000 + 6 V · 24 temperature /2 - 40 °C
//   7D1 220104     6 and 10-13 km/h · 8 gear: 1 P and N, 2 R, 4 D
//   7B3 220100     temperatures: 5 indoor, 6 outdoor /2 - 40 °C · 29 km/h (simulated for E-GMP only)
//   7C6 22B002     6-8 odometer km
//   7A0 22C00B     from 4 on, each tyre: pressure /5 psi, temperature - 50 °C; stride 4 (E-GMP 5)

extension ElectricCar {
  /// Builds a data record from the car, its driving state, and the voltage of the 12 V battery in mV.
  typealias DataRecord = @Sendable (ElectricCar, DriveCycle.Sample, Int) -> [UInt8]

  /// The data records of an ECU by identifier; nil if this car has no such ECU.
  func records(of ecu: UInt32) -> [UInt16: DataRecord]? {
    (model == .ioniq28 ? ElectricCar.olderRecords : ElectricCar.newerRecords[model])?[ecu]
  }

  private static let olderRecords: [UInt32: [UInt16: DataRecord]]? = [
    0x7E2: [0x01: vehicleControl, 0x02: lowVoltageBattery],
    0x7E3: [0x02: motorTemperatures],
    0x7E4: [0x02: cells(0), 0x03: cells(1), 0x04: cells(2), 0x05: batteryState],
  ]
  private static let newerRecords: [Model: [UInt32: [UInt16: DataRecord]]] = {
    let common: [UInt32: [UInt16: DataRecord]] = [
      0x7E4: [0x0102: cells(0), 0x0103: cells(1), 0x0104: cells(2), 0x0105: batteryState, 0x0106: coolant],
      0x7B3: [0x0100: climate], 0x7C6: [0xB002: instruments], 0x7A0: [0xC00B: tyres],
    ]
    let eGMPOnly: [UInt32: [UInt16: DataRecord]] = [
      0x7E2: [0xE004: driverInput], 0x7E5: [0xE011: charger], 0x7D1: [0x0104: brakes],
      0x7E4: [0x010A: cells(3), 0x010B: cells(4), 0x010C: cells(5)],
    ]
    return [.kona: common, .eGMP: common.merging(eGMPOnly) { records, more in records.merging(more) { first, _ in first } }]
  }()

  private static let batteryState: DataRecord = { car, sample, _ in
    let isEGMP = car.model == .eGMP
    var record = FixedRecordBuilder(43)
    record.put(isEGMP ? [0xFF, 0xFB, 0x74, 0x0F] : car.model == .kona ? [0xFF, 0xF7, 0xE7, 0xFF] : [0xFF, 0xFF, 0xFF, 0xFF], at: 0)
    let temperature = sample.batteryTemperature
    for (module, offset) in [0.0, 1, 0, 0, -1, 0, 0].enumerated() { record.put(signed: temperature + offset, at: 9 + module) }
    let maxPower: (charge: Double, discharge: Double) = isEGMP ? (277, 277) : car.model == .kona ? (98, 170) : (90, 98)
    record.put(maxPower.charge * 100, bytes: 2, at: 16)
    record.put(maxPower.discharge * 100, bytes: 2, at: 18)
    record.put([1], at: 20)
    record.put([80], at: 22)
    for heater in 23...24 { record.put(signed: temperature + 3, at: heater) }
    let display = max(0, sample.stateOfCharge - 0.5)
    record.put(car.model == .ioniq28 ? 960 : 1000, bytes: 2, at: 25)
    if isEGMP {
      record.put(77_400 * sample.stateOfCharge / 100 / 2, bytes: 2, at: 28)
      for module in 39...42 { record.put(signed: temperature, at: module) }
    } else {
      record.put([7], at: 27)
      record.put(car.model == .ioniq28 ? 943 : 994, bytes: 2, at: 28)
      record.put([51], at: 30)
    }
    record.put(display * 2, bytes: 1, at: 31)
    return record.bytes
  }

  /// The voltages of 32 cells, starting at cell 32 · `part` + 1.
  private static func cells(_ part: Int) -> DataRecord {
    { car, sample, _ in
      let voltage = BatteryRecord.cellVoltage(sample, car.cells)
      let voltages = (1...32).map { position -> UInt8 in
        let number = part * 32 + position
        return Double(number) > car.cells ? 0 : number == Int(BatteryRecord.highestCell) ? voltage &+ 1 : voltage
      }
      return [0xFF, 0xFF, 0xFF, 0xFF] + voltages
    }
  }

  private static let coolant: DataRecord = { _, sample, _ in
    var record = FixedRecordBuilder(40)
    record.put([0xFF, 0xFF, 0xFF, 0xFF], at: 0)
    record.put(signed: sample.coolantTemperature, at: 4)
    return record.bytes
  }

  private static let vehicleControl: DataRecord = { car, sample, _ in
    var record = FixedRecordBuilder(22)
    record.put([0xFF, 0xE0, 0x00, 0x00], at: 0)
    record.put([sample.speed > 0 ? 0x08 : sample.speed < 0 ? 0x02 : 0x01], at: 5)
    record.put(car.pedalPosition(sample) * 2, bytes: 1, at: 12)
    record.put(little: sample.speed / 1.609344 * 100, at: 13)
    return record.bytes
  }

  private static let lowVoltageBattery: DataRecord = { _, _, _ in
    var record = FixedRecordBuilder(26)
    record.put(-1250, bytes: 2, at: 21)
    record.put([88], at: 23)
    return record.bytes
  }

  private static let motorTemperatures: DataRecord = { _, sample, _ in
    var record = FixedRecordBuilder(24)
    record.put(signed: sample.coolantTemperature + 4, at: 14)
    record.put(signed: sample.coolantTemperature + 11, at: 15)
    return record.bytes
  }

  private static let driverInput: DataRecord = { car, sample, supply in
    var record = FixedRecordBuilder(31)
    record.put(little: car.pedalPosition(sample) * 512, at: 8)
    record.put(little: sample.speed * 64, at: 10)
    record.put(little: Double(supply) / 0.4883, at: 12)
    return record.bytes
  }

  private static let charger: DataRecord = { _, sample, supply in
    var record = FixedRecordBuilder(46)
    record.put([131], at: 9)
    record.put(Double(supply), bytes: 2, at: 10)
    record.put(18.5 * 100, bytes: 2, at: 12)
    record.put(7310, bytes: 2, at: 14)
    record.put((327 - 1.25) * 100, bytes: 2, at: 18)
    record.put([88], at: 20)
    record.put(Double(supply) - 6000, bytes: 2, at: 21)
    record.put((sample.batteryTemperature + 40) * 2, bytes: 1, at: 24)
    return record.bytes
  }

  private static let brakes: DataRecord = { _, sample, _ in
    var record = FixedRecordBuilder(43)
    record.put(abs(sample.speed), bytes: 1, at: 6)
    for wheel in 10...13 { record.put(abs(sample.speed), bytes: 1, at: wheel) }
    record.put([sample.speed > 0 || sample.isInDrive ? 4 : sample.speed < 0 ? 2 : 1], at: 8)
    return record.bytes
  }

  private static let climate: DataRecord = { car, sample, _ in
    var record = FixedRecordBuilder(36)
    record.put([0x7E, 0x50], at: 0)
    record.put((14 + 7 * sample.seconds / (sample.seconds + 240) + 40) * 2, bytes: 1, at: 5)
    record.put((sample.outdoorTemperature + 40) * 2, bytes: 1, at: 6)
    if car.model == .eGMP { record.put(abs(sample.speed), bytes: 1, at: 29) }
    return record.bytes
  }

  private static let instruments: DataRecord = { _, sample, _ in
    var record = FixedRecordBuilder(12)
    record.put([0xE0, 0x00, 0x00, 0x00], at: 0)
    record.put(15_230 + sample.distance, bytes: 3, at: 6)
    return record.bytes
  }

  private static let tyres: DataRecord = { car, sample, _ in
    let stride = car.model == .eGMP ? 5 : 4
    var record = FixedRecordBuilder(car.model == .eGMP ? 33 : 4 + 4 * stride)
    record.put([0xFF, 0xFF, 0x00, 0x00], at: 0)
    for (tyre, pressure) in [36.2, 36.4, 35.8, 36.0].enumerated() {
      let temperatureRise = 8 * sample.seconds / (sample.seconds + 900)
      record.put((pressure + temperatureRise / 6) * 5, bytes: 1, at: 4 + tyre * stride)
      record.put(12 + temperatureRise + 50, bytes: 1, at: 5 + tyre * stride)
    }
    return record.bytes
  }

  /// The accelerator pedal position in %, from the power drawn.
  func pedalPosition(_ sample: DriveCycle.Sample) -> Double {
    sample.speed == 0 ? 0 : min(100, max(0, sample.current) * sample.voltage / 1500)
  }
}
