import Testing

@testable import Peers
@testable import Protocols

extension CANFrame {
  /// A frame in the form of a log: `7E0#0322010100000000`.
  init(_ text: String) {
    guard let frame = CANFrame(candump: text.utf8) else { fatalError("\(text) is no frame") }
    self = frame
  }

  /// A frame with random content.
  static func random(_ random: inout SeededRandom) -> CANFrame {
    let is29Bit = random.next() % 2 == 0
    let number = UInt32(truncatingIfNeeded: random.next()) & (is29Bit ? 0x1FFF_FFFF : 0x7FF)
    let identifier = CANIdentifier(number: number, is29Bit: is29Bit)
    let count = Int(random.next() % 9)
    if random.next() % 8 == 0 { return CANFrame(identifier, .remote, remoteCount: count) }
    return CANFrame(identifier, (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) })
  }
}

@Suite struct CANFrameTests {
  @Test func `a frame has at most eight bytes, and frames with the same bytes are equal`() throws {
    let frame = CANFrame(CANIdentifier(0x7E0), [3, 0x22, 1, 1])
    #expect(frame.count == 4 && frame.bytes == [3, 0x22, 1, 1] && frame[1] == 0x22 && frame.kind == .data)
    #expect(CANFrame(CANIdentifier(0x7E0), 0..<20).bytes == [0, 1, 2, 3, 4, 5, 6, 7])
    #expect(frame != CANFrame(CANIdentifier(0x7E0), [3, 0x22, 1, 1, 0]) && frame == CANFrame("7E0#03220101"))
    let remote = CANFrame(CANIdentifier(0x100), .remote, remoteCount: 5)
    #expect(remote.count == 5 && remote.bytes.isEmpty)
  }

  @Test func `the bits on the bus are those of ISO 11898 with all stuff bits`() throws {
    // 111 bits, 24 stuff bits; 131 bits, 29 stuff bits.
    #expect(CANFrame("7E0#0000000000000000").maxBits == 135)
    #expect(CANFrame("18DA10F1#0000000000000000").maxBits == 160)
    #expect(CANFrame(CANIdentifier(0x7E0), .remote, remoteCount: 8).maxBits == 55)
  }

  // MARK: Logs of can-utils

  @Test(arguments: [
    "(1436509052.249713) vcan0 044#2A366C2BBA", "(0.000001) can0 18DA10F1#", "(12.000000) can0 123#R", "(12.000000) can0 00000123#R8",
    "(1436509053.850870) can0 20000080#0000000000000000",
  ])
  func `a line of a log is read and written unchanged`(_ text: String) throws {
    let line = try #require(CandumpLine(text.utf8))
    #expect(line.text == text)
  }

  @Test(arguments: [
    "", "can0 123#00", "(1.5) can0 123#00", "(1.000000) can0", "(1.000000) can0 123", "(1.000000) can0 1234#00", "(1.000000) can0 FFF#00",
    "(1.000000) can0 123#0", "(1.000000) can0 123##1AABB", "(1.000000) can0 123#001122334455667788", "(1.000000) can0 123#R9",
    "(x.000000) can0 123#00", "(1.000000) anInterfaceWithALongName 123#00", "(9999999999999999999.000000) can0 123#00",
    // In nanoseconds, it does not fit into 64 bits.
    "(999999999999.000000) can0 123#01",
  ])
  func `anything else is no line of a log`(_ text: String) {
    #expect(CandumpLine(text.utf8) == nil)
  }

  @Test func `an error frame keeps its classes, and what follows the frame is ignored`() throws {
    let line = try #require(CandumpLine("(1.000000) can0 20000004#0008000000000000 R\r".utf8))
    #expect(CandumpLine(Array("(1.000000) can0".utf8) + [0xA4] + Array(" 7E0#00".utf8)) == nil, "the name of an interface is ASCII")
    #expect(line.frame.kind == .error && line.frame.identifier.number == 4 && line.frame[1] == 8 && line.time == 1_000_000)
    #expect(CANFrame("123#DE.AD").bytes == [0xDE, 0xAD])
  }

  @Test func `random frames survive both texts`() throws {
    var random = SeededRandom(seed: 25)
    var decoder = SLCANDecoder()
    for time in 0..<2000 {
      let frame = CANFrame.random(&random)
      let line = CandumpLine(time: Int64(time) * 1_234_567, interface: "can0", frame)
      #expect(CandumpLine(line.text.utf8) == line)
      var items: [SLCANDecoder.Item] = []
      decoder.receive(SLCAN.text(of: frame)) { items.append($0) }
      #expect(items == [.frame(frame)])
    }
  }
}
