// The car behind the adapter: which control unit answers which diagnostic request with which bytes. It never sees text,
// frames or the adapter's settings; it knows the time only as an argument.
// Facts: battery page of Hyundai and Kia, SAE J1979 services 01 and 09, ISO 14229 negative responses.

import Protocols

/// An electric car with a drive unit (7E0) and a battery (7E4), on its repeating drive.
public struct ElectricCar: Sendable {
  /// The cars there are.
  public enum Model: String, CaseIterable, Sendable {
    /// An E-GMP car of 77 kWh: answers 220101, refuses 2101.
    case eGMP = "e-gmp"
    /// A car of the older kind with 28 kWh: answers 2101, refuses 220101.
    case ioniq28 = "ioniq-28"
  }

  /// One control unit's answer.
  struct Reply: Equatable {
    var id: UInt32
    var payload: [UInt8]
  }

  /// The address that every control unit hears.
  static let everybody: UInt32 = 0x7DF
  private static let driveUnit: UInt32 = 0x7E0
  private static let battery: UInt32 = 0x7E4
  /// The 12 V battery while the converter charges it, in tenths of a volt.
  static let auxiliaryVoltage: UInt8 = 144

  /// Which car it is.
  public let model: Model
  /// What fills a frame behind the message.
  let padding: UInt8
  /// When it began its drive.
  let origin: Instant
  private let cycle: DriveCycle
  private let page: BatteryPage
  private let vin: String

  /// A car that began its drive at this instant.
  public init(_ model: Model = .eGMP, origin: Instant = 0) {
    self.model = model
    self.origin = origin
    switch model {
    case .eGMP:
      (padding, vin, cycle) = (0xAA, "KNAC381AVN5000042", ElectricCar.longRange)
      page = BatteryPage(
        head: [0x62, 0x01, 0x01], fields: 0xEFFB_E7EF, power: (0, 0), status: 0, inlet: 0x24, ignition: 0, isolation: 3000)
    case .ioniq28:
      (padding, vin, cycle) = (0x00, "KMHC851JFHU000042", ElectricCar.small)
      page = BatteryPage(
        head: [0x61, 0x01], fields: 0xFFFF_FFFF, power: (9000, 9800), status: 0x03, inlet: 17, ignition: 0x0D, isolation: 1000)
    }
  }

  private static let longRange = DriveCycle(
    .init(mass: 2050, rolling: 180, drag: 0.42, motorTurns: 78.9, cells: 192, resistance: 0.11, capacity: 111, startOfCharge: 78))
  private static let small = DriveCycle(
    .init(mass: 1550, rolling: 130, drag: 0.33, motorTurns: 62.4, cells: 96, resistance: 0.09, capacity: 78, startOfCharge: 84))

  /// The state of the drive.
  func moment(at now: Instant) -> DriveCycle.Moment {
    cycle.moment(Double(max(0, now &- origin)) / 1e9)
  }

  /// Who answers a request sent to this address, and with what. Asked of everybody, nobody refuses aloud.
  func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply] {
    [ElectricCar.driveUnit, ElectricCar.battery].compactMap { unit in
      guard address == unit || address == ElectricCar.everybody, let service = request.first else { return nil }
      let answer = unit == ElectricCar.battery ? battery(service, request, now) : driveUnit(service, request, now)
      guard let answer, !(address == ElectricCar.everybody && answer.first == 0x7F) else { return nil }
      return Reply(id: unit + 8, payload: answer)
    }
  }

  private func battery(_ service: UInt8, _ request: [UInt8], _ now: Instant) -> [UInt8]? {
    if service == 0x3E { return present(request) }
    guard service &+ 0x40 == page.head.first else { return [0x7F, service, 0x11] }
    guard request.count == page.head.count else { return [0x7F, service, 0x13] }
    guard request.dropFirst() == page.head.dropFirst() else { return [0x7F, service, service == 0x22 ? 0x31 : 0x12] }
    return page.bytes(moment(at: now), cells: cycle.car.cells)
  }

  private func driveUnit(_ service: UInt8, _ request: [UInt8], _ now: Instant) -> [UInt8]? {
    switch (service, request.dropFirst().first) {
    case (0x3E, _): return present(request)
    case (0x01, .some) where request.count <= 7:
      let moment = moment(at: now)
      let values = request.dropFirst().flatMap { parameter($0, moment) }
      return values.isEmpty ? nil : [0x41] + values
    case (0x09, 0x00): return [0x49, 0x00, 0x40, 0, 0, 0]
    case (0x09, 0x02): return [0x49, 0x02, 0x01] + Array(vin.utf8)
    case (0x01, _), (0x09, _): return nil
    default: return [0x7F, service, 0x11]
    }
  }

  /// A parameter of service 01 behind its number, or nothing: one that is not there is not mentioned.
  private func parameter(_ number: UInt8, _ moment: DriveCycle.Moment) -> [UInt8] {
    var value = BigEndian([number])
    switch number {
    case 0x00: value.add(UInt32(0x0818_0001))  // 05, 0C, 0D, and there is a next page
    case 0x05: value.add(UInt8(clamping: Int(moment.coolantTemperature) + 40))
    case 0x0C: value.add(UInt16(clamping: Int((abs(moment.motorSpeed) * 4).rounded())))
    case 0x0D: value.add(UInt8(clamping: Int(abs(moment.speed).rounded())))
    case 0x20: value.add(UInt32(0x0000_0001))
    case 0x40: value.add(UInt32(0x4000_0000))  // 42
    case 0x42: value.add(UInt16(ElectricCar.auxiliaryVoltage) * 100)
    default: return []
    }
    return value.bytes
  }

  /// Tester present; with the high bit set nobody wants to hear it.
  private func present(_ request: [UInt8]) -> [UInt8]? {
    request.dropFirst().first == 0x80 ? nil : [0x7E, 0x00]
  }
}
