import Testing

@testable import Protocols

@Suite struct ReplyReaderTests {
  struct Read: Equatable {
    var source: UInt32?
    var hex: String
  }

  static func read(_ reply: [UInt8]) -> [Read]? {
    var reader = ReplyReader()
    guard reader.read(reply.last == prompt ? reply.dropLast() : reply) == .messages else { return nil }
    return reader.messages.map { Read(source: $0.source, hex: spacedHex(reader.bytes(of: $0)).filter { $0 != " " }) }
  }

  static func read(_ lines: String...) -> [Read]? { read(Array(lines.joined(separator: "\r").utf8)) }

  static func reason(_ lines: String...) -> String? {
    var reader = ReplyReader()
    guard case .unreadable(let reason) = reader.read(Array(lines.joined(separator: "\r").utf8)) else { return nil }
    return reason
  }

  @Test func severalPIDsOfOneECUAreOneMessage() {
    #expect(Self.read(Vector.multi) == [Read(source: 0x7E8, hex: "41010007E500030100040006800" + "77D0C0000")])
    #expect(Self.read(Vector.parameter78) == [Read(source: 0x7E8, hex: "41780D061F019003DA02A6")])
  }

  @Test func longIdentifiersSeparateECUs() {
    let expected = [Read(source: 0x18DA_F111, hex: "410C0D74"), Read(source: 0x18DA_F11D, hex: "410C0D74")]
    #expect(Self.read(Vector.long) == expected)
    #expect(Self.read("18DAF11104410C0D74", "18DAF11D04410C0D74") == expected)
  }

  @Test func aKLineFrameIsReadAfterItsNoticeIfItsChecksumMatches() {
    #expect(Self.read(Vector.kLine) == [Read(source: 0x10, hex: "4100BE3EF811")])
    #expect(Self.reason("86 F1 10 41 00 BE 3E F8 11 CE") != nil)
    #expect(Self.reason("87 F1 10 41 00 BE 3E F8 11 CE") != nil)
  }

  @Test func numberedLinesAreJoinedByTheirDeclaredLength() {
    #expect(Self.read(Vector.vehicleNumber) == [Read(hex: "4902013144344750303052353542313233343536")])
    #expect(Self.read("008", "0:620101AABBCC", "1:DDEE5555555555") == [Read(hex: "620101AABBCCDDEE")])
  }

  @Test func aBareMessageHasNoSource() {
    #expect(Self.read("410C0D74") == [Read(hex: "410C0D74")])
    #expect(Self.read("41 0C 0D 74 ", "") == [Read(hex: "410C0D74")])
    #expect(Self.read("7F2112") == [Read(hex: "7F2112")])
  }

  @Test func paddingAfterTheDeclaredLengthIsNoData() {
    let record = Self.read(Vector.wallboxRecord05)
    #expect(record?.count == 1)
    #expect(record?.first?.hex.count == 2 * 0x2E)
    #expect(record?.first?.hex.hasSuffix("001F1E1F20") == true)
    #expect(Self.read("7EC037F2231AAAAAAAA") == [Read(source: 0x7EC, hex: "7F2231")])
  }

