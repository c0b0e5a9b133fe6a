import Testing

@testable import Protocols

@Suite struct StandardParameterTests {
  /// The values of a PID with these bytes, by property.
  static func read(_ number: UInt8, _ bytes: [UInt8]) -> [String: Decoded] {
    var found: [String: Decoded] = [:]
    for row in StandardParameter.all[number]?.rows ?? [] { found[row.property.name] = bytes.withUnsafeBufferPointer(row.read) }
    return found
  }

  static func value(_ number: UInt8, _ name: String, _ bytes: UInt8...) -> Value? {
    if case .value(let value)? = read(number, bytes)[name] { value } else { nil }
  }

  /// Numbers, bytes and values by the standard's formulas.
  static let numbers: [(UInt8, String, [UInt8], Value)] = [
    (0x04, "engine-load", [0xFF], .float(100)), (0x04, "engine-load", [0x7F], .float(49.8)), (0x05, "coolant-temperature", [0], .int(-40)),
    (0x05, "coolant-temperature", [0xFF], .int(215)), (0x06, "short-fuel-trim-1", [0x80], .float(0)),
    (0x07, "long-fuel-trim-1", [0x7D], .float(-2.34)), (0x08, "short-fuel-trim-2", [0], .float(-100)),
    (0x09, "long-fuel-trim-2", [0xFF], .float(99.22)), (0x0A, "fuel-pressure", [0xFF], .int(765)),
    (0x0B, "intake-pressure", [0x65], .float(101)), (0x0C, "rpm", [0x0D, 0x74], .float(861)), (0x0C, "rpm", [0x0D, 0x75], .float(861.25)),
    (0x0D, "speed", [0x32], .int(50)), (0x0E, "timing-advance", [0], .float(-64)), (0x0F, "intake-air-temperature", [0x3C], .int(20)),
    (0x10, "air-flow", [0x01, 0xF4], .float(5)), (0x11, "throttle-position", [0x33], .float(20)),
    (0x14, "o2-sensor-1-voltage", [0x5A, 0xFF], .float(0.45)), (0x1B, "o2-sensor-8-trim", [0x5A, 0x80], .float(0)),
    (0x1F, "run-time", [0xFF, 0xFF], .int(65535)), (0x21, "distance-with-mil", [0, 0x64], .int(100)),
    (0x22, "fuel-rail-pressure-relative", [0x10, 0], .float(323.6)), (0x23, "fuel-rail-pressure", [0x13, 0x88], .int(50000)),
    (0x24, "o2-sensor-1-lambda", [0x80, 0, 0, 0], .float(1)), (0x2B, "o2-sensor-8-wide-voltage", [0x80, 0, 0x80, 0], .float(4)),
    (0x2C, "egr-commanded", [0xFF], .float(100)), (0x2D, "egr-error", [0x80], .float(0)), (0x2E, "evap-purge", [0], .float(0)),
    (0x2F, "fuel-level", [0x80], .float(50.2)), (0x30, "warm-ups-since-clear", [0xFF], .int(255)),
    (0x31, "distance-since-clear", [0x27, 0x10], .int(10000)), (0x32, "evap-pressure", [0xFF, 0xFE], .float(-0.5)),
    (0x33, "barometric-pressure", [0x65], .int(101)), (0x34, "o2-sensor-1-current", [0x80, 0, 0x80, 0], .float(0)),
    (0x3B, "o2-sensor-8-current-lambda", [0x40, 0, 0x80, 0], .float(0.5)), (0x3C, "catalyst-temperature-1-1", [0x13, 0x88], .float(460)),
    (0x3F, "catalyst-temperature-2-2", [0, 0], .float(-40)), (0x42, "module-voltage", [0x37, 0xDC], .float(14.3)),
    (0x43, "absolute-load", [0, 0xFF], .float(100)), (0x44, "commanded-lambda", [0x80, 0], .float(1)),
    (0x46, "ambient-temperature", [0x3C], .int(20)), (0x49, "pedal-position-d", [0xFF], .float(100)),
    (0x4D, "time-with-mil", [1, 0], .int(256)), (0x4E, "time-since-clear", [0, 1], .int(1)), (0x52, "ethanol", [0xD9], .float(85.1)),
    (0x53, "evap-pressure-absolute", [0x4E, 0x20], .float(100)), (0x54, "evap-pressure-wide", [0xFF, 0xFF], .int(-1)),
    (0x59, "fuel-rail-pressure-absolute", [0x13, 0x88], .int(50000)), (0x5B, "hybrid-battery-remaining", [0xFF], .float(100)),
    (0x5C, "oil-temperature", [0x82], .int(90)), (0x5D, "injection-timing", [0x69, 0], .float(0)),
    (0x5E, "fuel-rate", [0, 0x32], .float(2.5)),
    (0x61, "torque-demanded", [0x7D], .int(0)), (0x62, "torque", [0], .int(-125)), (0x63, "torque-reference", [1, 0x90], .int(400)),
    (0x66, "air-flow-a", [1, 0x01, 0x40, 0, 0], .float(10)), (0x67, "coolant-temperature-2", [2, 0, 0x82], .int(90)),
    (0x7F, "engine-time", [1, 0, 0, 0x0E, 0x10, 0, 0, 0, 0, 0, 0, 0, 0], .int(3600)), (0x84, "manifold-temperature", [0x50], .int(40)),
    (0x8E, "torque-friction", [0x87], .int(10)), (0x9E, "exhaust-flow", [0, 0x64], .float(20)),
    (0xA2, "cylinder-fuel-rate", [0x01, 0x40], .float(10)), (0xA6, "odometer", [0, 0x12, 0xD6, 0x87], .float(123456.7)),
  ]

