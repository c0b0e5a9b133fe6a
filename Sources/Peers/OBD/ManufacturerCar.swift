// Electric cars of other manufacturers, whose ECUs have identifiers and data records of their own.
// Source: OBDb/Nissan-Leaf and OBDb/Volkswagen-ID.4 (identifiers, layouts); SAE J1979 services 01 and 09, ISO 14229 negative responses.

import Protocols

/// An electric car on the repeating drive cycle.
public struct ManufacturerCar: Car {
  /// The models.
  public enum Model: String, CaseIterable, Sendable {
    /// A Nissan Leaf with 40 kWh on 11-bit CAN: responds neither to service 01 nor to service 09.
    case leaf = "nissan-leaf"
    /// A Volkswagen ID.4 with 77 kWh on 29-bit CAN: has some PIDs, and a VIN.
    case id4 = "vw-id"
  }

  /// The data of a request, from the driving state and the voltage of the 12 V battery in mV.
  private typealias DataRecord = @Sendable (DriveCycle.Sample, Int) -> [UInt8]

  /// An ECU at one request identifier.
  private struct ECU: Sendable {
    let reply: UInt32
    /// The data by request: service and identifier.
    let records: [[UInt8]: DataRecord]
  }

  private let ecus: [UInt32: ECU]
  /// The VIN and the PIDs of service 01; nil if no ECU responds to functional requests.
  private let vin: String?
  private let cycle: DriveCycle
  public let bus: DiagnosticBus
  public let padding: UInt8?
  public let ignition: Ignition
  /// The identifier from which the ECU with the PIDs responds.
  private static let standardReply: UInt32 = 0x18DA_F101

  /// Creates a car with this ignition.
  public init(_ model: Model, _ ignition: Ignition = Ignition()) {
    self.ignition = ignition
    switch model {
    case .leaf: (bus, padding, vin, ecus, cycle) = (.can11, 0xFF, nil, Self.leafECUs, Self.hatchback)
    case .id4: (bus, padding, vin, ecus, cycle) = (.can29, 0xAA, "WVGZZZE2ZMP000042", Self.id4ECUs, ElectricCar.longRange)
    }
  }

  private static let hatchback = DriveCycle(
    .init(
      mass: 1650, rollingResistance: 140, drag: 0.36, motorRPMPerKmh: 74, cells: 96, packResistance: 0.13, capacity: 115,
      initialStateOfCharge: 72))

  public func supplyMillivolts(at now: Instant) -> Int { ignition.supply(14_400, in: [.on, .run], at: now) }

