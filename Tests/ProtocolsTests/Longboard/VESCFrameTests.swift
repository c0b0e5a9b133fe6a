import Testing

@testable import Protocols

func hex(_ text: String) -> [UInt8] { text.split(whereSeparator: { $0 == " " || $0 == "\n" }).compactMap { UInt8($0, radix: 16) } }

/// Bytes of real packets, from the firmware.
enum VESCVector {
  static let values =
    "04 01 1F 01 38 00 00 04 D2 00 00 01 C8 FF FF FF F4 00 00 04 D8 01 60 00 00 1B 58 01 78 00 00 30 39 00 00 02 A6 00 06 F8 55 00 00 5B A0 00 01 E2 40 00 01 E2 44 00 00 00 00 00 01"
  static let values340 = hex("02 3B \(values) A0 53 03")
  static let values502 = hex("02 49 \(values) 01 1F 01 1E 01 20 00 00 00 00 00 00 05 DC DD 78 03")
  static let values600 = hex("02 4A \(values) 01 1F 01 1E 01 20 00 00 00 00 00 00 05 DC 00 62 D0 03")
  static let selection = hex("02 0B 32 00 00 01 80 00 00 1B 58 01 78 8D A7 03")
  static let firmware402 = hex("02 13 00 04 02 36 30 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 00 A7 54 03")
  static let firmware600 = hex("02 1B 00 06 00 36 30 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 00 00 00 00 00 00 00 00 00 A9 2B 03")
  static let replies = [values340, values502, values600, selection, firmware402, firmware600]
}

@Suite struct VESCFrameTests {
  static func payloads(_ pieces: [[UInt8]], _ reader: inout VESCReader) -> [[UInt8]] {
    var payloads: [[UInt8]] = []
    for piece in pieces {
      var rest = piece[...]
      while !rest.isEmpty {
        reader.append(&rest)
        while let payload = reader.next() { payloads.append(Array(payload)) }
      }
    }
    return payloads
  }

  @Test func `the checksum of 123456789 is 31C3`() {
    #expect(VESCChecksum.of(Array("123456789".utf8)[...]) == 0x31C3)
    #expect(VESCChecksum.of([0]) == 0)
  }

  @Test func `requests and setpoints have the bytes of the vectors`() {
    #expect(VESCCommand.firmware.frame() == hex("02 01 00 00 00 03"))
    #expect(VESCCommand.values.frame() == hex("02 01 04 40 84 03"))
    #expect(VESCCommand.values.frame(canID: 2) == hex("02 03 22 02 04 CE 40 03"))
    #expect(VESCCommand.alive.frame() == hex("02 01 1E F3 FF 03"))
    #expect(VESCSetPoint.current(5000).frame(canID: nil) == hex("02 05 06 00 00 13 88 8B 25 03"))
    #expect(VESCSetPoint.none.frame(canID: nil) == hex("02 05 06 00 00 00 00 CD 85 03"))
    #expect(VESCSetPoint.current(-2500).frame(canID: nil) == hex("02 05 06 FF FF F6 3C 07 FD 03"))
    #expect(VESCSetPoint.brake(3000).frame(canID: nil) == hex("02 05 07 00 00 0B B8 9D FD 03"))
    #expect(VESCSetPoint.duty(20000).frame(canID: nil) == hex("02 05 05 00 00 4E 20 29 F6 03"))
    #expect(VESCSetPoint.handbrake(4000).frame(canID: nil) == hex("02 05 0A 00 00 0F A0 E3 7A 03"))
    #expect(VESCFrame.enclosing([8] + VESCCommand.bytes(3000 as Int32)) == hex("02 05 08 00 00 0B B8 F8 04 03"))
    #expect(VESCFrame.enclosing(hex("23 7F 7F 00 00 00 00 00 00 00 00")) == hex("02 0B 23 7F 7F 00 00 00 00 00 00 00 00 68 3F 03"))
    #expect(VESCCommand.selectedValues.frame(VESCCommand.bytes(0x180 as UInt32)) == hex("02 05 32 00 00 01 80 EA D4 03"))
  }