  @Test func everyFormulaGivesTheStandardsNumber() {
    for (number, name, bytes, value) in Self.numbers {
      #expect(Self.read(number, bytes)[name] == .value(value), "\(name)")
      #expect(StandardParameter.all[number]?.length == bytes.count, "\(name)")
    }
  }

  @Test func enumerationsHaveTheirClosedSets() {
    #expect(Self.value(0x03, "fuel-system-1", 2, 0) == .string("closed-loop"))
    #expect(Self.read(0x03, [2, 0])["fuel-system-2"] == .absent(.notReported))
    #expect(Self.read(0x03, [3, 4])["fuel-system-1"] == .absent(.undefined))
    #expect(Self.value(0x12, "secondary-air", 4) == .string("off"))
    #expect(Self.value(0x1C, "obd-standard", 6) == .string("EOBD"))
    #expect(Self.value(0x1E, "power-take-off", 1) == .bool(true))
    #expect(Self.value(0x51, "fuel-type", 8) == .string("electric"))
    #expect(Self.read(0x51, [0])["fuel-type"] == .absent(.undefined))
    #expect(Self.value(0x13, "o2-sensors", 0x13) == .list(["bank 1 sensor 1", "bank 1 sensor 2", "bank 2 sensor 1"]))
    #expect(Self.value(0x1D, "o2-sensors-in-four-banks", 0x82) == .list(["bank 1 sensor 2", "bank 4 sensor 2"]))
    #expect(Self.value(0x02, "freeze-frame-code", 0x01, 0x33) == .string("P0133"))
    #expect(Self.read(0x02, [0, 0])["freeze-frame-code"] == .absent(.notAvailable))
    #expect(Self.value(0x14, "o2-sensor-1-trim", 0x5A, 0xFF) == nil)
    #expect(Self.read(0x66, [0, 1, 0x40, 0, 0])["air-flow-a"] == .absent(.notReported))
  }

