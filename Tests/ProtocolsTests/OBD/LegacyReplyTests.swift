import Testing

@testable import Protocols

/// Protocols before CAN: replies with headers and without.
@Suite struct LegacyReplyTests {
  typealias Read = ReplyReaderTests.Read

  @Test func headersAndChecksumsOfEveryProtocolAreKnown() {
    let rpm = [Read(source: 0x10, hex: "410C0D74")]
    let supported = [Read(source: 0x10, hex: "4100BE3EB811")]
    #expect(ReplyReaderTests.read("48 6B 10 41 0C 0D 74 91 ") == rpm)
    #expect(ReplyReaderTests.read("486B10410C0D7491") == rpm)
    #expect(ReplyReaderTests.read("84 F1 10 41 0C 0D 74 53") == rpm)
    #expect(ReplyReaderTests.read("84F110410C0D7453") == rpm)
    // A format byte without a length is followed by one.
    #expect(ReplyReaderTests.read("80 F1 10 04 41 0C 0D 74 53") == rpm)
    #expect(ReplyReaderTests.read("48 6B 10 41 00 BE 3E B8 11 FA ") == supported)
    #expect(ReplyReaderTests.read("48 6B 10 41 00 BE 3E B8 11 C9 ") == supported)
    #expect(ReplyReaderTests.read("41 6B 10 41 00 BE 3E B8 11 90 ") == supported)
    #expect(ReplyReaderTests.read("4100BE3EB811") == [Read(hex: "4100BE3EB811")])
  }

  @Test(arguments: [
    "48 6B 10 41 0C 0D 74 92", "48 6B 10 41 0C 0D 75 91", "84 F1 10 41 0C 0D 74 54", "85 F1 10 41 0C 0D 74 54", "48 6B 10 91",
    "80 F1 10 05 41 0C 0D 74 54", "48 6B 10 41 00 BE 3E B8 11 FB", "48 6B 10 41 00 01 02 03 04 05 06 F0", "41 6B 10 41 00 BE 3E B8 11 91",
  ])
  func aLineWithAWrongChecksumIsRejected(_ line: String) { #expect(ReplyReaderTests.reason(line) != nil) }

  @Test(arguments: ["BUS INIT: OK", "BUS INIT: ...OK", "BUSINIT:...OK", "SEARCHING...", "SEARCHING...BUS INIT: ...OK"])
  func aNoticeBeforeTheDataIsSkipped(_ notice: String) {
    let expected = [Read(source: 0x10, hex: "410C0D74")]
    #expect(ReplyReaderTests.read(notice, "48 6B 10 41 0C 0D 74 91") == expected)
    #expect(ReplyReaderTests.read("\(notice)486B10410C0D7491") == expected)
  }

  @Test func aBusThatDoesNotStartIsAStatus() {
    for text in ["BUS INIT: ERROR", "BUS INIT: ...ERROR", "BUSINIT:ERROR"] {
      var reader = ReplyReader()
      let outcome = reader.read(Array(text.utf8))
      #expect(outcome == .status(.busInitError))
    }
  }

  @Test func troubleCodesOfSeveralLinesAreOneListPerECU() {
    var reader = ReplyReader()
    let outcome = reader.read(Vector.legacyCodes.dropLast())
    #expect(outcome == .messages)
    let codes = reader.messages.flatMap { message -> [String] in
      guard case .codes(let codes) = TroubleCode.read(reader.bytes(of: message)) else { return ["broken"] }
      return codes.map(\.text)
    }
    #expect(codes == ["P0133", "P0171", "P0300", "P0420"])
    #expect(reader.messages.allSatisfy { $0.source == 0x10 })
  }

  @Test func theVINOfSeveralLinesIsOne() {
    for reply in [Vector.legacyVIN, Vector.bareVIN] {
      var reader = ReplyReader()
      let outcome = reader.read(reply.dropLast())
      #expect(outcome == .messages)
      #expect(VehicleInformation.read(reader.messages.map { reader.bytes(of: $0) }) == .texts(["1D4GP00R55B123456"]))
    }
    var reader = ReplyReader()
    let outcome = reader.read(Vector.vehicleNumber.dropLast())
    #expect(outcome == .messages)
    #expect(VehicleInformation.read(reader.messages.map { reader.bytes(of: $0) }) == .texts(["1D4GP00R55B123456"]))
  }

  @Test func standardECUAddressesAreRecognised() {
    for source in [nil, 0x7E8, 0x7EF, 0x10, 0xF1, 0x18DA_F110, 0x18DA_F1FF] as [UInt32?] { #expect(ReplyReader.isOBDSource(source)) }
    for source in [0x7E7, 0x7F0, 0x78E, 0x18DA_F210, 0x18AD_F110, 0x100] as [UInt32] { #expect(!ReplyReader.isOBDSource(source)) }
  }
}
