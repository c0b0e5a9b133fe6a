// The rear axle ECU of a simulated petrol car, which is not emission-related. It has the address of the BMS in electric Hyundai and Kia
// cars and answers the same request (2101), but with other data.
// Source: ISO 14230-3 service 21 (manufacturer-specific local identifiers), ISO 14229 service 19; SAE J1979 leaves 7E4 to the manufacturer.

struct RearAxleECU: Sendable {
  /// The number of the ECU, which gives it the address 7E4 (responses from 7EC), or 18DA14F1 on 29-bit CAN.
  static let number: UInt8 = 0x14

  /// The response messages, positive or negative; empty if there are none.
  func answers(to request: [UInt8], _ sample: PetrolDrive.Sample) -> [[UInt8]] {
    guard let service = request.first else { return [] }
    switch (service, request.dropFirst().first) {
    case (0x21, 0x01?) where request.count == 2: return [[0x61, 0x01] + data(sample)]
    case (0x21, _): return [Reply.negativeResponse(service, 0x12)]
    // Clutch over temperature, confirmed; missing message from the brakes, pending; and a code whose test is not complete.
    case (0x19, 0x02?) where request.count == 3:
      let codes: [[UInt8]] = [[0x18, 0x99, 0x98, 0x2C], [0xC1, 0x21, 0x87, 0x04], [0x56, 0x10, 0x13, 0x50]]
      return [[0x59, 0x02, 0x7F] + codes.filter { $0[3] & request[2] != 0 }.flatMap(\.self)]
    case (0x19, _): return [Reply.negativeResponse(service, 0x12)]
    case (0x22, _): return [Reply.negativeResponse(service, 0x31)]
    case (0x3E, let kind): return kind == 0x80 ? [] : [[0x7E, 0x00]]
    default: return [Reply.negativeResponse(service, 0x11)]
    }
  }

  /// The data record: wheel speeds, clutch, temperatures with an offset of 40, counters and unused fields.
  private func data(_ sample: PetrolDrive.Sample) -> [UInt8] {
    var record = FixedRecordBuilder(59)
    for wheel in 0..<4 { record.put(sample.speed * 100, bytes: 2, at: wheel * 2) }
    record.put(sample.power * 10, bytes: 2, at: 8)
    record.put(sample.engineSpeed, bytes: 2, at: 10)
    record.put([0x21, 0x5C, 0x64, UInt8(40 + 20 * sample.warmth(300)), 0x7F, 0x80, 0x00, 0x00], at: 12)
    record.put([0xFF, 0xFF, 0xFF, 0x00, 0x12, 0x00, 0x12, 0x80], at: 20)
    record.put(sample.distance * 1000, bytes: 4, at: 30)
    record.put([0x00, 0x03, 0x41, 0x20, 0x76, 0x00, 0x0C, 0x80, 0x76, 0x00, 0x00, 0x00], at: 34)
    record.put(sample.seconds, bytes: 4, at: 46)
    record.put([0x04, 0xB8, 0x0B, 0x13, 0x88, 0x00, 0x00, 0xFF, 0xFF], at: 50)
    return record.bytes
  }
}
