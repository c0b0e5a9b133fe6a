// An electric car and its ECUs. BatteryRecord has the first data record of the BMS, ElectricCarRecords the others.
// Source: data records of Hyundai and Kia, SAE J1979 services 01 and 09, ISO 14229 negative responses. ECUs: 7E0 drive unit · 7E2 VCU ·
// 7E3 MCU · 7E4 BMS · 7E5 on-board charger · 7D1 brakes · 7B3 climate · 7C6 instrument cluster · 7A0 body.

import Protocols

/// An electric car on the repeating drive cycle.
public struct ElectricCar: Car {
  /// The models.
  public enum Model: String, CaseIterable, Sendable {
    /// An E-GMP car with 77 kWh: supports 220101, rejects 2101.
    case eGMP = "e-gmp"
    /// An older car with 28 kWh: supports 2101, rejects 220101.
    case ioniq28 = "ioniq-28"
    /// A Kona with 64 kWh: supports 220101, does not respond to service 01.
    case kona
  }

  private static let driveUnit: UInt32 = 0x7E0
  private static let bms: UInt32 = 0x7E4
  /// The ECUs that receive functional requests; the others are behind the gateway.
  private static let functionalECUs: ClosedRange<UInt32> = 0x7E0...0x7E7

  /// The model of the car.
  public let model: Model
  public let padding: UInt8?
  public let ignition: Ignition
  private let cycle: DriveCycle
  private let record: BatteryRecord
  private let vin: String
  /// The driving state that `PlannedCar` sets, or nil to follow the drive cycle.
  var state: DriveCycle.Sample?
  public var bus: DiagnosticBus { .can11 }
  /// The number of cells in series.
  var cells: Double { cycle.vehicle.cells }

  /// Creates a car that started to drive at `origin`.
  public init(_ model: Model = .eGMP, origin: Instant = 0) { self.init(model, Ignition(origin: origin)) }

  /// Creates a car with this ignition.
  public init(_ model: Model, _ ignition: Ignition) {
    self.model = model
    self.ignition = ignition
    switch model {
    case .eGMP:
      (padding, vin, cycle) = (0xAA, "KNAC381AVN5000042", ElectricCar.longRange)
      record = BatteryRecord(
        header: [0x62, 0x01, 0x01], fieldBitmap: 0xEFFB_E7EF, maxPower: (0, 0), status: 0, inletTemperature: 0x24, ignitionBits: 0,
        isolationResistance: 3000)
    case .ioniq28:
      (padding, vin, cycle) = (0x00, "KMHC851JFHU000042", ElectricCar.small)
      record = BatteryRecord(
        header: [0x61, 0x01], fieldBitmap: 0xFFFF_FFFF, maxPower: (9000, 9800), status: 0x03, inletTemperature: 17, ignitionBits: 0x0D,
        isolationResistance: 1000)
    case .kona:
      (padding, vin, cycle) = (0x00, "KMHK581HFMU000042", ElectricCar.crossover)
      record = BatteryRecord(
        header: [0x62, 0x01, 0x01], fieldBitmap: 0xFFF7_E7FF, maxPower: (9800, 17_000), status: 0x01, inletTemperature: 17,
        ignitionBits: 0x0D, isolationResistance: 3000, repeatsMotorSpeed: true)
    }
  }

  static let longRange = DriveCycle(
    .init(
      mass: 2050, rollingResistance: 180, drag: 0.42, motorRPMPerKmh: 78.9, cells: 192, packResistance: 0.11, capacity: 111,
      initialStateOfCharge: 78))
  private static let small = DriveCycle(
    .init(
      mass: 1550, rollingResistance: 130, drag: 0.33, motorRPMPerKmh: 62.4, cells: 96, packResistance: 0.09, capacity: 78,
      initialStateOfCharge: 84))
  private static let crossover = DriveCycle(
    .init(
      mass: 1760, rollingResistance: 150, drag: 0.38, motorRPMPerKmh: 67.2, cells: 98, packResistance: 0.08, capacity: 180,
      initialStateOfCharge: 66))

  /// The driving state.
  func sample(at now: Instant) -> DriveCycle.Sample { state ?? cycle.sample(Double(ignition.drivingTime(at: now)) / 1e9) }

  /// The voltage at the connector in mV. The DC-DC converter charges the 12 V battery while the ignition is on.
  public func supplyMillivolts(at now: Instant) -> Int { ignition.supply(14_400, in: [.on, .run], at: now) }

