// The PIDs of service 01 of a simulated petrol car, as their data bytes. The bitmaps of supported PIDs are derived from these tables.
// Source: SAE J1979 (ISO 15031-5), lengths and formulas. Enumerations: fuel system 02 closed loop, 04 open loop while coasting; OBD
// standard 06 EOBD; fuel type 01 petrol.

/// The state of the car that determines the values.
struct PetrolState: Sendable {
  var sample: PetrolDrive.Sample
  var memory: TroubleMemory
  /// The voltage at the connector in mV.
  var supplyMillivolts: Int
  /// The time since the engine start in s.
  var runTime: Double

  /// The time in s and the distance in km since the codes were cleared, either in this simulation or long before it.
  var sinceCleared: (seconds: Double, distance: Double) {
    guard let cleared = memory.cleared else { return (31_000 + sample.seconds, 407 + sample.distance) }
    return (max(0, sample.seconds - cleared.seconds), max(0, sample.distance - cleared.distance))
  }
}

enum PetrolParameters {
  /// Calculates the data bytes of a PID.
  typealias Parameter = @Sendable (PetrolState) -> [UInt8]

  /// The PIDs of the ECM.
  static let engine: [UInt8: Parameter] = [
    0x01: { $0.memory.readiness($0.sinceCleared.seconds) },
    0x03: { [!$0.sample.isRunning ? 0 : $0.sample.isFuelCut ? 0x04 : 0x02, 0] },
    0x04: { percent(min(100, $0.sample.load)) },
    0x05: { celsius(20 + 75 * $0.sample.warmth(60)) },
    0x06: { trim($0.sample.isFuelCut ? 0 : swing($0, 1.7) * 3) },
    0x07: { trim($0.memory.codes.isEmpty ? 2.3 : 9.4) },
    0x08: { trim($0.sample.isFuelCut ? 0 : swing($0, 1.3) * 2) },
    0x09: { _ in trim(1.6) },
    0x0A: { [$0.sample.isRunning ? 128 : 0] },
    0x0B: { byte($0.sample.isRunning ? 12 + $0.sample.load * 1.02 : 101) },
    0x0C: { word($0.sample.engineSpeed * 4) },
    0x0D: { byte(abs($0.sample.speed)) },
    0x0E: { byte(((!$0.sample.isRunning ? 0 : $0.sample.isFuelCut ? 20 : 32 - min(100, $0.sample.load) * 0.22) + 64) * 2) },
    0x0F: { celsius(17 + 14 * $0.sample.warmth(200)) },
    0x10: { word($0.sample.airFlow * 100) },
    0x11: { percent($0.sample.throttle) },
    0x13: { _ in [0x03] },
    0x14: { byte((0.45 + (($0.sample.isRunning ? swing($0, 1) : 0) * 0.35)) * 200) + trim($0.sample.isFuelCut ? 0 : swing($0, 1.7) * 3) },
    0x15: { byte(($0.sample.isRunning ? 0.66 : 0.45) * 200) + [0xFF] },
    0x1C: { _ in [0x06] },
    0x1F: { word($0.runTime) },
    0x21: { word($0.memory.codes.isEmpty ? 0 : 61 + $0.sample.distance) },
    0x2F: { percent(max(2, 64 - $0.sample.fuelUsed / 50 * 100)) },
    0x30: { [$0.memory.cleared == nil ? 41 : 0] },
    0x31: { word($0.sinceCleared.distance) },
    0x33: { _ in [101] },
    0x34: { word(lambda($0) * 32_768) + word(($0.sample.isFuelCut ? 2.6 : 128) * 256) },
    0x3C: { word((($0.sample.isRunning ? 90 + 560 * $0.sample.warmth(60) + min(100, $0.sample.load) : 340) + 40) * 10) },
    0x42: { word(Double($0.supplyMillivolts)) },
    0x43: { word($0.sample.load * 255 / 100) },
    0x44: { word(($0.sample.isFuelCut ? 1.99 : 1) * 32_768) },
    0x45: { percent(max(0, $0.sample.throttle - 11)) },
    0x46: { _ in celsius(17) },
    0x47: { percent($0.sample.throttle + 0.4) },
    0x48: { percent($0.sample.throttle + 0.8) },
    0x49: { percent($0.sample.pedal) },
    0x4A: { percent($0.sample.pedal / 2) },
    0x4B: { percent($0.sample.pedal) },
    0x4C: { percent($0.sample.throttle) },
    0x4D: { word($0.memory.codes.isEmpty ? 0 : 74 + $0.sample.seconds / 60) },
    0x4E: { word($0.sinceCleared.seconds / 60) },
    0x51: { _ in [0x01] },
    0x56: { _ in trim(0.8) + trim(0) },
    0x5C: { celsius(20 + 82 * $0.sample.warmth(300)) },
    0x5E: { word($0.sample.fuelRate * 20) },
    0x61: { byte(torque($0.sample, demanded: true) + 125) },
    0x62: { byte(torque($0.sample, demanded: false) + 125) },
    0x63: { _ in word(250) },
    0x69: { [0x07] + percent($0.sample.isRunning ? 12 : 0) + percent($0.sample.isRunning ? 11 : 0) + trim(-2) + [0, 0, 0] },
    // 0.745 kg/L.
    0x9D: { word($0.sample.fuelRate * 745 / 3600 * 50) + word($0.sample.fuelRate * 745 / 3600 * 50) },
    0xA6: { state in
      var value = BigEndianWriter([])
      value.add(UInt32(clamping: Int((48_213 + state.sample.distance) * 10)))
      return value.bytes
    },
  ]

