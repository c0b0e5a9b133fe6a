// A response from 7E4 counts as BMS data of an electric Hyundai or Kia only if its fields agree; otherwise detection continues.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct BMSDetectionTests {
  private static func isPlausible(_ data: [UInt8]) -> Bool { data.withUnsafeBufferPointer { BMSRecord.isPlausible($0) } }

  /// The data of a record printed with two or three header bytes.
  private static func data(_ reply: [UInt8], head: Int) throws -> [UInt8] {
    var reader = ReplyReader()
    guard case .messages = reader.read(reply), let message = reader.messages.first else { throw Unreadable("no message") }
    return Array(reader.bytes(of: message).dropFirst(head))
  }

  @Test(arguments: [
    (Vector.kona, 3), (Vector.ev6, 3), (Vector.wallbox, 3), (Vector.soul, 2), (Vector.ioniq, 2), (Vector.glued, 3),
  ])
  func `BMS data of real cars is plausible, even with one unknown field`(_ reply: [UInt8], _ head: Int) throws {
    let data = try Self.data(reply.dropLast(), head: head)
    #expect(Self.isPlausible(data))
    for field in [12..<14, 23..<24, 14..<16, 51..<53, 30..<34] {
      var changed = data
      for place in field { changed[place] = 0xFF }
      if field.lowerBound != 12 { #expect(Self.isPlausible(changed), "\(field)") }
    }
  }

  @Test func `responses of other ECUs are not plausible`() {
    #expect(!Self.isPlausible([]) && !Self.isPlausible([UInt8](repeating: 0, count: 59)))
    #expect(!Self.isPlausible([UInt8](repeating: 0xFF, count: 59)) && !Self.isPlausible([UInt8](repeating: 0x41, count: 52)))
    var random = SeededRandom(seed: 18)
    let found = (0..<20_000).count { _ in Self.isPlausible((0..<59).map { _ in .random(in: 0...255, using: &random) }) }
    #expect(found < 20, "one in a thousand is more than chance")
    for seconds in 0..<1000 {
      let answer = RearAxleECU().answers(to: [0x21, 0x01], PetrolDrive.sample(Double(seconds), isRunning: true))[0]
      #expect(!Self.isPlausible(Array(answer.dropFirst(2))), "\(seconds)")
    }
  }

  @Test func `a petrol car with an ECU that answers 2101 at 7E4 is a petrol car`() throws {
    var rig = try VehicleRig(PetrolCar(.can11))
    rig.run(for: 20 * .second)
    #expect(rig.sentCommands.contains { $0.command.hasPrefix("2101") })
    #expect(rig.text("vehicle") == "standard OBD-II (7E8, 7E9)" && rig.status == "polling" && rig.number("rpm") != nil)
    #expect(rig.seen["state-of-charge"] == nil && rig.seen["energy-out"] == nil && rig.seen["vehicle"] == ["standard OBD-II (7E8, 7E9)"])
    #expect(rig.disk["request"] == nil && rig.disk["ecus"] != nil)
  }

  @Test func `an adapter moved from an electric car detects the new car`() throws {
    var rig = try VehicleRig(PetrolCar(.can11), disk: ["request": Array("2101".utf8)])
    rig.run(for: 30 * .second)
    #expect(rig.text("vehicle") == "standard OBD-II (7E8, 7E9)" && rig.number("rpm") != nil && rig.seen["state-of-charge"] == nil)
    #expect(rig.disk["request"] == nil)
  }

  @Test func `a response too short for BMS data leads to the next request`() {
    var rig = AdapterRig()
    rig.adapter.answer("220101", "7EC0462010100\r\r>")
    rig.adapter.answer("2101", bytes: Vector.soul)
    rig.start()
    rig.run(for: 10 * .second)
    #expect(rig.status == "polling" && rig.text("vehicle") == "electric Hyundai or Kia (older)" && rig.number("state-of-charge") == 59)
  }

  @Test func `a known battery that has just woken up is retried`() {
    var rig = AdapterRig()
    let waking = Vector.frames(
      [0x62, 0x01, 0x01, 0xEF, 0xFB, 0xE7, 0xEF] + [UInt8](repeating: 0, count: 49) + [0x7F, 0xFF, 0x7F, 0xFF, 0, 0])
    rig.adapter.answer("220101", bytes: waking, waking, Vector.ev6)
    rig.start(restored: ["request": Array("220101".utf8)])
    rig.run(for: 10 * .second)
    #expect(rig.status == "polling" && rig.number("state-of-charge") == 55.5 && rig.stored["request"] == nil)
    #expect(!rig.commands.contains { $0.hasPrefix("2101") || $0.hasPrefix("0100") })
  }

  @Test func `a configured vehicle is not checked`() {
    var rig = AdapterRig(vehicle: .eGMP)
    rig.adapter.bmsReply = Vector.record(Vector.ev6, [12: 0, 13: 0, 23: 0, 25: 0])
    rig.start(for: 2 * .second)
    #expect(rig.status == "polling" && rig.number("battery-voltage") == 0)
  }
}
