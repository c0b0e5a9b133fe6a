// The diagnostic buses of simulated cars, and the addressing of ECUs on each.
// Source: ISO 15765-4 (CAN), ISO 14230-4 (KWP2000) and ISO 9141-2 (K-lines); ELM327 data sheet (protocol numbers).
//
//   11-bit CAN   functional 7DF · 7E0… responds from 7E8…      29-bit CAN   18DB33F1 · 18DA10F1 responds from 18DAF110
//   KWP2000      C0 33 F1 · 80 10 F1 responds as 8n F1 10      ISO 9141-2   68 6A F1 responds as 48 6B 10

/// A diagnostic bus, by its ELM327 protocol number.
public enum DiagnosticBus: UInt8, Sendable, CaseIterable {
  case iso9141 = 3
  case kwp = 5
  case can11 = 6
  case can29 = 7

  var isCAN: Bool { self == .can11 || self == .can29 }

  /// The functional address, which all emission-related ECUs receive.
  var functionalAddress: UInt32 {
    switch self {
    case .iso9141: 0x686AF1
    case .kwp: 0xC033F1
    case .can11: 0x7DF
    case .can29: 0x18DB_33F1
    }
  }

  /// Whether this is the functional address. On a K-line the middle byte decides.
  func isFunctional(_ address: UInt32) -> Bool {
    isCAN ? address == functionalAddress : address & 0xFF00 == functionalAddress & 0xFF00
  }

  /// The physical request address of an ECU, by the number that the standard assigns: 10, 11, … (hex).
  func address(of ecu: UInt8) -> UInt32 {
    switch self {
    case .iso9141: 0x6800F1 | UInt32(ecu) << 8
    case .kwp: 0x8000F1 | UInt32(ecu) << 8
    case .can11: 0x7D0 &+ UInt32(ecu)
    case .can29: 0x18DA_00F1 | UInt32(ecu) << 8
    }
  }

  /// Whether this is the physical request address of the ECU.
  func isAddress(_ address: UInt32, of ecu: UInt8) -> Bool {
    isCAN ? address == self.address(of: ecu) : address & 0xFF00 == UInt32(ecu) << 8
  }

  /// The response address of the ECU.
  func responseAddress(of ecu: UInt8) -> UInt32 {
    switch self {
    case .iso9141, .kwp: UInt32(ecu)
    case .can11: 0x7D8 &+ UInt32(ecu)
    case .can29: 0x18DA_F100 | UInt32(ecu)
    }
  }

  /// The response address of another ECU.
  func responseAddressOfOtherECU(than response: UInt32) -> UInt32 { response ^ 4 }

  /// The standard request identifier of the CAN ECU with this response identifier.
  func requestAddress(forResponse response: UInt32) -> UInt32 {
    self == .can29 ? response & 0xFFFF_0000 | (response & 0xFF) << 8 | response >> 8 & 0xFF : response &- 8
  }
}
