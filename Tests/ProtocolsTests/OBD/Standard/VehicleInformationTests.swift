import Testing

@testable import Protocols

@Suite struct VehicleInformationTests {
  static let vin: [UInt8] = Array("1D4GP00R55B123456".utf8)

  static func read(_ messages: [UInt8]...) -> VehicleInformation.Answer { VehicleInformation.read(messages.map { $0[...] }) }

  static func reason(_ messages: [UInt8]...) -> String? {
    if case .malformed(let reason) = VehicleInformation.read(messages.map { $0[...] }) { reason } else { nil }
  }

  static func results(_ message: [UInt8]) -> [TestResult]? {
    if case .results(let results) = TestResult.read(message[...]) { results } else { nil }
  }

  /// The lines of four numbered bytes on protocols before CAN.
  static func lines(_ type: UInt8, _ data: [UInt8]) -> [ArraySlice<UInt8>] {
    var lines: [ArraySlice<UInt8>] = []
    for start in stride(from: 0, to: data.count, by: 4) {
      var line: [UInt8] = [0x49, type, UInt8(start / 4 + 1)]
      line += data[start..<min(start + 4, data.count)]
      lines.append(line[...])
    }
    return lines
  }

  static let calibration: [UInt8] = Array("JMB*36761500".utf8) + [0, 0, 0, 0]
  static let oneCalibration: [UInt8] = [0x49, 0x04, 0x01] + calibration
  static let twoCalibrations: [UInt8] = [0x49, 0x04, 0x02] + calibration + calibration
  static let oneOfTwoCalibrations: [UInt8] = [0x49, 0x04, 0x02] + calibration
  static let carVIN: [UInt8] = [0x49, 0x02, 0x01] + vin
  static let udsVIN: [UInt8] = [0x62, 0xF1, 0x90] + vin

  @Test func theVINIsReadFromEveryProtocol() {
    let expected = VehicleInformation.Answer.texts(["1D4GP00R55B123456"])
    #expect(Self.read(Self.carVIN) == expected)
    #expect(Self.read(Self.udsVIN) == expected)
    #expect(Self.read(Self.udsVIN + [0xFF, 0x00]) == expected)
    let lines = Self.lines(0x02, [0, 0, 0] + Self.vin)
    #expect(VehicleInformation.read(lines) == expected)
  }

  @Test func anInvalidVINIsRejected() {
    var wrong = Self.vin
    wrong[3] = UInt8(ascii: "O")
    let misspelt: [UInt8] = [0x49, 0x02, 0x01] + wrong
    #expect(Self.reason(misspelt) == "a VIN has digits and capital letters without I, O and Q")
    #expect(Self.reason(Self.carVIN.dropLast()) == "a VIN has 17 characters, not 16")
    let two: [UInt8] = [0x49, 0x02, 0x02] + Self.vin
    #expect(Self.reason(two) == "more than one VIN")
    #expect(Self.reason(Self.carVIN, Self.carVIN) == "several responses from one ECU")
    var holed = Self.vin
    holed[5] = 0
    let gap: [UInt8] = [0x49, 0x02, 0x01] + holed
    #expect(Self.reason(gap) != nil)
    #expect(Self.reason([0x49]) != nil && Self.reason() == "no response")
  }

  @Test func linesThatAreMissingOrOutOfOrderGiveNoVIN() {
    let lines = Self.lines(0x02, [0, 0, 0] + Self.vin)
    for index in lines.indices {
      var others = lines
      others.remove(at: index)
      var twice = lines
      twice.insert(lines[index], at: index)
      var swapped = lines
      if index > 0 { swapped.swapAt(index, index - 1) }
      for changed in [others, twice, swapped] where changed != lines {
        guard case .malformed = VehicleInformation.read(changed) else {
          Issue.record("\(changed)")
          continue
        }
      }
    }
  }

  @Test func calibrationsAreReadWithTheirVerificationNumbers() {
    #expect(Self.read(Self.oneCalibration) == .texts(["JMB*36761500"]))
    #expect(Self.read(Self.twoCalibrations) == .texts(["JMB*36761500", "JMB*36761500"]))
    #expect(Self.reason(Self.oneOfTwoCalibrations) != nil)
    let binary: [UInt8] = [0x49, 0x04, 0x01] + [UInt8](repeating: 0x80, count: 16)
    #expect(Self.reason(binary) == "the response contains no plain text")
    #expect(Self.read([0x49, 0x06, 0x01, 0x17, 0x91, 0xBC, 0x82]) == .texts(["1791BC82"]))
    #expect(Self.read([0x49, 0x06, 0x02, 0x17, 0x91, 0xBC, 0x82, 0, 0, 0, 1]) == .texts(["1791BC82", "00000001"]))
    #expect(VehicleInformation.read(Self.lines(0x04, Self.calibration)) == .texts(["JMB*36761500"]))
  }

  @Test func anECUReportsItsName() {
    let name = Array("ECM\0-EngineControl\0\0".utf8)
    #expect(name.count == 20)
    let answer: [UInt8] = [0x49, 0x0A, 0x01] + name
    #expect(Self.read(answer) == .texts(["ECM-EngineControl"]))
  }

  @Test func testResultsAreScaledByTheirIds() throws {
    let bytes: [UInt8] = [0x46, 0x01, 0x01, 0x0A, 0x0B, 0xB0, 0x0B, 0xB0, 0x0B, 0xB0, 0x21, 0x80, 0x9D, 0xFF, 0xFE, 0xFF, 0xFF, 0x00, 0x02]
    let results = try #require(Self.results(bytes))
    #expect(results.count == 2)
    #expect(results[0].monitorName == "oxygen sensor bank 1 sensor 1" && results[0].value == 365.024 && results[0].unit == "mV")
    #expect(results[0].hasPassed)
    #expect(results[1].monitorName == "catalyst bank 1" && results[1].value == -1 && results[1].minimum == -0.5)
    #expect(!results[1].hasPassed && results[1].maximum == 1)
    let raw = try #require(Self.results([0x46, 0xF0, 0x01, 0x77, 0x00, 0x10, 0x00, 0x00, 0xFF, 0xFF]))
    #expect(raw.first?.isScaled == false && raw.first?.value == 16 && raw.first?.monitorName == nil && raw.first?.hasPassed == true)
    for count in [0, 1, 5, 9, 11, 18] {
      guard case .malformed = TestResult.read(bytes[..<count]) else {
        Issue.record("\(count) bytes")
        continue
      }
    }
  }

  @Test func aFreezeFrameIsAssembledFromItsResponses() {
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

  @Test func `a freeze frame uses the scaling of its ECU, once that is known`() {
    var scales = Scales()
    let answer: [UInt8] = [0x42, 0x0B, 0x00, 0x7F]
    var frame = FreezeFrame()
    let before = frame.add(answer[...], scales, from: 0x7E8)
    #expect(before == nil && frame.items.isEmpty)
    ([0, 0, 0, 0x4D] as [UInt8]).withUnsafeBufferPointer { scales.record(0x4F, $0, from: 0x7E8) }
    let problem = frame.add(answer[...], scales, from: 0x7E8)
    #expect(problem == nil && frame.items == [FreezeFrame.Item(name: "intake-pressure", unit: "kPa", value: .float(383.5))])
  }
}
