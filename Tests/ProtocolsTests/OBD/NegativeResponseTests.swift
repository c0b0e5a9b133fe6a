import Testing

@testable import Protocols

@Suite struct NegativeResponseTests {
  @Test(
    arguments: [
      (0x10, "general reject"), (0x11, "service not supported"), (0x12, "sub-function not supported"),
      (0x13, "incorrect message length or invalid format"),
      (0x14, "response too long"), (0x21, "busy, repeat request"), (0x22, "conditions not correct"),
      (0x24, "request sequence error"),
      (0x31, "request out of range"), (0x33, "security access denied"), (0x35, "invalid key"), (0x36, "exceeded number of attempts"),
      (0x37, "required time delay not expired"), (0x72, "general programming failure"), (0x78, "response pending"),
      (0x88, "vehicle speed too high"),
      (0x7E, "sub-function not supported in this session"), (0x7F, "service not supported in this session"), (0x92, "voltage too high"),
      (0x93, "voltage too low"), (0xF5, "code F5"),
    ] as [(UInt8, String)])
  func everyCodeHasItsName(_ code: UInt8, _ name: String) { #expect(NegativeResponse.name(of: code) == name) }

  @Test func everyCodeHasItsHandling() {
    let handlings: [(NegativeResponse.Handling, [UInt8])] = [
      (.repeatLater, [0x10, 0x25, 0xF5]), (.dropService, [0x11]), (.dropIdentifier, [0x12, 0x31]), (.correctLength, [0x13]),
      (.requestLess, [0x14]),
      (.repeatSoon, [0x21]), (.backOff, [0x22, 0x83, 0x88, 0x92, 0x93]), (.changeSession, [0x24, 0x7E, 0x7F]),
      (.neverRepeat, [0x33, 0x35, 0x36, 0x37, 0x72]), (.wait, [0x78]),
    ]
    for (handling, codes) in handlings { for code in codes { #expect(NegativeResponse.handling(of: code) == handling, "\(code)") } }
  }

  @Test func everyCodeHasAReactionOfTheFastRequest() {
    for code in [0x11, 0x12, 0x31, 0x33] as [UInt8] { #expect(NegativeResponse.consequence(of: code) == .tryOther) }
    for code in [0x35, 0x36, 0x37, 0x72] as [UInt8] { #expect(NegativeResponse.consequence(of: code) == .giveUp) }
    for code in [0x10, 0x13, 0x14, 0x22, 0x24, 0x7E, 0x92] as [UInt8] { #expect(NegativeResponse.consequence(of: code) == .backOff) }
    #expect(NegativeResponse.consequence(of: 0x21) == .repeatRequest && NegativeResponse.consequence(of: 0x78) == .pause)
  }
}
