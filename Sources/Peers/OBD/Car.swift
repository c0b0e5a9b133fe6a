// What every car behind the adapter is to it: a bus, an ignition, and control units that answer requests with bytes. A car never sees
// text, frames or the adapter's settings; it knows the time only as an argument.
// Facts: SAE J1979, ISO 15765-4, ISO 14230-4 and ISO 9141-2 for who is asked under which address.

import Protocols

/// A car as the adapter's plug shows it.
public protocol Car: Sendable {
  /// What its bus speaks.
  var bus: DiagnosticBus { get }
  /// What fills a CAN frame behind the message; nil: frames are as short as what they carry.
  var padding: UInt8? { get }
  /// Since when it drives, and when it does not.
  var ignition: Ignition { get }
  /// The voltage at the plug, in thousandths.
  func supply(at now: Instant) -> Int
  /// Who answers a request sent to this address, and with what. A request can change a car: one clears its codes.
  mutating func replies(to request: [UInt8], at address: UInt32, _ now: Instant) -> [Reply]
}

/// One control unit's answer.
public struct Reply: Sendable, Equatable {
  /// The CAN identifier it comes from; on a K-line the unit's address, 10.
  public var id: UInt32
  public var payload: [UInt8]
  /// How much later than the quickest unit this one begins.
  public var delay: Nanoseconds
  /// From one frame to the next, where this unit keeps a time of its own.
  public var pause: Nanoseconds?

  /// An answer of this unit.
  public init(id: UInt32, payload: [UInt8], delay: Nanoseconds = 0, pause: Nanoseconds? = nil) {
    (self.id, self.payload, self.delay, self.pause) = (id, payload, delay, pause)
  }

  /// A refusal, ISO 14229: 7F, the service, why.
  static func refusal(_ service: UInt8, _ reason: UInt8) -> [UInt8] { [0x7F, service, reason] }
}

/// The cars there are, by the name that a person gives.
public enum CarModel: String, CaseIterable, Sendable {
  case eGMP = "e-gmp"
  case ioniq28 = "ioniq-28"
  case kona
  case petrol
  case petrolTurbo = "petrol-turbo"
  case petrol29 = "petrol-29"
  case petrolKWP = "petrol-kwp"
  case petrol9141 = "petrol-9141"

  /// What it is, for a help text.
  public var help: String {
    switch self {
    case .eGMP: "an E-GMP car of 77 kWh: 220101, a few of the standard's values"
    case .ioniq28: "an electric car of the older kind, 28 kWh: 2101"
    case .kona: "a Kona of 64 kWh: 220101, and NO DATA to the standard's 0100"
    case .petrol: "a petrol car with two emission control units and one beyond at 7E4, 11-bit CAN"
    case .petrolTurbo: "the same with more boost: its engine controller tells scales of its own (4F, 50)"
    case .petrol29: "the first one on 29-bit CAN"
    case .petrolKWP: "the same on a K-line, ISO 14230"
    case .petrol9141: "the same on a K-line, ISO 9141-2"
    }
  }

  /// Such a car.
  public func car(_ ignition: Ignition = Ignition()) -> any Car {
    switch self {
    case .eGMP: ElectricCar(.eGMP, ignition)
    case .ioniq28: ElectricCar(.ioniq28, ignition)
    case .kona: ElectricCar(.kona, ignition)
    case .petrol: PetrolCar(.can11, ignition)
    case .petrolTurbo: PetrolCar(.can11, ignition, hasOwnScales: true)
    case .petrol29: PetrolCar(.can29, ignition)
    case .petrolKWP: PetrolCar(.kwp, ignition)
    case .petrol9141: PetrolCar(.iso9141, ignition)
    }
  }
}
