// The identification of an ECU of a simulated petrol car (VIN, CAL ID, CVN, name), and its on-board monitoring results.
// Source: SAE J1979 services 06 and 09. On CAN, the data of an infotype is one message. On a K-line, it is several messages of four bytes,
// numbered from 1; the previous infotype gives the number of messages.

/// The data of service 09 of one ECU.
struct PetrolIdentity: Sendable {
  var vin: String?
  var calibrationID: String
  var verificationNumber: [UInt8]
  var name: [UInt8]

  static let engine = PetrolIdentity(
    vin: "WVWZZZ1KZAW000042", calibrationID: "VSIM-ENG-16T-042", verificationNumber: [0x4B, 0x1D, 0x07, 0xE5],
    name: Array("ECM\0-EngineControl\0\0".utf8))
  static let transmission = PetrolIdentity(
    vin: nil, calibrationID: "VSIM-TCM-7DQ-042", verificationNumber: [0x9A, 0x33, 0x20, 0x0C], name: Array("TCM\0-TransmisCtrl\0\0\0".utf8))

  /// The response messages for an infotype; empty if it is not supported.
  func answers(_ infoType: UInt8, _ bus: DiagnosticBus) -> [[UInt8]] {
    var items: [UInt8: [UInt8]] = [0x04: Array(calibrationID.utf8), 0x06: verificationNumber, 0x0A: name]
    if let vin { items[0x02] = (bus.isCAN ? [] : [0, 0, 0]) + Array(vin.utf8) }
    if infoType == 0 {
      let numbers = items.keys.flatMap { bus.isCAN ? [$0] : [$0 - 1, $0] }
      return PetrolParameters.bitmap(from: 0, of: numbers).map { [(bus.isCAN ? [0x49, 0x00] : [0x49, 0x00, 0x01]) + $0] } ?? []
    }
    if bus.isCAN { return items[infoType].map { [[0x49, infoType, 0x01] + $0] } ?? [] }
    if let bytes = items[infoType] {
      return stride(from: 0, to: bytes.count, by: 4).map { first in
        [0x49, infoType, UInt8(first / 4 + 1)] + bytes.dropFirst(first).prefix(4)
      }
    }
    return items[infoType &+ 1].map { [[0x49, infoType, UInt8($0.count / 4)]] } ?? []
  }

  /// Test results by monitor: MID, TID, unit and scaling ID (UASID), value, min, max. The tests of the O2 sensor (UASID 0A, 0.122 mV per
  /// bit) and of the catalyst (UASID 20, 0.0039 per bit) have failed, as the stored codes say. There are no misfires (UASID 24, counts).
  static let monitors: [UInt8: [UInt8]] = [
    0x01: [0x01, 0x01, 0x0A, 0x0E, 0x66, 0x00, 0x00, 0xFF, 0xFF, 0x01, 0x05, 0x10, 0x00, 0x7D, 0x00, 0x00, 0x00, 0x64],
    0x21: [0x21, 0x80, 0x20, 0x01, 0x1A, 0x00, 0x00, 0x01, 0x00],
    0xA2: [0xA2, 0x0B, 0x24, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xA2, 0x0C, 0x24, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF],
  ]
}
