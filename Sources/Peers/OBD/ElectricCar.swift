// An electric car and its ECUs. BatteryRecord has the first data record of the BMS, ElectricCarRecords the others.
// Facts: data records of Hyundai and Kia, SAE J1979 services 01 and 09, ISO 14229 negative responses. ECUs: 7E0 drive unit · 7E2 VCU ·
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
  private static let battery: UInt32 = 0x7E4
  /// The ECUs that receive functional requests; the others are behind the gateway.
  private static let emission: ClosedRange<UInt32> = 0x7E0...0x7E7

  /// The model of the car.
  public let model: Model
  public let padding: UInt8?
  public let ignition: Ignition
  private let cycle: DriveCycle
  private let record: BatteryRecord
  private let vin: String
  public var bus: DiagnosticBus { .can11 }
  /// The number of cells in series.
  var cells: Double { cycle.car.cells }
  /// The first byte of a positive response: 62, or 61 for the older car.
  var service: UInt8 { record.header[0] }

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
        header: [0x62, 0x01, 0x01], fields: 0xEFFB_E7EF, power: (0, 0), status: 0, inlet: 0x24, ignition: 0, isolation: 3000)
    case .ioniq28:
      (padding, vin, cycle) = (0x00, "KMHC851JFHU000042", ElectricCar.small)
      record = BatteryRecord(
        header: [0x61, 0x01], fields: 0xFFFF_FFFF, power: (9000, 9800), status: 0x03, inlet: 17, ignition: 0x0D, isolation: 1000)
    case .kona:
      (padding, vin, cycle) = (0x00, "KMHK581HFMU000042", ElectricCar.crossover)
      record = BatteryRecord(
        header: [0x62, 0x01, 0x01], fields: 0xFFF7_E7FF, power: (9800, 17_000), status: 0x01, inlet: 17, ignition: 0x0D, isolation: 3000,
        repeatsMotorSpeed: true)
    }
  }

  private static let longRange = DriveCycle(
    .init(mass: 2050, rolling: 180, drag: 0.42, motorTurns: 78.9, cells: 192, resistance: 0.11, capacity: 111, startOfCharge: 78))
  private static let small = DriveCycle(
    .init(mass: 1550, rolling: 130, drag: 0.33, motorTurns: 62.4, cells: 96, resistance: 0.09, capacity: 78, startOfCharge: 84))
  private static let crossover = DriveCycle(
    .init(mass: 1760, rolling: 150, drag: 0.38, motorTurns: 67.2, cells: 98, resistance: 0.08, capacity: 180, startOfCharge: 66))

  /// The state of the drive.
  func sample(at now: Instant) -> DriveCycle.Sample { cycle.sample(Double(ignition.drivingTime(at: now)) / 1e9) }

  /// The voltage in mV. The DC-DC converter charges the 12 V battery while the ignition is on.
  public func supply(at now: Instant) -> Int { ignition.supply(14_400, in: [.on, .run], at: now) }

  /// Returns the responses to a request. ECUs do not send negative responses to functional requests.
  public func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
    let isForAll = address == bus.functionalAddress
    let units = isForAll ? Array(ElectricCar.emission) : [address]
    var replies: [Reply] = []
    for unit in units {
      guard let answer = answer(of: unit, to: request, isForAll: isForAll, now), !(isForAll && answer.first == 0x7F) else { continue }
      replies.append(Reply(id: unit + 8, payload: answer, delay: Nanoseconds(replies.count) * 300 * .microsecond))
    }
    return replies
  }

  private func answer(of unit: UInt32, to request: [UInt8], isForAll: Bool, _ now: Instant) -> [UInt8]? {
    guard let service = request.first else { return nil }
    if unit == ElectricCar.driveUnit { return driveUnit(service, request, now) }
    guard let records = records(of: unit) else { return nil }
    // ECUs without OBD-II services do not respond to functional requests.
    if service == 0x3E { return isForAll && unit != ElectricCar.battery ? nil : present(request) }
    if service == 0x19, self.record.header[0] == 0x62 { return codes(of: unit, to: request) }
    let header = record.header
    guard service &+ 0x40 == header[0] else { return Reply.refusal(service, 0x11) }
    guard request.count == header.count else { return Reply.refusal(service, 0x13) }
    let identifier = request.dropFirst().reduce(0) { $0 << 8 | UInt16($1) }
    let (sample, supply) = (sample(at: now), supply(at: now))
    if unit == ElectricCar.battery, request.dropFirst() == header.dropFirst() {
      return record.bytes(sample, cells: cells, supplyMillivolts: supply)
    }
    guard let record = records[identifier] else { return Reply.refusal(service, service == 0x22 ? 0x31 : 0x12) }
    return [service &+ 0x40] + request.dropFirst() + record(self, sample, supply)
  }

  /// UDS service 19 02: the brakes have a code of a wheel speed sensor, the other ECUs none.
  private func codes(of unit: UInt32, to request: [UInt8]) -> [UInt8] {
    guard request.count == 3, request[1] == 0x02 else { return Reply.refusal(0x19, 0x12) }
    return [0x59, 0x02, 0xFF] + (unit == 0x7D1 && request[2] & 0x08 != 0 ? [0x50, 0x00, 0x64, 0x08] : [])
  }

  private func driveUnit(_ service: UInt8, _ request: [UInt8], _ now: Instant) -> [UInt8]? {
    switch (service, request.dropFirst().first) {
    case (0x3E, _): return present(request)
    case (0x01, .some) where request.count <= 7 && model != .kona:
      let sample = sample(at: now)
      let values = request.dropFirst().flatMap { parameter($0, sample, now) }
      return values.isEmpty ? nil : [0x41] + values
    case (0x09, 0x00): return [0x49, 0x00, 0x40, 0, 0, 0]
    case (0x09, 0x02): return [0x49, 0x02, 0x01] + Array(vin.utf8)
    case (0x01, _), (0x09, _): return nil
    default: return Reply.refusal(service, 0x11)
    }
  }

  /// The number and value of a PID of service 01; empty if it is not supported.
  private func parameter(_ number: UInt8, _ sample: DriveCycle.Sample, _ now: Instant) -> [UInt8] {
    var value = BigEndian([number])
    switch number {
    case 0x00: value.add(UInt32(0x0818_0001))  // 05, 0C, 0D, and the next bitmap
    case 0x05: value.add(UInt8(clamping: Int(sample.coolantTemperature) + 40))
    case 0x0C: value.add(UInt16(clamping: Int((abs(sample.motorSpeed) * 4).rounded())))
    case 0x0D: value.add(UInt8(clamping: Int(abs(sample.speed).rounded())))
    case 0x20: value.add(UInt32(0x0000_0001))
    case 0x40: value.add(UInt32(0x4000_0000))  // 42
    case 0x42: value.add(UInt16(clamping: supply(at: now)))
    default: return []
    }
    return value.bytes
  }

  /// TesterPresent; no response if suppressPosRspMsgIndication is set.
  private func present(_ request: [UInt8]) -> [UInt8]? {
    request.dropFirst().first == 0x80 ? nil : [0x7E, 0x00]
  }
}