  @Test(arguments: VESCVector.replies) func `a frame is read at every split point and byte by byte`(_ frame: [UInt8]) {
    for cut in 0...frame.count {
      var reader = VESCReader()
      #expect(Self.payloads([Array(frame[..<cut]), Array(frame[cut...])], &reader) == [Array(frame.dropFirst(2).dropLast(3))])
      #expect(reader.runsOfNoise == 0 && reader.bufferedCount == 0)
    }
    var reader = VESCReader()
    #expect(Self.payloads(frame.map { [$0] }, &reader).count == 1)
    // BLE carries twenty bytes at a time.
    let chunks = stride(from: 0, to: frame.count, by: 20).map { Array(frame[$0..<min($0 + 20, frame.count)]) }
    #expect(Self.payloads(chunks, &reader).count == 1)
    #expect(Self.payloads([frame + frame + frame], &reader).count == 3)
  }

  @Test(arguments: [1, 2, 254, 255, 256, 512, 1024]) func `payloads of every length survive encoding and decoding`(_ length: Int) {
    let payload = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 7) }
    var reader = VESCReader()
    #expect(Self.payloads([VESCFrame.enclosing(payload)], &reader) == [payload])
  }

  @Test func `the long form is read for 255 bytes, and rejected for fewer`() {
    let payload = [UInt8](repeating: 5, count: 255)
    let sum = VESCChecksum.of(payload[...])
    let long = [3, 0, 255] + payload + [UInt8(sum >> 8), UInt8(sum & 0xFF), 3]
    var reader = VESCReader()
    #expect(Self.payloads([long], &reader) == [payload])
    #expect(Self.payloads([[3, 0, 1, 0, 0, 0, 3], [2, 0, 0, 0, 3]], &reader).isEmpty)
    _ = reader.nextAfterSilence()
    #expect(Self.payloads([long], &reader) == [payload])
  }

  @Test func `noise before a frame is skipped`() {
    for noise in [[0xFF], [0x55, 0xAA, 0x00], hex("04 00 00 10"), hex("02 00"), hex("03 FF FF")] as [[UInt8]] {
      var reader = VESCReader()
      #expect(Self.payloads([noise + VESCVector.values600], &reader).count == 1, "\(noise)")
      #expect(reader.runsOfNoise == 1)
    }
  }

  @Test(arguments: [[0x02], [0x03], [0x02, 0x02], [0x03, 0x01]] as [[UInt8]])
  func `a frame after a false start is read when no more data arrives`(_ noise: [UInt8]) {
    var reader = VESCReader()
    let atOnce = Self.payloads([noise + VESCVector.values600], &reader)
    let later = reader.nextAfterSilence().map(Array.init)
    #expect(atOnce.first ?? later == Array(VESCVector.values600.dropFirst(2).dropLast(3)))
    #expect(Self.payloads([VESCVector.selection], &reader).count == 1)
  }

  @Test func `a frame with any wrong byte is dropped`() {
    for index in VESCVector.values340.indices {
      var frame = VESCVector.values340
      frame[index] ^= 0x41
      var reader = VESCReader()
      var found = Self.payloads([frame], &reader)
      if let payload = reader.nextAfterSilence() { found.append(Array(payload)) }
      #expect(!found.contains { $0.count == 59 }, "at \(index)")
      #expect(Self.payloads([VESCVector.selection], &reader).count == 1, "at \(index)")
    }
  }

  @Test func `many false starts are skipped, and the next frame is read`() {
    var reader = VESCReader()
    for flood in [[3], [2, 2], [3, 1, 4]] as [[UInt8]] {
      #expect(Self.payloads([(0..<50_000).map { flood[$0 % flood.count] }], &reader).isEmpty)
      _ = reader.nextAfterSilence()
      #expect(Self.payloads([VESCVector.selection], &reader).count == 1)
    }
  }

  @Test func `the buffer is bounded`() {
    var reader = VESCReader()
    let chunk = [UInt8](repeating: 3, count: 20_000)
    for _ in 0..<3 {
      var rest = chunk[...]
      while !rest.isEmpty {
        reader.append(&rest)
        while reader.next() != nil {}
        #expect(reader.bufferedCount <= 2 * VESCFrame.maxLength)
      }
    }
    // The start of the longest frame, endlessly.
    reader.reset()
    #expect(Self.payloads([[3, 4, 0] + [UInt8](repeating: 0, count: 500)], &reader).isEmpty)
    #expect(reader.bufferedCount == 503)
    #expect(reader.nextAfterSilence() == nil && reader.bufferedCount == 0)
  }
}