  /// The PIDs of an ECM that reports its own scaling in PIDs 4F and 50. The maximum values are lambda 4, 2 mA of O2 sensor current, 510 kPa
  /// of manifold pressure and 1000 g/s of air flow.
  static let engineWithScaling: [UInt8: Parameter] = {
    let scaled: [UInt8: Parameter] = [
      0x0B: { byte(($0.sample.isRunning ? 12 + $0.sample.load * 1.02 : 101) / 2) },
      0x10: { word($0.sample.airFlow * 65.535) },
      0x34: { word(lambda($0) * 16_383.75) + word($0.sample.isFuelCut ? 54_067 : 32_768) },
      0x44: { word(($0.sample.isFuelCut ? 1.99 : 1) * 16_383.75) },
      0x4F: { _ in [4, 0, 2, 51] },
      0x50: { _ in [100, 0, 0, 0] },
    ]
    return engine.merging(scaled) { $1 }
  }()

  /// The PIDs of the TCM.
  static let transmission: [UInt8: Parameter] = [
    0x01: { [UInt8($0.memory.codes.count) & 0x7F, 0x04, 0, 0] },
    0x05: { celsius(20 + 66 * $0.sample.warmth(400)) },
    0x0C: { word($0.sample.engineSpeed * 4) },
    0x0D: { byte(abs($0.sample.speed)) },
  ]

  /// Returns the data of a PID or a bitmap, or nil if it is not supported.
  static func value(_ number: UInt8, of table: [UInt8: Parameter], _ state: PetrolState) -> [UInt8]? {
    number % 0x20 == 0 ? bitmap(from: number, of: Array(table.keys)) : table[number]?(state)
  }

  /// The bitmap of the 32 PIDs after `first`. The last bit is set if a later bitmap exists.
  static func bitmap(from first: UInt8, of numbers: [UInt8]) -> [UInt8]? {
    let highest = numbers.max() ?? 0
    guard first == 0 || first < highest else { return nil }
    var record = FixedRecordBuilder(4)
    for offset in 1...32 {
      let number = Int(first) + offset
      guard offset == 32 ? number < Int(highest) : number <= 255 && numbers.contains(UInt8(number)) else { continue }
      let index = (offset - 1) / 8
      record.put([record.bytes[index] | 0x80 >> UInt8((offset - 1) % 8)], at: index)
    }
    return record.bytes
  }

  private static func byte(_ value: Double) -> [UInt8] { [UInt8(max(0, min(255, value.rounded())))] }
  private static func word(_ value: Double) -> [UInt8] {
    let value = UInt16(max(0, min(65_535, value.rounded())))
    return [UInt8(value >> 8), UInt8(value & 0xFF)]
  }
  private static func percent(_ value: Double) -> [UInt8] { byte(value * 255 / 100) }
  private static func celsius(_ value: Double) -> [UInt8] { byte(value + 40) }
  private static func trim(_ value: Double) -> [UInt8] { byte((value + 100) * 128 / 100) }
  private static func lambda(_ state: PetrolState) -> Double { state.sample.isFuelCut ? 1.99 : 1 + swing(state, 1.7) * 0.015 }

  /// A triangle wave from -1 to 1 with this period in s, as in lambda control.
  private static func swing(_ state: PetrolState, _ period: Double) -> Double {
    let phase = state.sample.seconds.truncatingRemainder(dividingBy: period) / period
    return phase < 0.5 ? 4 * phase - 1 : 3 - 4 * phase
  }

  /// Torque in % of 250 Nm, from wheel power and engine speed; negative on overrun.
  private static func torque(_ sample: PetrolDrive.Sample, demanded: Bool) -> Double {
    guard sample.isRunning else { return 0 }
    let torque = sample.isFuelCut ? -12 : max(0, sample.power) * 9549 / sample.engineSpeed / 250 * 100 + 7
    return min(125, torque) + (demanded && !sample.isFuelCut ? 1 : 0)
  }
}
