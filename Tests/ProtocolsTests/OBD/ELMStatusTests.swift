import Testing

@testable import Protocols

@Suite struct ELMStatusTests {
  @Test(arguments: ELMStatus.allCases.filter { $0 != .internalError && $0 != .activityAlert })
  func everyTextIsRecognisedWithAndWithoutItsSpaces(_ status: ELMStatus) {
    #expect(ELMLine(status.rawValue.utf8) == .status(status))
    #expect(ELMLine(" \(status.rawValue.filter { $0 != " " }) ".utf8) == .status(status))
    #expect(!status.message.isEmpty)
  }

  @Test func textsWithVariablePartsAreRecognised() {
    #expect(ELMLine("ERR94".utf8) == .status(.internalError))
    #expect(ELMLine("ELM327 v2.1".utf8) == .status(.banner))
    #expect(ELMLine("!ACT ALERT".utf8) == .nothing)
    #expect(ELMLine("ACT ALERT".utf8) == .nothing)
    #expect(ELMLine("!LP ALERT".utf8) == .status(.lowPowerAlert))
  }

  @Test func noticesAreSkippedAndTheRestIsRead() {
    #expect(ELMLine("SEARCHING...".utf8) == .nothing)
    #expect(ELMLine("SEARCHING".utf8) == .nothing)
    #expect(ELMLine("SEARCHING...7E8 04 41 0C 0D 74".utf8) == .hex(Array("7E804410C0D74".utf8)))
    #expect(ELMLine("SEARCHING.....UNABLE TO CONNECT".utf8) == .status(.unableToConnect))
    #expect(ELMLine("BUS INIT: OK".utf8) == .nothing)
    #expect(ELMLine("BUS INIT: ...OK".utf8) == .nothing)
    #expect(ELMLine("BUS INIT: ...".utf8) == .nothing)
    #expect(ELMLine("BUS INIT: ...ERROR".utf8) == .status(.busInitError))
  }

  @Test(arguments: ["BUFFER FULL", "STOPPED", "<DATA ERROR", "<RX ERROR", "BUFFERFULL"])
  func aTextGluedToATruncatedFrameIsStillThatText(_ text: String) {
    guard case .status = ELMLine("7EC21EF6F00\(text)".utf8) else { Issue.record("not recognised"); return }
  }

  @Test(arguments: [
    "NO DATA", "CAN ERROR", "BUFFER FULL", "FB ERROR", "BUS BUSY", "ERROR", "VENDOR MODE", "DEADBEEFX", "ACDC!", "ERR9", "ERR999",
  ])
  func hexDigitsAreNeverPickedOutOfText(_ text: String) {
    if case .hex = ELMLine(text.utf8) { Issue.record("\(text) was read as data") }
    var reader = ReplyReader()
    let outcome = reader.read(Array((text + "\r\r").utf8))
    #expect(outcome != .messages)
    #expect(reader.payload.isEmpty)
    let behind = reader.read(Array("7EC0462010155\r\(text)\r\r".utf8))
    #expect(behind != .messages)
  }

  @Test func aReplyOfStatusTextHoldsNoMessageButItsStatus() {
    var reader = ReplyReader()
    for status in ELMStatus.allCases where status != .activityAlert {
      let text = status == .internalError ? "ERR94" : status.rawValue
      #expect(reader.read(Array("\(text)\r\r".utf8)) == .status(status))
      #expect(reader.read(Array("SEARCHING...\r\(text)\r\r".utf8)) == .status(status))
      #expect(reader.read(Array("7EC0462010155\r\(text)\r\r".utf8)) == .status(status))
    }
    #expect(reader.read(Array("STOPPED\rLV RESET\r\r".utf8)) == .status(.lowVoltageReset))
    #expect(reader.read(Array("NO DATA\rCAN ERROR\r\r".utf8)) == .status(.noData))
    #expect(reader.read(Array("ACT ALERT\r7EC0462010155\r\r".utf8)) == .messages)
  }
}
