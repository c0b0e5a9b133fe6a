// A simulated car as the adapter sees it: a bus, an ignition, and ECUs that respond to requests.
// Source: addressing of SAE J1979, ISO 15765-4, ISO 14230-4 and ISO 9141-2.

import Protocols

/// A car at the diagnostic connector.
public protocol Car: Sendable {
  /// The diagnostic bus.
  var bus: DiagnosticBus { get }
  /// The padding byte of CAN frames, or nil if frames are not padded.
  var padding: UInt8? { get }
  /// The ignition over time.
  var ignition: Ignition { get }
  /// The state of the bus.
  func busState(at now: Instant) -> Ignition.BusState
  /// The voltage at the connector in mV.
  func supplyMillivolts(at now: Instant) -> Int
  /// Returns the responses of all ECUs to a request at this address. Mutating because a request can clear trouble codes.
  mutating func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply]
  /// Whether the frames of requests to this CAN identifier begin with the address of an ECU.
  func hasAddressByte(at address: UInt32) -> Bool
  /// Returns the responses to a request whose frames begin with the address byte `ecu`.
  mutating func replies(to request: [UInt8], at address: UInt32, ecu: UInt8, _ now: Instant) -> [Reply]
}

extension Car {
  public func hasAddressByte(at address: UInt32) -> Bool { false }
  public mutating func replies(to request: [UInt8], at address: UInt32, ecu: UInt8, _ now: Instant) -> [Reply] { [] }

  /// Returns the responses to a request with or without an address byte.
  mutating func replies(to request: [UInt8], at address: UInt32, addressByte: UInt8?, _ now: Instant) -> [Reply] {
    guard hasAddressByte(at: address) else { return addressByte == nil ? replies(to: request, at: address, now) : [] }
    return addressByte.map { replies(to: request, at: address, ecu: $0, now) } ?? []
  }

  public func busState(at now: Instant) -> Ignition.BusState { ignition.busState(at: now) }
}

/// The response of one ECU.
public struct Reply: Sendable, Equatable {
  /// The CAN identifier; on a K-line the address of the ECU, for example 10.
  public var id: UInt32
  public var payload: [UInt8]
  /// The first byte of each CAN frame, or nil if the identifier alone is the address.
  public var addressByte: UInt8?
  /// The delay relative to the fastest ECU.
  public var delay: Nanoseconds
  /// The time between frames, or nil to use that of `AdapterTiming`.
  public var pause: Nanoseconds?

  /// Creates a response.
  public init(id: UInt32, payload: [UInt8], addressByte: UInt8? = nil, delay: Nanoseconds = 0, pause: Nanoseconds? = nil) {
    (self.id, self.payload, self.addressByte, self.delay, self.pause) = (id, payload, addressByte, delay, pause)
  }

  /// This response with another payload.
  func with(payload: [UInt8]) -> Reply { Reply(id: id, payload: payload, addressByte: addressByte, delay: delay, pause: pause) }

  /// A negative response of ISO 14229: 7F, service, code.
  static func negativeResponse(_ service: UInt8, _ code: UInt8) -> [UInt8] { [0x7F, service, code] }
}

/// The simulated cars, by their command-line names.
public enum CarModel: String, CaseIterable, Sendable {
  case eGMP = "e-gmp"
  case ioniq28 = "ioniq-28"
  case kona
  case nissanLeaf = "nissan-leaf"
  case vwID = "vw-id"
  case petrol
  case petrolTurbo = "petrol-turbo"
  case petrol29 = "petrol-29"
  case petrolKWP = "petrol-kwp"
  case petrol9141 = "petrol-9141"

  /// The description in the help text.
  public var help: String {
    switch self {
    case .eGMP: "electric E-GMP car, 77 kWh: responds to 220101 and a few OBD-II PIDs"
    case .ioniq28: "older electric car (Ioniq), 28 kWh: responds to 2101"
    case .kona: "electric Kona, 64 kWh: responds to 220101, but not to 0100"
    case .nissanLeaf: "Nissan Leaf, 40 kWh: responds neither to OBD-II requests nor to the VIN request"
    case .vwID: "Volkswagen ID.4 on 29-bit CAN: a few OBD-II PIDs, a VIN, and data records"
    case .petrol: "petrol car on 11-bit CAN with two emission-related ECUs and another ECU at 7E4"
    case .petrolTurbo: "the petrol car on 11-bit CAN, with an ECM that reports its own scaling (PIDs 4F and 50)"
    case .petrol29: "the petrol car on 29-bit CAN"
    case .petrolKWP: "the petrol car on a K-line, ISO 14230-4 (KWP2000)"
    case .petrol9141: "the petrol car on a K-line, ISO 9141-2"
    }
  }

  /// Creates the car.
  public func car(_ ignition: Ignition = Ignition()) -> any Car {
    switch self {
    case .eGMP: ElectricCar(.eGMP, ignition)
    case .ioniq28: ElectricCar(.ioniq28, ignition)
    case .kona: ElectricCar(.kona, ignition)
    case .nissanLeaf: ManufacturerCar(.leaf, ignition)
    case .vwID: ManufacturerCar(.id4, ignition)
    case .petrol: PetrolCar(.can11, ignition)
    case .petrolTurbo: PetrolCar(.can11, ignition, reportsScaling: true)
    case .petrol29: PetrolCar(.can29, ignition)
    case .petrolKWP: PetrolCar(.kwp, ignition)
    case .petrol9141: PetrolCar(.iso9141, ignition)
    }
  }
}
