import Testing

@testable import Protocols

@Suite struct TroubleCodeTests {
  @Test(
    arguments: [
      ("P0133", 0x0133), ("U1100", 0xD100), ("C0035", 0x4035), ("B1234", 0x9234), ("P3400", 0x3400), ("P0A80", 0x0A80), ("U3FFF", 0xFFFF),
    ] as [(String, UInt16)])
  func twoBytesAreFiveCharacters(_ text: String, _ number: UInt16) {
    #expect(TroubleCode(number: number).text == text)
    #expect(TroubleCode(text)?.number == number && TroubleCode(text.lowercased())?.number == number)
    #expect(TroubleCode(UInt8(number >> 8), UInt8(number & 0xFF)).text == text)
  }

  @Test(arguments: ["", "P013", "P01333", "X0133", "P4133", "P01G3", "P 133", "Ü0133"])
  func invalidTextIsNoCode(_ text: String) { #expect(TroubleCode(text) == nil) }

  @Test func everyNumberComesBackFromItsText() {
    for number in 0...0xFFFF as ClosedRange<UInt16> {
      let code = TroubleCode(number: number)
      if TroubleCode(code.text) != code { Issue.record("\(code.text)") }
    }
  }

  @Test func responsesOnCANCountTheirCodes() {
    #expect(TroubleCode.read([0x43, 0x00]) == .codes([]))
    #expect(TroubleCode.read([0x43, 0x02, 0x01, 0x33, 0xD1, 0x00]) == .codes([TroubleCode(number: 0x0133), TroubleCode(number: 0xD100)]))
    #expect(TroubleCode.read([0x47, 0x01, 0x03, 0x01]) == .codes([TroubleCode(number: 0x0301)]))
    #expect(TroubleCode.read([0x4A, 0x02, 0x03, 0x01, 0x00, 0x00]) == .codes([TroubleCode(number: 0x0301)]))
  }

  @Test func linesOfOlderProtocolsHaveThreeCodes() {
    #expect(TroubleCode.read([0x43, 0x01, 0x33, 0x00, 0x00, 0x00, 0x00]) == .codes([TroubleCode(number: 0x0133)]))
    #expect(TroubleCode.read([0x43, 0, 0, 0, 0, 0, 0]) == .codes([]))
  }

  @Test func aResponseOfWrongLengthGivesNoCode() {
    let answers: [ArraySlice<UInt8>] = [
      [], [0x43], [0x43, 0x01], [0x43, 0x01, 0x01], [0x43, 0x02, 0x01, 0x33], [0x43, 0x01, 0x01, 0x33, 0x02, 0x44],
      [0x43, 0x01, 0x33, 0, 0],
      [0x41, 0x00], [0x43, 1, 2, 3, 4, 5, 6, 7, 8],
    ]
    for answer in answers {
      guard case .malformed(let reason) = TroubleCode.read(answer) else {
        Issue.record("\(answer)")
        continue
      }
      #expect(!reason.isEmpty)
    }
  }

  @Test(arguments: [
    ("P0133", "oxygen sensor slow response, bank 1 sensor 1"), ("P0161", "oxygen sensor heater circuit, bank 2 sensor 2"),
    ("P0171", "mixture too lean, bank 1"), ("P0300", "random or multiple cylinder misfire"), ("P0304", "misfire, cylinder 4"),
    ("P0312", "misfire, cylinder 12"), ("P0201", "injector circuit, cylinder 1"), ("P0268", "injector circuit high, cylinder 3"),
    ("P0296", "contribution or balance, cylinder 12"), ("P0351", "ignition coil A circuit"), ("P0362", "ignition coil L circuit"),
    ("P0102", "air flow sensor circuit low"), ("P0240", "boost sensor B circuit range or performance"),
    ("P0242", "boost sensor B circuit high"),
    ("P0420", "catalyst efficiency too low, bank 1"), ("P0442", "evaporative system small leak"),
    ("P0490", "exhaust gas recirculation control circuit high"),
    ("P0682", "glow plug circuit, cylinder 12"), ("P0690", "engine control module relay sense circuit high"),
    ("P0717", "turbine speed sensor A no signal"),
    ("P0752", "shift solenoid A stuck on"), ("P0980", "shift solenoid C control circuit high"), ("P0A80", "replace the hybrid battery"),
    ("P0AA6", "high voltage isolation fault"), ("P0A04", "motor electronics coolant temperature sensor circuit intermittent"),
    ("P2151", "injector group B supply circuit high"), ("P2335", "ignition coil L secondary circuit"),
    ("P2196", "oxygen sensor bank 1 sensor 1 stuck rich"),
    ("U0021", "low speed CAN bus line + open"), ("U0036", "communication bus A lines shorted together"),
    ("U0100", "no communication with the engine control module"),
    ("C0035", "front left wheel speed sensor"), ("P1234", "manufacturer-specific"), ("P3000", "manufacturer-specific"),
    ("U1100", "manufacturer-specific"),
    ("B2345", "manufacturer-specific"),
  ])
  func aCodeHasItsMeaning(_ code: String, _ meaning: String) { #expect(TroubleCode(code)?.meaning == meaning) }

  @Test func anUnlistedStandardCodeHasNoDescription() {
    for code in ["P0000", "P03FF", "P0383", "P0A0B", "P2999", "P3400", "U0074", "B0000", "P013A", "P0A4F"] {
      #expect(TroubleCode(code)?.meaning == nil, "\(code)")
    }
  }

  @Test func theTablesAreCompleteAndWithoutDuplicates() {
    var meanings = 0
    var texts: [String: UInt16] = [:]
    for number in 0...0xFFFF as ClosedRange<UInt16> where TroubleCode(number: number).isStandard {
      guard let meaning = TroubleCode(number: number).meaning else { continue }
      meanings += 1
      if let other = texts.updateValue(number, forKey: meaning) {
        Issue.record("\(TroubleCode(number: other).text) and \(TroubleCode(number: number).text): \(meaning)")
      }
      #expect(meaning.utf8.count <= 80 && meaning.first?.isWhitespace == false && meaning.last?.isWhitespace == false)
    }
    #expect(meanings > 900)
    let entries = TroubleCode.table.split(separator: "\n")
    for entry in entries {
      let fields = entry.split(separator: " ", maxSplits: 2)
      #expect(fields.count == 3 && TroubleCode(String(fields[0]))?.meaning?.hasPrefix(String(fields.last ?? "")) == true, "\(entry)")
    }
    #expect(TroubleCode.table.utf8.count < 40_000)
  }
}