  /// Returns the responses to a request. ECUs do not send negative responses to functional requests.
  public func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
    let isFunctional = address == bus.functionalAddress
    let ecus = isFunctional ? Array(ElectricCar.functionalECUs) : [address]
    var replies: [Reply] = []
    for ecu in ecus {
      guard let answer = answer(of: ecu, to: request, isFunctional: isFunctional, now), !(isFunctional && answer.first == 0x7F) else {
        continue
      }
      replies.append(Reply(id: ecu + 8, payload: answer, delay: Nanoseconds(replies.count) * 300 * .microsecond))
    }
    return replies
  }

  private func answer(of ecu: UInt32, to request: [UInt8], isFunctional: Bool, _ now: Instant) -> [UInt8]? {
    guard let service = request.first else { return nil }
    if ecu == ElectricCar.driveUnit { return driveUnitAnswer(service, request, now) }
    guard let records = records(of: ecu) else { return nil }
    // Of these ECUs, only the BMS responds to a functional TesterPresent.
    if service == 0x3E { return isFunctional && ecu != ElectricCar.bms ? nil : testerPresent(request) }
    if service == 0x19, record.header[0] == 0x62 { return troubleCodes(of: ecu, to: request) }
    let header = record.header
    guard service &+ 0x40 == header[0] else { return Reply.negativeResponse(service, 0x11) }
    guard request.count == header.count else { return Reply.negativeResponse(service, 0x13) }
    let identifier = request.dropFirst().reduce(0) { $0 << 8 | UInt16($1) }
    let (sample, supply) = (sample(at: now), supplyMillivolts(at: now))
    if ecu == ElectricCar.bms, request.dropFirst() == header.dropFirst() {
      return record.bytes(sample, cells: cells, supplyMillivolts: supply)
    }
    guard let makeRecord = records[identifier] else { return Reply.negativeResponse(service, service == 0x22 ? 0x31 : 0x12) }
    return [service &+ 0x40] + request.dropFirst() + makeRecord(self, sample, supply)
  }

  /// UDS service 19 02: the brake ECU reports a trouble code for a wheel speed sensor; the other ECUs report none.
  private func troubleCodes(of ecu: UInt32, to request: [UInt8]) -> [UInt8] {
    guard request.count == 3, request[1] == 0x02 else { return Reply.negativeResponse(0x19, 0x12) }
    return [0x59, 0x02, 0xFF] + (ecu == 0x7D1 && request[2] & 0x08 != 0 ? [0x50, 0x00, 0x64, 0x08] : [])
  }

  private func driveUnitAnswer(_ service: UInt8, _ request: [UInt8], _ now: Instant) -> [UInt8]? {
    switch (service, request.dropFirst().first) {
    case (0x3E, _): return testerPresent(request)
    case (0x01, .some) where request.count <= 7 && model != .kona:
      let sample = sample(at: now)
      let values = request.dropFirst().flatMap { parameter($0, sample, now) }
      return values.isEmpty ? nil : [0x41] + values
    case (0x09, 0x00): return [0x49, 0x00, 0x40, 0, 0, 0]
    case (0x09, 0x02): return [0x49, 0x02, 0x01] + Array(vin.utf8)
    case (0x01, _), (0x09, _): return nil
    default: return Reply.negativeResponse(service, 0x11)
    }
  }

  /// Returns the number and the value of a PID of service 01, or nothing if the PID is not supported.
  private func parameter(_ number: UInt8, _ sample: DriveCycle.Sample, _ now: Instant) -> [UInt8] {
    var value = BigEndianWriter([number])
    switch number {
    case 0x00: value.add(UInt32(0x0818_0001))  // 05, 0C, 0D, and the next bitmap
    case 0x05: value.add(UInt8(clamping: Int(sample.coolantTemperature) + 40))
    case 0x0C: value.add(UInt16(clamping: Int((abs(sample.motorSpeed) * 4).rounded())))
    case 0x0D: value.add(UInt8(clamping: Int(abs(sample.speed).rounded())))
    case 0x20: value.add(UInt32(0x0000_0001))
    case 0x40: value.add(UInt32(0x4000_0000))  // 42
    case 0x42: value.add(UInt16(clamping: supplyMillivolts(at: now)))
    default: return []
    }
    return value.bytes
  }

  /// Returns the response to TesterPresent, or nil if suppressPosRspMsgIndicationBit is set.
  private func testerPresent(_ request: [UInt8]) -> [UInt8]? {
    request.dropFirst().first == 0x80 ? nil : [0x7E, 0x00]
  }
}