  @Test func interleavedECUsWithHeadersAreSeparated() {
    let reply = Self.read(
      "7EC100A620101010203", "7EA10086201014142", "7EC2104050607555555"
    ).map { $0 }
    #expect(reply == nil)
    #expect(
      Self.read("7EC100A620101010203", "7EA1008620101414243", "7EC2104050607555555", "7EA2144455555555555")
        == [Read(source: 0x7EC, hex: "62010101020304050607"), Read(source: 0x7EA, hex: "6201014142434445")])
  }

  @Test func frameNumbersWrapFromFifteenToZero() {
    let payload: [UInt8] = [0x62, 0x01, 0x01] + (0..<200).map { UInt8($0) }
    #expect(Self.read(Vector.frames(payload))?.first?.hex == payload.map(Vector.hex).joined())
    // The same without headers: line numbers wrap too.
    var lines = ["0CB", "0:" + payload[..<6].map(Vector.hex).joined()]
    for (number, start) in stride(from: 6, to: payload.count, by: 7).enumerated() {
      let digit = String((number + 1) % 16, radix: 16, uppercase: true)
      lines.append("\(digit):" + payload[start..<min(start + 7, payload.count)].map(Vector.hex).joined())
    }
    #expect(Self.read(Array(lines.joined(separator: "\r\n").utf8))?.first?.hex == payload.map(Vector.hex).joined())
    #expect(Self.read(Array(lines.joined().utf8))?.first?.hex == payload.map(Vector.hex).joined())
  }

  @Test func aMissingRepeatedOrMisorderedFrameInvalidatesTheReply() {
    let lines = String(decoding: Vector.ev6.dropLast(), as: UTF8.self).split(separator: "\r").map(String.init)
    var orders: [[String]] = []
    for index in lines.indices {
      orders.append(lines.indices.filter { $0 != index }.map { lines[$0] })
      orders.append(Array(lines[...index]) + Array(lines[index...]))
      if index > 0 { var swapped = lines; swapped.swapAt(index, index - 1); orders.append(swapped) }
    }
    for order in orders { #expect(Self.read(Array(order.joined(separator: "\r").utf8)) == nil, "\(order)") }
    #expect(Self.read(Array(lines.joined(separator: "\r").utf8)) != nil)
  }

  @Test func aLineWithoutOneDigitInvalidatesTheReply() {
    let reply = Vector.ev6.dropLast()
    for index in reply.indices where !isBlank(reply[index]) {
      var shorter = Array(reply)
      shorter.remove(at: index)
      #expect(Self.read(shorter) == nil, "without byte \(index)")
    }
  }

  @Test func aFrameThatLostAByteNeverShiftsTheRestIntoThePadding() {
    // 61 bytes leave one byte of padding in the last frame: enough to hide a missing byte.
    let lines = String(decoding: Vector.ioniq.dropLast(), as: UTF8.self).split(separator: "\r").map(String.init)
    for index in lines.indices {
      for digit in stride(from: 3, to: 19, by: 2) {
        var shorter = lines
        let start = lines[index].index(lines[index].startIndex, offsetBy: digit)
        shorter[index].removeSubrange(start..<lines[index].index(start, offsetBy: 2))
        let isLastPadding = index == lines.count - 1 && digit > 3
        #expect(Self.read(Array(shorter.joined(separator: "\r").utf8)) == nil || isLastPadding, "\(shorter[index])")
      }
    }
  }

  @Test func malformedFramesAreRejectedWithAReason() {
    #expect(Self.reason("7EC") != nil)
    #expect(Self.reason("7EC00") != nil)
    #expect(Self.reason("7EC04620101") != nil)
    #expect(Self.reason("7EC1004620101AABBCC") != nil)
    #expect(Self.reason("7EC21620101AABBCCDD") == "consecutive frame without a first frame")
    #expect(Self.reason("7EC4021620101AABBCC") != nil)
    #expect(Self.reason("FFF0462010155") != nil)
    #expect(Self.reason("000", "7EC0462010155") != nil)
    #expect(Self.reason("7EC0462010155", "410C0D74") == "mixed lines with and without headers")
    #expect(Self.reason("0:620101AABBCC") == "numbered line without a length")
    #expect(Self.reason("03E", "1:620101AABBCCDD") == "first line missing")
    #expect(Self.reason(":620101") != nil)
    #expect(Self.reason(String(repeating: "7", count: 500)) == "line too long")
    #expect(Self.reason("7EC30000A00000000") == nil)
  }

  @Test func framesAreCountedAsAnAdapterCountsThem() {
    let expected = [(1, 1), (7, 1), (8, 2), (13, 2), (14, 3), (45, 7), (46, 7), (61, 9), (62, 9), (4095, 586)]
    for (length, frames) in expected { #expect(ISOTPMessage.frames(for: length, capacity: 7) == frames) }
    // With an address byte, a single frame holds 6 bytes, a first frame 5 and a consecutive frame 6.
    for (length, frames) in [(6, 1), (7, 2), (11, 2), (12, 3)] { #expect(ISOTPMessage.frames(for: length, capacity: 6) == frames) }
  }

  @Test func announcedLengthsDoNotGrowMemoryWithoutBounds() {
    let lines = (0..<800).map { "\(Vector.hex(UInt8($0 / 256)).dropFirst())\(Vector.hex(UInt8($0 % 256)))1FFF620101010203" }
    var reader = ReplyReader()
    #expect(reader.read(Array(lines.joined(separator: "\r").utf8)) == .unreadable("too many messages"))
    #expect(reader.payload.count <= 32 * 4095)
  }
}