  @Test func monitorsAreReportedWithTheirStateByTypeOfEngine() {
    let spark = Self.read(0x01, [0x83, 0x07, 0x65, 0x04])
    #expect(spark["mil"] == .value(.bool(true)) && spark["dtc-count"] == .value(.int(3)))
    #expect(spark["ignition-type"] == .value(.string("spark")))
    #expect(
      spark["monitors"]
        == .value(
          .list([
            "misfire: complete", "fuel system: complete", "components: complete", "catalyst: complete", "evaporative system: incomplete",
            "oxygen sensor: complete", "oxygen sensor heater: complete",
          ])))
    #expect(spark["monitors-ready"] == .value(.bool(false)))
    let diesel = Self.read(0x01, [0x00, 0x7F, 0x6B, 0x43])
    #expect(diesel["mil"] == .value(.bool(false)) && diesel["ignition-type"] == .value(.string("compression")))
    #expect(
      diesel["monitors"]
        == .value(
          .list([
            "misfire: incomplete", "fuel system: incomplete", "components: incomplete", "hydrocarbon catalyst: incomplete",
            "nox aftertreatment: incomplete", "boost pressure: complete", "exhaust gas sensor: complete", "particulate filter: incomplete",
          ])))
    let electric = Self.read(0x01, [0, 0, 0, 0])
    #expect(electric["monitors"] == .value(.list([])) && electric["monitors-ready"] == .absent(.notReported))
    #expect(electric["ignition-type"] == .absent(.notReported))
    #expect(Self.value(0x41, "drive-monitors-ready", 0, 0x07, 0xE5, 0) == .bool(true))
  }

  @Test func theBitmapListsSupportedPIDs() {
    #expect(
      StandardParameter.supported([0xBE, 0x3E, 0xF8, 0x11], base: 0)
        == [1, 3, 4, 5, 6, 7, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F, 0x11, 0x12, 0x13, 0x14, 0x15, 0x1C, 0x20])
    #expect(StandardParameter.supported([0, 0, 0, 1], base: 0xC0) == [0xE0])
    #expect(StandardParameter.supported([0xFF, 0xFF, 0xFF, 0xFF], base: 0xE0).last == 0xFF)
    #expect(StandardParameter.supported([0x80], base: 0x20) == [0x21])
  }

  @Test func namesAreUniqueAndEveryValueIsOfItsDeclaration() {
    let rows = StandardParameter.all.values.flatMap(\.rows)
    #expect(Set(rows.map(\.property.name)).count == rows.count)
    for (number, parameter) in StandardParameter.all {
      #expect(number == parameter.number && number % 0x20 != 0 && (1...13).contains(parameter.length))
      for first in 0...255 as ClosedRange<UInt8> {
        for fill in [0, 1, 0x55, 0x7F, 0x80, 0xFE, 0xFF] as [UInt8] {
          let bytes = [first] + [UInt8](repeating: fill, count: parameter.length - 1)
          for row in parameter.rows {
            guard case .value(let value) = bytes.withUnsafeBufferPointer(row.read) else { continue }
            if (try? row.property.rule.accept(value)) != value { Issue.record("\(row.property.name) cannot be \(value.text)") }
          }
        }
      }
      for row in parameter.rows {
        #expect([UInt8]().withUnsafeBufferPointer(row.read) == .absent(.notReported), "\(row.property.name)")
        #expect(row.property.help.count > 5 && row.property.name.allSatisfy { $0 == "-" || $0.isNumber || $0.isLowercase })
      }
    }
  }

  struct Part: Equatable {
    var number: UInt8
    var data: [UInt8]
  }

  static func split(_ bytes: [UInt8], asked: Set<UInt8>? = nil) -> (parts: [Part], problem: String?) {
    var parts: [Part] = []
    let problem = StandardParameter.split(bytes[...], where: { asked?.contains($0) ?? true }) {
      parts.append(Part(number: $0, data: Array(bytes[$1])))
    }
    return (parts, problem)
  }

  @Test func severalPIDsOfOneResponseAreSplitByTheirLengths() {
    let bytes: [UInt8] = [0x41, 0x01, 0x00, 0x07, 0xE5, 0x00, 0x03, 0x01, 0x00, 0x04, 0x00, 0x06, 0x80, 0x07, 0x7D, 0x0C, 0x00, 0x00]
    let expected = [
      Part(number: 1, data: [0, 7, 0xE5, 0]), Part(number: 3, data: [1, 0]), Part(number: 4, data: [0]), Part(number: 6, data: [0x80]),
      Part(number: 7, data: [0x7D]), Part(number: 0x0C, data: [0, 0]),
    ]
    let whole = Self.split(bytes)
    #expect(whole.parts == expected && whole.problem == nil)
    #expect(Self.split([0x42, 0x0C, 0x00, 0x0D, 0x74, 0x05, 0x00, 0x7B]).parts.map(\.data) == [[0x0D, 0x74], [0x7B]])
  }

  @Test func aResponseOfWrongLengthIsRejected() {
    let cases: [([UInt8], String)] = [
      ([0x41, 0x0C, 0x0D], "PID 0C is truncated"), ([0x41, 0x0C, 0x0D, 0x0D, 0x7D], "PID 7D is unknown"),
      ([0x41], "response without a PID"), ([0x7F, 0x01, 0x12], "not a service 01 or 02 response"),
      ([], "not a service 01 or 02 response"), ([0x41, 0x7E, 0x80], "PID 7E is unknown"),
      ([0x42, 0x0C, 0x00, 0x0D], "PID 0C is truncated"),
    ]
    for (bytes, reason) in cases {
      let answer = Self.split(bytes)
      #expect(answer.parts.isEmpty && answer.problem == reason, "\(bytes)")
    }
    let swapped = Self.split([0x41, 0xC0, 1, 2, 3, 4], asked: [0x0C])
    #expect(swapped.parts.isEmpty && swapped.problem == "PID C0 was not requested")
    for count in 2..<18 {
      let bytes: [UInt8] = [0x41, 0x01, 0x00, 0x07, 0xE5, 0x00, 0x03, 0x01, 0x00, 0x04, 0x00, 0x06, 0x80, 0x07, 0x7D, 0x0C, 0x00, 0x00]
      let answer = Self.split(Array(bytes[..<count]))
      #expect(answer.parts.isEmpty == (answer.problem != nil))
    }
  }
}
