import Testing

@testable import Protocols

@Suite struct VehicleInformationTests {
  static let vin: [UInt8] = Array("1D4GP00R55B123456".utf8)

  static func read(_ messages: [UInt8]...) -> VehicleInformation.Answer { VehicleInformation.read(messages.map { $0[...] }) }

  static func reason(_ messages: [UInt8]...) -> String? {
    if case .broken(let reason) = VehicleInformation.read(messages.map { $0[...] }) { reason } else { nil }
  }

  static func line(_ number: UInt8, _ data: [UInt8]) -> [UInt8] { [0x49, 0x02, number] + data }

  @Test func theVINIsReadFromEveryKindOfNetwork() {
    let expected = VehicleInformation.Answer.texts(["1D4GP00R55B123456"])
    #expect(Self.read([0x49, 0x02, 0x01] + Self.vin) == expected)
    #expect(Self.read([0x62, 0xF1, 0x90] + Self.vin) == expected)
    #expect(Self.read([0x62, 0xF1, 0x90] + Self.vin + [0xFF, 0x00]) == expected)
    let padded = [0, 0, 0] + Self.vin
    let lines = (0..<5).map { Self.line(UInt8($0 + 1), Array(padded[$0 * 4..<$0 * 4 + 4]))[...] }
    #expect(VehicleInformation.read(lines) == expected)
  }

  @Test func aVINThatIsNoneIsRefused() {
    var wrong = Self.vin
    wrong[3] = UInt8(ascii: "O")
    #expect(Self.reason([0x49, 0x02, 0x01] + wrong) == "a VIN has digits and capital letters without I, O and Q")
    #expect(Self.reason([0x49, 0x02, 0x01] + Self.vin.dropLast()) == "a VIN has 17 characters, not 16")
    #expect(Self.reason([0x49, 0x02, 0x02] + Self.vin) == "more than one VIN")
    #expect(Self.reason([0x49, 0x02, 0x01] + Self.vin, [0x49, 0x02, 0x01] + Self.vin) == "several answers of one controller")
    var holed = Self.vin
    holed[5] = 0
    #expect(Self.reason([0x49, 0x02, 0x01] + holed) != nil)
    #expect(Self.reason([0x49]) != nil && Self.reason() == "no answer")
  }

  @Test func linesThatAreMissingOrOutOfOrderGiveNoVIN() {
    let padded = [0, 0, 0] + Self.vin
    let lines = (0..<5).map { Self.line(UInt8($0 + 1), Array(padded[$0 * 4..<$0 * 4 + 4]))[...] }
    for index in lines.indices {
      var others = lines
      others.remove(at: index)
      var twice = lines
      twice.insert(lines[index], at: index)
      var swapped = lines
      if index > 0 { swapped.swapAt(index, index - 1) }
      for changed in [others, twice, swapped] where changed != lines {
        guard case .broken = VehicleInformation.read(changed) else {
          Issue.record("\(changed)")
          continue
        }
      }
    }
  }

  @Test func calibrationsAreReadWithTheirCheckSums() {
    let calibration = Array("JMB*36761500".utf8) + [0, 0, 0, 0]
    #expect(Self.read([0x49, 0x04, 0x01] + calibration) == .texts(["JMB*36761500"]))
    #expect(Self.read([0x49, 0x04, 0x02] + calibration + calibration) == .texts(["JMB*36761500", "JMB*36761500"]))
    #expect(Self.reason([0x49, 0x04, 0x02] + calibration) != nil)
    #expect(Self.reason([0x49, 0x04, 0x01] + [UInt8](repeating: 0x80, count: 16)) == "the answer holds no plain text")
    #expect(Self.read([0x49, 0x06, 0x01, 0x17, 0x91, 0xBC, 0x82]) == .texts(["1791BC82"]))
    #expect(Self.read([0x49, 0x06, 0x02, 0x17, 0x91, 0xBC, 0x82, 0, 0, 0, 1]) == .texts(["1791BC82", "00000001"]))
    let lines = (0..<4).map { index in ([0x49, 0x04, UInt8(index + 1)] + calibration[index * 4..<index * 4 + 4])[...] }
    #expect(VehicleInformation.read(lines) == .texts(["JMB*36761500"]))
  }

  @Test func aControllerTellsItsName() {
    let name = Array("ECM\0-EngineControl\0\0".utf8)
    #expect(name.count == 20)
    #expect(Self.read([0x49, 0x0A, 0x01] + name) == .texts(["ECM-EngineControl"]))
  }

  @Test func testResultsAreScaledByTheirIds() {
    let bytes: [UInt8] = [0x46, 0x01, 0x01, 0x0A, 0x0B, 0xB0, 0x0B, 0xB0, 0x0B, 0xB0, 0x21, 0x80, 0x9D, 0xFF, 0xFE, 0xFF, 0xFF, 0x00, 0x02]
    guard case .results(let results) = TestResult.read(bytes[...]) else {
      Issue.record("no results")
      return
    }
    #expect(results.count == 2)
    #expect(results[0].monitorName == "oxygen sensor bank 1 sensor 1" && results[0].value == 365.024 && results[0].unit == "mV")
    #expect(results[0].hasPassed)
    #expect(results[1].monitorName == "catalyst bank 1" && results[1].value == -1 && results[1].minimum == -0.5)
    #expect(!results[1].hasPassed && results[1].maximum == 1)
    guard case .results(let raw) = TestResult.read([0x46, 0xF0, 0x01, 0x77, 0x00, 0x10, 0x00, 0x00, 0xFF, 0xFF]) else { return }
    #expect(raw.first?.isScaled == false && raw.first?.value == 16 && raw.first?.monitorName == nil && raw.first?.hasPassed == true)
    for count in [0, 1, 5, 9, 11, 18] {
      guard case .broken = TestResult.read(bytes[..<count]) else {
        Issue.record("\(count) bytes")
        continue
      }
    }
  }

  @Test func aFrozenFrameIsGatheredFromItsAnswers() {
    var frame = FreezeFrame()
    #expect(FreezeFrame.request(0x0C) == [0x02, 0x0C, 0x00])
    for answer in [[0x42, 0x02, 0x00, 0x01, 0x33], [0x42, 0x0C, 0x00, 0x0D, 0x74, 0x05, 0x00, 0x7B]] as [[UInt8]] {
      let problem = frame.add(answer[...])
      #expect(problem == nil)
    }
    #expect(frame.code == TroubleCode("P0133") && frame.frame == 0)
    #expect(
      frame.items == [
        FreezeFrame.Item(name: "rpm", unit: "rpm", value: .float(861)),
        FreezeFrame.Item(name: "coolant-temperature", unit: "°C", value: .int(83)),
      ])
    let before = frame
    for answer in [[0x42, 0x0C, 0x00, 0x0D], [0x41, 0x0C, 0x0D, 0x74], [0x42, 0x0C]] as [[UInt8]] {
      let problem = frame.add(answer[...])
      #expect(problem != nil && frame == before)
    }
    let problem = frame.add([0x42, 0x02, 0x00, 0x00, 0x00])
    #expect(problem == nil && frame.code == nil)
  }
}
