// On-board test results, service 06 on CAN (SAE J1979): a value and its limits. The unit-and-scaling identifier defines the scaling; if it
// is unknown, the numbers are not scaled.

struct TestResult: Sendable, Equatable {
  /// The monitor identifier (OBDMID).
  let monitor: UInt8
  /// The test identifier (TID).
  let test: UInt8
  /// The unit-and-scaling identifier (UASID).
  let scaling: UInt8
  let value: Double
  let minimum: Double
  let maximum: Double
  /// The unit; nil if the value has none, or the scaling is unknown.
  let unit: String?
  let isScaled: Bool

  var hasPassed: Bool { minimum <= value && value <= maximum }

  /// Whether the test has run since the codes were cleared; until it has, value and limits are 0.
  var hasRun: Bool { value != 0 || minimum != 0 || maximum != 0 }

  enum Answer: Equatable {
    case results([TestResult])
    case malformed(String)
  }

  /// Parses one message: `46` and nine bytes per test.
  static func read(_ message: ArraySlice<UInt8>) -> Answer {
    let bytes = Array(message)
    guard bytes.first == 0x46 else { return .malformed("not a service 06 response") }
    guard bytes.count > 1, bytes.count % 9 == 1 else { return .malformed("truncated test result") }
    return .results(stride(from: 1, to: bytes.count, by: 9).map { TestResult(bytes[$0..<$0 + 9]) })
  }

  private init(_ record: ArraySlice<UInt8>) {
    let bytes = Array(record)
    (monitor, test, scaling) = (bytes[0], bytes[1], bytes[2])
    let row = Self.scalings[bytes[2]]
    let number = { (at: Int) -> Double in
      let raw = UInt16(bytes[at]) << 8 | UInt16(bytes[at + 1])
      let isSigned = bytes[2] >= 0x80
      let number = isSigned ? Double(Int16(bitPattern: raw)) : Double(raw)
      return ((number * (row?.step ?? 1) + (row?.offset ?? 0)) * 1e7).rounded() / 1e7 + 0
    }
    (value, minimum, maximum) = (number(3), number(5), number(7))
    unit = row?.unit
    isScaled = row != nil
  }

  /// The name of the monitor; nil if it is not standardised.
  var monitorName: String? {
    switch monitor {
    case 0x01...0x10: "oxygen sensor bank \((monitor - 1) / 4 + 1) sensor \((monitor - 1) % 4 + 1)"
    case 0x21...0x24: "catalyst bank \(monitor - 0x20)"
    case 0x31...0x34: "EGR bank \(monitor - 0x30)"
    case 0x35...0x38: "VVT bank \(monitor - 0x34)"
    case 0x39: "evaporative system, cap off"
    case 0x3A: "evaporative system, 2.3 mm leak"
    case 0x3B: "evaporative system, 1 mm leak"
    case 0x3C: "evaporative system, 0.5 mm leak"
    case 0x3D: "evaporative system, purge flow"
    case 0x41...0x50: "oxygen sensor heater bank \((monitor - 0x41) / 4 + 1) sensor \((monitor - 0x41) % 4 + 1)"
    case 0x61...0x64: "heated catalyst bank \(monitor - 0x60)"
    case 0x71...0x74: "secondary air \(monitor - 0x70)"
    case 0x81...0x84: "fuel system bank \(monitor - 0x80)"
    case 0xA1: "misfire"
    case 0xA2...0xAD: "misfire cylinder \(monitor - 0xA1)"
    default: nil
    }
  }

  /// The name of the test; nil if it is not standardised. Only the tests of oxygen sensors and misfire are standardised.
  var testName: String? {
    switch (monitor, test) {
    case (0x01...0x10, 0x01...0x0A): Self.sensorTests[Int(test) - 1]
    case (0xA1...0xAD, 0x0B): "misfire counts, EWMA of the last 10 driving cycles"
    case (0xA1...0xAD, 0x0C): "misfire counts, last driving cycle"
    default: nil
    }
  }

  private static let sensorTests = [
    "rich to lean threshold", "lean to rich threshold", "low voltage for switch time", "high voltage for switch time",
    "rich to lean switch time", "lean to rich switch time", "minimum voltage", "maximum voltage", "time between transitions", "period",
  ]

  private typealias Scaling = (step: Double, offset: Double, unit: String?)

  /// The scalings by identifier: unsigned below 0x80, signed from 0x80.
  private static let scalings: [UInt8: Scaling] = {
    var table: [UInt8: Scaling] = [:]
    let rows: [(UInt8, Double, String?)] = [
      (0x01, 1, nil), (0x02, 0.1, nil), (0x03, 0.01, nil), (0x04, 0.001, nil), (0x05, 0.0000305, nil), (0x06, 0.000305, nil),
      (0x07, 0.25, "rpm"), (0x08, 0.01, "km/h"), (0x09, 1, "km/h"), (0x0A, 0.122, "mV"), (0x0B, 0.001, "V"), (0x0C, 0.01, "V"),
      (0x0D, 0.00390625, "mA"), (0x0E, 0.001, "A"), (0x0F, 0.01, "A"), (0x10, 1, "ms"), (0x11, 100, "ms"), (0x12, 1, "s"),
      (0x13, 1, "mΩ"), (0x14, 1, "Ω"), (0x15, 1, "kΩ"), (0x17, 0.01, "kPa"), (0x18, 0.0117, "kPa"), (0x19, 0.079, "kPa"),
      (0x1A, 1, "kPa"), (0x1B, 10, "kPa"), (0x1C, 0.01, "°"), (0x1D, 0.5, "°"), (0x1E, 0.0000305, nil), (0x1F, 0.05, nil),
      (0x20, 0.00390625, nil), (0x21, 1, "mHz"), (0x22, 1, "Hz"), (0x23, 1, "kHz"), (0x24, 1, nil), (0x25, 1, "km"),
      (0x26, 0.1, "mV/ms"), (0x27, 0.01, "g/s"), (0x28, 1, "g/s"), (0x29, 0.25, "Pa/s"), (0x2F, 0.01, "%"), (0x34, 1, "min"),
      (0x35, 10, "ms"), (0x81, 1, nil), (0x82, 0.1, nil), (0x83, 0.01, nil), (0x84, 0.001, nil), (0x85, 0.0000305, nil),
      (0x86, 0.000305, nil), (0x8A, 0.122, "mV"), (0x8B, 0.001, "V"), (0x8C, 0.01, "V"), (0x8D, 0.00390625, "mA"), (0x8E, 0.001, "A"),
      (0x90, 1, "ms"), (0x96, 0.1, "°C"), (0x9C, 0.01, "°"), (0x9D, 0.5, "°"), (0xA8, 1, "g/s"), (0xA9, 0.25, "Pa/s"),
      (0xAF, 0.01, "%"), (0xFC, 0.01, "kPa"), (0xFD, 0.001, "kPa"), (0xFE, 0.25, "Pa"),
    ]
    for row in rows { table[row.0] = (row.1, 0, row.2) }
    table[0x16] = (0.1, -40, "°C")
    return table
  }()
}
