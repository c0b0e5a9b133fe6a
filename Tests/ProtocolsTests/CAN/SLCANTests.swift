import Testing

@testable import Peers
@testable import Protocols

@Suite struct SLCANTests {
  private func items(_ text: String, _ decoder: inout SLCANDecoder) -> [SLCANDecoder.Item] {
    var items: [SLCANDecoder.Item] = []
    decoder.receive(text.utf8) { items.append($0) }
    return items
  }

  /// The frame of a line without its CR; nil for any other line.
  static func frame(_ line: String) -> CANFrame? {
    var found: CANFrame?
    var decoder = SLCANDecoder()
    decoder.receive((line + "\r").utf8) { if case .frame(let frame) = $0 { found = frame } }
    return found
  }

  private func items(_ text: String) -> [SLCANDecoder.Item] {
    var decoder = SLCANDecoder()
    return items(text, &decoder)
  }

  @Test func `frames have the text of the manual`() throws {
    #expect(String(decoding: SLCAN.text(of: CANFrame("7DF#0201000000000000")), as: UTF8.self) == "t7DF80201000000000000\r")
    #expect(String(decoding: SLCAN.text(of: CANFrame("18DB33F1#02010C")), as: UTF8.self) == "T18DB33F1302010C\r")
    #expect(String(decoding: SLCAN.text(of: CANFrame("100#R3")), as: UTF8.self) == "r1003\r")
    #expect(SLCAN.text(of: CANFrame("20000080#00")).isEmpty, "an error frame cannot be sent")
    #expect(SLCAN.setBitRate(500_000) == Array("S6\r".utf8) && SLCAN.setBitRate(250_000) == Array("S5\r".utf8))
    #expect(SLCAN.setBitRate(83_300) == nil)
  }

  @Test func `replies, flags and versions are recognised`() throws {
    #expect(
      items("\r\u{7}z\rZ\rF21\rV1013\rNA123\r") == [
        .accepted, .rejected, .queued, .queued, .status([.errorPassive, .receiveQueueFull]), .identity(Array("V1013".utf8)),
        .identity(Array("NA123".utf8)),
      ])
  }

  @Test func `time stamps, line feeds and lower-case digits are accepted`() throws {
    let frame = SLCANDecoder.Item.frame(CANFrame("7E8#0641"))
    #expect(items("t7E820641\rt7E8206411234\rt7e8206411234abcd\r\nt7E820641\r\n") == [frame, frame, frame, frame])
  }

  @Test(arguments: [
    "t", "t7E", "t7E8", "t8009", "t7E890641", "t7E82064", "t7E82064G", "tFFF0", "T3FFFFFFF0", "T7E80", "F1", "FXX", "zz", "?", "V",
    "V\u{1}",
  ])
  func `a damaged line is dropped, and the next one is read`(_ line: String) throws {
    var decoder = SLCANDecoder()
    #expect(items(line + "\rt7E80\r", &decoder) == [.unknown(Array(line.utf8)), .frame(CANFrame("7E8#"))])
    #expect(decoder.damagedLines == 1)
  }

  @Test func `a line without end is bounded`() throws {
    var decoder = SLCANDecoder()
    #expect(items(String(repeating: "t", count: 100_000), &decoder).isEmpty)
    #expect(items("\rt7E80\r", &decoder) == [.unknown([]), .frame(CANFrame("7E8#"))])
  }

  @Test func `random bytes are survived, and lines may be split anywhere`() throws {
    var random = SeededRandom(seed: 7)
    var (whole, parts) = (SLCANDecoder(), SLCANDecoder())
    for _ in 0..<300 {
      var text: [UInt8] = []
      for _ in 0..<8 {
        text += random.next() % 3 == 0 ? (0..<12).map { _ in UInt8(truncatingIfNeeded: random.next()) } : SLCAN.text(of: .random(&random))
      }
      var (expected, found): ([SLCANDecoder.Item], [SLCANDecoder.Item]) = ([], [])
      whole.receive(text) { expected.append($0) }
      var rest = text[...]
      while !rest.isEmpty {
        let count = min(rest.count, 1 + Int(random.next() % 9))
        parts.receive(rest.prefix(count)) { found.append($0) }
        rest = rest.dropFirst(count)
      }
      #expect(found == expected)
    }
    #expect(whole.damagedLines == parts.damagedLines && whole.damagedLines > 0)
  }
}
