import Testing

@testable import Protocols

@Suite struct VESCValuesTests {
  static func read(_ command: VESCCommand, _ payload: [UInt8]) -> VESCValues? {
    var values = VESCValues()
    return values.read(command, payload[...]) ? values : nil
  }

  static let whole = Array(VESCVector.values600.dropFirst(3).dropLast(3))

  @Test func `the values of the vector are decoded`() throws {
    let values = try #require(Self.read(.values, Self.whole))
    let expected: [(VESCField, Int)] = [
      (.mosfetTemperature, 287), (.motorTemperature, 312), (.motorCurrent, 1234), (.inputCurrent, 456), (.idCurrent, -12),
      (.iqCurrent, 1240), (.duty, 352), (.erpm, 7000), (.voltage, 376), (.chargeUsed, 12345), (.chargeRegenerated, 678),
      (.energyUsed, 456_789), (.energyRegenerated, 23456), (.tachometer, 123_456), (.tachometerTravelled, 123_460), (.fault, 0),
      (.position, 0), (.controller, 1), (.mosfetTemperature1, 287), (.mosfetTemperature2, 286), (.mosfetTemperature3, 288), (.vd, 0),
      (.vq, 1500), (.status, 0),
    ]
    for (field, number) in expected { #expect(values[field] == number, "\(field)") }
    #expect(values[.speed] == nil && values[.odometer] == nil)
  }

  @Test(arguments: [
    (54, [VESCField.fault], [VESCField.position]), (58, [.position], [.controller]), (59, [.controller], [.mosfetTemperature1]),
    (65, [.mosfetTemperature3], [.vd]), (73, [.vq], [.status]), (74, [.status], []), (90, [.status], []),
  ])
  func `a response of any length yields the fields that it contains`(_ length: Int, _ there: [VESCField], _ not: [VESCField]) throws {
    let payload = Array((Self.whole + [UInt8](repeating: 9, count: 20)).prefix(length - 1))
    let values = try #require(Self.read(.values, payload))
    #expect(values[.erpm] == 7000 && values[.voltage] == 376)
    #expect(there.allSatisfy { values[$0] != nil } && not.allSatisfy { values[$0] == nil })
  }

  @Test func `the layout of firmware 2.18 is detected by its length`() throws {
    var payload = hex("01 1F 01 1E 01 20 01 23 01 22 01 21 01 10")
    payload += hex(
      "00 00 04 D2 00 00 01 C8 01 60 00 00 1B 58 01 78 00 00 30 39 00 00 02 A6 00 06 F8 55 00 00 5B A0 00 01 E2 40 00 01 E2 44 04")
    #expect(payload.count == 55)
    let values = try #require(Self.read(.values, payload))
    #expect(values[.mosfetTemperature] == 288 && values[.motorTemperature] == nil && values[.motorCurrent] == 1234)
    #expect(values[.erpm] == 7000 && values[.voltage] == 376 && values[.tachometerTravelled] == 123_460 && values[.fault] == 4)
  }

  @Test func `a response that is too short has no values`() {
    for length in 0..<53 { #expect(Self.read(.values, Array(Self.whole.prefix(length))) == nil, "\(length)") }
    for length in 0..<10 { #expect(Self.read(.selectedValues, Array(VESCVector.selection[3..<3 + length])) == nil, "\(length)") }
  }

  @Test func `a selective response contains the fields of its mask`() throws {
    let values = try #require(Self.read(.selectedValues, Array(VESCVector.selection.dropFirst(3).dropLast(3))))
    #expect(values[.erpm] == 7000 && values[.voltage] == 376 && values[.duty] == nil)
    let trio = try #require(Self.read(.selectedValues, hex("00 3C 00 00 01 1F 01 1E 01 20 00 00 00 01 00 00 00 02 03")))
    #expect(trio[.mosfetTemperature3] == 288 && trio[.vd] == 1 && trio[.vq] == 2 && trio[.status] == 3)
    let setup = try #require(Self.read(.selectedSetupValues, hex("00 00 01 E0 FF FF E4 A8 FF FF F0 60 01 78 03 84")))
    #expect(setup[.erpm] == -7000 && setup[.speed] == -4000 && setup[.voltage] == 376 && setup[.battery] == 900)
  }

  @Test func `counters are unsigned`() throws {
    let mask = VESCCommand.bytes(1 << 20 | 1 << 21 as UInt32)
    let values = try #require(Self.read(.selectedSetupValues, mask + hex("FF FF FF FF 80 00 00 00")))
    #expect(values[.odometer] == 0xFFFF_FFFF && values[.uptime] == 0x8000_0000)
  }

  @Test func `the version of every firmware is decoded`() {
    #expect(VESCFirmware(VESCVector.firmware402.dropFirst(3).dropLast(3))?.version == "4.02")
    #expect(VESCFirmware(VESCVector.firmware600.dropFirst(3).dropLast(3))?.hardware == "60")
    #expect(VESCFirmware([2, 18])?.version == "2.18" && VESCFirmware([2, 18])?.hardware == nil)
    #expect(VESCFirmware([2]) == nil && VESCFirmware([]) == nil)
    #expect(VESCFirmware([6, 2, 0xFF, 0x1B, 0x41])?.hardware == "A")
  }

  @Test func `faults have names, and unknown ones numbers`() {
    #expect(VESCFault.name(of: 0) == "none" && VESCFault.name(of: 2) == "under-voltage" && VESCFault.name(of: 11) == "encoder-spi")
    #expect(VESCFault.name(of: 33) == "abs-overspeed" && VESCFault.name(of: 34) == "34" && VESCFault.name(of: 255) == "255")
  }

  @Test func `limits that are not numbers are rejected`() {
    let one = VESCCommand.bytes(1 as Float)
    let board = Array(repeating: one, count: 10).flatMap(\.self) + [14] + one + one
    #expect(VESCBoard(board[...])?.drivetrain.polePairs == 7)
    for bad in [Float.nan, .infinity, -.infinity] {
      #expect(VESCBoard((VESCCommand.bytes(bad) + board.dropFirst(4))[...]) == nil)
    }
    #expect(VESCBoard(board.dropLast()) == nil)
    #expect(VESCCommand.bytes(Float.leastNonzeroMagnitude) == [0, 0, 0, 0] && VESCCommand.bytes(-2 as Float) == hex("C0 00 00 00"))
  }

  @Test func `the state of charge follows Torq's rule`() {
    let whole = [310: 0, 320: 11.1, 355: 50, 400: 100, 420: 100, 290: 0]
    for (decivolts, percent) in whole { #expect(VESCTelemetry.charge(decivolts: decivolts, cells: 10) == percent) }
  }
}
