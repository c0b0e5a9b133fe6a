// PIDs whose first byte shows which of their values the ECU supports, and other PIDs of the later tables.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct SupportBitTests {
  /// Numbers, bytes and values by the published tables; unsupported values are absent.
  static let numbers: [(UInt8, String, [UInt8], Value?)] = [
    (0x55, "short-o2-trim-1", [0x80, 0], .float(0)), (0x58, "long-o2-trim-2", [0xFF, 0], .float(99.22)),
    (0x65, "power-take-off-output", [1, 1], .bool(true)), (0x65, "manual-in-gear", [0x0B, 0xFF], nil),
    (0x65, "glow-plug-lamp", [8, 7], .bool(false)), (0x68, "intake-air-temperature-1-1", [1, 60, 0, 0, 0, 0, 0], .int(20)),
    (0x68, "intake-air-temperature-2-3", [0x20, 0, 0, 0, 0, 0, 60], .int(20)),
    (0x68, "intake-air-temperature-2-3", [0x1F, 0, 0, 0, 0, 0, 60], nil),
    (0x69, "egr-a-commanded", [1, 0xFF, 0, 0, 0, 0, 0], .float(100)), (0x69, "egr-b-error", [0x20, 0, 0, 0, 0, 0, 0x80], .float(0)),
    (0x6A, "intake-air-flow-b", [8, 0, 0, 0, 0x33], .float(20)), (0x6B, "egr-temperature-1-2", [2, 0, 90, 0, 0], .int(50)),
    (0x6B, "egr-temperature-1-2", [0x20, 0, 90, 0, 0], .int(320)), (0x6C, "throttle-a-relative", [2, 0, 0x33, 0, 0], .float(20)),
    (0x6D, "fuel-rail-pressure-a", [2, 0, 0, 0x13, 0x88, 0, 0, 0, 0, 0, 0], .int(50000)),
    (0x6D, "fuel-temperature-b", [0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 60], .int(20)),
    (0x6E, "injection-pressure-b", [8, 0, 0, 0, 0, 0, 0, 0x13, 0x88], .int(50000)),
    (0x6F, "compressor-inlet-pressure-a", [1, 100, 0], .int(100)), (0x6F, "compressor-inlet-pressure-b", [8, 0, 20], .int(160)),
    (0x70, "boost-pressure-a", [2, 0, 0, 0x12, 0, 0, 0, 0, 0, 0], .float(144)),
    (0x70, "boost-pressure-b-commanded", [8, 0, 0, 0, 0, 0x12, 0, 0, 0, 0], .float(144)),
    (0x70, "boost-control-b", [0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0x08], .string("closed-loop")),
    (0x71, "vgt-b", [0x10, 0, 0, 0, 0x33, 0], .float(20)), (0x71, "vgt-control-a", [4, 0, 0, 0, 0, 3], .string("fault")),
    (0x72, "wastegate-a-commanded", [1, 0x33, 0, 0, 0], .float(20)), (0x73, "exhaust-pressure-2", [2, 0, 0, 0x27, 0x10], .float(100)),
    (0x74, "turbocharger-a-speed", [1, 0x27, 0x10, 0, 0], .int(100_000)),
    (0x75, "turbocharger-a-turbine-outlet-temperature", [8, 0, 0, 0, 0, 0x13, 0x88], .float(460)),
    (0x76, "turbocharger-b-compressor-outlet-temperature", [2, 0, 90, 0, 0, 0, 0], .int(50)),
    (0x77, "charge-air-temperature-2-1", [4, 0, 0, 90, 0], .int(50)),
    (0x78, "exhaust-temperature-1-1", [1, 0x07, 0x9E, 0, 0, 0, 0, 0, 0], .float(155)),
    (0x99, "exhaust-temperature-2-8", [8, 0, 0, 0, 0, 0, 0, 0x13, 0x88], .float(460)),
    (0x7A, "particulate-filter-pressure-difference-1", [1, 0xFF, 0x9C, 0, 0, 0, 0], .float(-1)),
    (0x7B, "particulate-filter-outlet-pressure-2", [4, 0, 0, 0, 0, 0x27, 0x10], .float(100)),
    (0x7C, "particulate-filter-inlet-temperature-2", [4, 0, 0, 0, 0, 0x13, 0x88, 0, 0], .float(460)),
    (0x85, "reagent-level", [4, 0, 0, 0, 0, 0x33, 0, 0, 0, 0], .float(20)),
    (0x86, "particle-concentration-1", [1, 0, 80, 0, 0], .float(1)),
    (0x87, "intake-pressure-a", [1, 0x0C, 0xA0, 0, 0], .float(101)), (0x9A, "hybrid-battery-voltage", [2, 0, 0x58, 0, 0, 0], .float(352)),
    (0x9D, "fuel-mass-rate", [0, 0x32, 0, 0], .float(1)), (0x9D, "vehicle-fuel-mass-rate", [0, 0, 0, 0x64], .float(2)),
    (0x9F, "fuel-system-b-use-4", [0x80, 0, 0, 0, 0, 0, 0, 0, 0xFF], .float(100)), (0xA4, "gear-ratio", [2, 0, 0x0A, 0xF0], .float(2.8)),
  ]

  @Test func `every value is that of the published tables, if its bit is set`() {
    for (number, name, bytes, value) in Self.numbers {
      let found = StandardParameterTests.read(number, bytes)[name]
      #expect(found == value.map { .value($0) } ?? .absent(.notReported), "\(name)")
      #expect(StandardParameter.all[number]?.length == bytes.count, "\(name)")
    }
  }

  @Test func `a value without its bit is absent, whatever its bytes are`() {
    for number in Set(Self.numbers.map(\.0)).subtracting([0x55, 0x56, 0x57, 0x58, 0x9D]) {
      let bytes = [0] + [UInt8](repeating: 0xFF, count: (StandardParameter.all[number]?.length ?? 1) - 1)
      #expect(StandardParameterTests.read(number, bytes).values.allSatisfy { $0 == .absent(.notReported) }, "\(number)")
    }
  }

  @Test func `a simulated car reports them`() throws {
    var rig = try VehicleRig(PetrolCar(.can11))
    rig.run(for: 30 * .second)
    #expect(rig.number("long-o2-trim-1") == 0.78 && rig.number("egr-a") == 11 && rig.absence("egr-b") == "not reported by this car")
    let rates = (try #require(rig.number("fuel-rate")), try #require(rig.number("fuel-mass-rate")))
    #expect(rates.0 > 0 && abs(rates.1 - rates.0 * 0.745 / 3.6) < 0.5)
  }
}