  public func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
    guard let service = request.first else { return [] }
    let sample = cycle.sample(Double(ignition.drivingTime(at: now)) / 1e9)
    let supply = supplyMillivolts(at: now)
    let standard = bus.requestAddress(forResponse: Self.standardReply)
    if let vin, bus.isFunctional(address) || address == standard {
      return standardAnswer(to: request, vin, sample, supply).map { [Reply(id: Self.standardReply, payload: $0)] } ?? []
    }
    guard let ecu = ecus[address] else { return [] }
    let data = ecu.records[request].map { [service + 0x40] + request.dropFirst() + $0(sample, supply) }
    return [Reply(id: ecu.reply, payload: data ?? Reply.negativeResponse(service, service == 0x22 ? 0x31 : 0x12))]
  }

  /// The response of the ECU with the PIDs; nil if it does not respond.
  private func standardAnswer(to request: [UInt8], _ vin: String, _ sample: DriveCycle.Sample, _ supply: Int) -> [UInt8]? {
    let values: [UInt8: [UInt8]] = [
      0x0C: Self.number(abs(sample.motorSpeed) * 4, 2), 0x0D: Self.number(abs(sample.speed), 1), 0x42: Self.number(Double(supply), 2),
      0x5B: Self.number(sample.stateOfCharge * 2.55, 1),
    ]
    switch (request.first, request.count) {
    case (0x09?, 2) where request[1] == 0x02: return [0x49, 0x02, 0x01] + Array(vin.utf8)
    case (0x01?, 2) where request[1] % 0x20 == 0:
      return PetrolParameters.bitmap(from: request[1], of: Array(values.keys)).map { [0x41, request[1]] + $0 }
    case (0x01?, 2...7):
      let data = request.dropFirst().flatMap { pid in values[pid].map { [pid] + $0 } ?? [] }
      return data.isEmpty ? nil : [0x41] + data
    default: return nil
    }
  }

  /// A big-endian number of this many bytes.
  private static func number(_ value: Double, _ count: Int) -> [UInt8] {
    var record = FixedRecordBuilder(count)
    record.put(value, bytes: count, at: 0)
    return record.bytes
  }

  // MARK: Nissan Leaf

  private static let leafECUs: [UInt32: ECU] = [
    0x79B: ECU(reply: 0x7BB, records: [[0x21, 0x01]: leafBattery, [0x21, 0x04]: leafTemperatures, [0x21, 0x61]: leafHealth]),
    0x797: ECU(
      reply: 0x79A,
      records: [
        [0x22, 0x12, 0x1A]: { sample, _ in number(abs(sample.speed) * 10, 2) },
        [0x22, 0x12, 0x55]: { sample, _ in number(sample.motorSpeed, 2) },
        [0x22, 0x11, 0x56]: { sample, _ in [sample.speed > 0 || sample.isInDrive ? 4 : sample.speed < 0 ? 2 : 1] },
        [0x22, 0x13, 0x04]: { _, _ in [0x80, 0xBC] }, [0x22, 0x11, 0x4E]: { _, _ in [0] }, [0x22, 0x12, 0x34]: { _, _ in [0] },
        [0x22, 0x11, 0x03]: { _, supply in number(Double(supply) / 80, 1) },
        [0x22, 0x11, 0x5D]: { sample, _ in number((sample.outdoorTemperature + 40.5) * 2, 1) },
      ]),
    0x743: ECU(
      reply: 0x763,
      records: [
        [0x22, 0x0E, 0x01]: { sample, _ in number(30_221 + sample.distance, 3) }, [0x22, 0x0E, 0x25]: { _, _ in [0x8A] },
        [0x22, 0x0E, 0x26]: { _, _ in [0x8B] }, [0x22, 0x0E, 0x27]: { _, _ in [0x89] }, [0x22, 0x0E, 0x28]: { _, _ in [0x8C] },
      ]),
  ]

  private static let leafBattery: DataRecord = { sample, _ in
    var record = FixedRecordBuilder(51)
    record.put(-sample.current * 1024, bytes: 4, at: 0)
    record.put(sample.voltage * 100, bytes: 2, at: 18)
    record.put(sample.stateOfCharge * 10_000, bytes: 3, at: 31)
    record.put(1_087_000, bytes: 3, at: 35)
    return record.bytes
  }

  private static let leafTemperatures: DataRecord = { sample, _ in
    var record = FixedRecordBuilder(14)
    for (sensor, offset) in [2, 5, 11].enumerated() { record.put(signed: sample.batteryTemperature + Double(sensor), at: offset) }
    return record.bytes
  }

  private static let leafHealth: DataRecord = { _, _ in [0x25, 0x1C, 0x25, 0x1C, 0xFF, 0x1C, 0xC8, 0x1C, 0xDF, 0x03] }

  // MARK: Volkswagen ID.4

  private static let id4ECUs: [UInt32: ECU] = [
    0x17FC_007B: ECU(
      reply: 0x17FE_007B,
      records: [
        [0x22, 0x1E, 0x3D]: { sample, _ in number(150_000 - sample.current * 100, 4) + [0x39] },
        [0x22, 0x1E, 0x3B]: { sample, _ in number(sample.voltage / 2 * 4, 2) },
        [0x22, 0x02, 0x8C]: { sample, _ in number(sample.stateOfCharge * 2.5, 1) }, [0x22, 0x74, 0x48]: { _, _ in [0x01] },
        [0x22, 0x1E, 0x0E]: { sample, _ in number((sample.batteryTemperature + 1) * 64, 2) + [0, 3] },
        [0x22, 0x1E, 0x0F]: { sample, _ in number(sample.batteryTemperature * 64, 2) + [0, 9] },
        [0x22, 0x1E, 0x33]: { sample, _ in number((sample.voltage / 192 + 0.01) * 4096, 2) + [0, 82] },
        [0x22, 0x1E, 0x34]: { sample, _ in number((sample.voltage / 192 - 0.01) * 4096, 2) + [0, 4] },
      ]),
    0x17FC_0076: ECU(reply: 0x17FE_0076, records: [[0x22, 0x29, 0x5A]: { sample, _ in number(21_031 + sample.distance, 3) }]),
  ]
}
