// PIDs 4F and 50: ECU-specific scaling, in the arithmetic and in whole cars.

import Testing

@testable import Peers
@testable import Protocols

@Suite struct ScalingTests {
  static func value(_ name: String, _ bytes: [UInt8], maximum: UInt8) -> Decoded? {
    let row = StandardParameter.all.values.flatMap(\.rows).first { $0.property.name == name }
    return bytes.withUnsafeBufferPointer { row?.quantity == nil ? nil : row?.read($0, maximum: maximum) }
  }

  /// Examples of SAE J1979 and SAE J1699-3.
  @Test(
    arguments: [
      ("intake-pressure", [0x7F], 0x4D, 383.5), ("intake-pressure", [0xFF], 0xFF, 2550), ("intake-pressure", [0x7F], 0, 127),
      ("air-flow", [0x10, 0], 0xFF, 159.38), ("air-flow", [0xFF, 0xFF], 1, 10), ("air-flow", [0x10, 0], 0, 40.96),
      ("o2-sensor-1-lambda", [0x7D, 0, 0x9C, 0x40], 4, 1.9532), ("o2-sensor-1-lambda", [0x7D, 0, 0x9C, 0x40], 0, 0.9766),
      ("o2-sensor-8-wide-voltage", [0x7D, 0, 0x9C, 0x40], 16, 9.766), ("o2-sensor-8-wide-voltage", [0x7D, 0, 0x9C, 0x40], 0, 4.883),
      ("o2-sensor-1-current", [0x7D, 0, 0x5C, 0x40], 64, -17.875), ("o2-sensor-1-current", [0x7D, 0, 0x5C, 0x40], 0, -35.75),
      ("o2-sensor-3-current-lambda", [0xFF, 0xFF, 0, 0], 200, 200), ("commanded-lambda", [0x80, 0], 1, 0.5),
    ] as [(String, [UInt8], UInt8, Double)])
  func `a reported maximum is the top of the scale`(
    _ name: String, _ bytes: [UInt8], _ maximum: UInt8, _ value: Double
  ) {
    #expect(Self.value(name, bytes, maximum: maximum) == .value(.float(value)))
  }

  @Test func `every scaled value stays in its property's range with any scaling`() {
    for row in StandardParameter.all.values.flatMap(\.rows) {
      guard row.quantity != nil else { continue }
      for maximum in [0, 1, 77, 255] as [UInt8] {
        for fill in [0, 1, 0x7F, 0x80, 0xFF] as [UInt8] {
          let read = [UInt8](repeating: fill, count: 4).withUnsafeBufferPointer { row.read($0, maximum: maximum) }
          guard case .value(let value) = read else { Issue.record("\(row.property.name)"); continue }
          #expect((try? row.property.rule.accept(value)) == value, "\(row.property.name) \(value.text)")
        }
      }
    }
  }

  /// An engine ECU with intake pressure, air flow and speeds, and further responses.
  private func car(_ more: [String: [(UInt32, String)]]) -> ScriptedCar {
    var answers: [String: [(UInt32, String)]] = [
      "0100": [(0x7E8, "410000390001")], "0120": [(0x7E8, "412000000001")], "0140": [(0x7E8, "414000030000")],
      "010C0D": [(0x7E8, "410C0D740D32")], "010B10": [(0x7E8, "410B7F101000")],
    ]
    answers.merge(more) { $1 }
    return VehiclePollingTests.car(answers)
  }

  @Test func `pressure and air flow use the scaling of their ECU`() throws {
    var rig = try VehicleRig(car(["014F50": [(0x7E8, "414F0000004D50FF000000")]]))
    rig.run(for: 20 * .second)
    #expect(rig.number("rpm") == 861 && rig.fault == nil)
    #expect(rig.seen["intake-pressure"] == ["383.5"] && rig.seen["air-flow"] == ["159.38"])
    // Requested early and once: scaling does not change.
    #expect(rig.sentCommands.count { $0.command.hasPrefix("014F50") } == 1)
    // It applies to queries, too.
    let report = try rig.report("query", ["request": .string("010B10")])
    #expect(report.rows.first?[2] == "intake pressure 383.5 kPa, air flow 159.38 g/s")
  }

  @Test func `an ECU without these PIDs uses the standard scaling and is not queried`() throws {
    var rig = try VehicleRig(car(["0140": [(0x7E8, "414040000000")]]))
    rig.run(for: 20 * .second)
    #expect(rig.seen["intake-pressure"] == ["127"] && rig.seen["air-flow"] == ["40.96"])
    #expect(!rig.sentCommands.contains { $0.command.hasPrefix("014F") || $0.command.hasPrefix("0150") })
    var short = try VehicleRig(car(["0100": [(0x7E8, "410000390000")]]))
    short.run(for: 20 * .second)
    #expect(short.seen["intake-pressure"] == ["127"] && short.seen["air-flow"] == ["40.96"])
  }

  @Test func `zeros mean the standard scaling`() throws {
    var rig = try VehicleRig(car(["014F50": [(0x7E8, "414F000000005000000000")]]))
    rig.run(for: 20 * .second)
    #expect(rig.seen["intake-pressure"] == ["127"] && rig.seen["air-flow"] == ["40.96"])
  }

  @Test(arguments: ["", "7F0112", "414F0000004D", "414F0000"])
  func `until the scaling is reported the value is absent with the reason`(_ answer: String) throws {
    let response: (UInt32, String) = (0x7E8, answer)
    var rig = try VehicleRig(car(["014F50": answer.isEmpty ? [] : [response]]))
    rig.run(for: 30 * .second)
    #expect(rig.number("rpm") == 861 && rig.number("speed") == 50 && rig.status == "polling")
    #expect(rig.seen["air-flow"] == nil && rig.absence("air-flow")?.contains("scaling") == true)
    #expect(rig.seen["intake-pressure"] == (answer == "414F0000004D" ? ["383.5"] : nil))
  }

  @Test func `each ECU has its own scaling`() throws {
    var rig = try VehicleRig(
      VehiclePollingTests.car([
        "0100": [(0x7E8, "410000380001"), (0x7E9, "410000010001")], "0120": [(0x7E8, "412000000001"), (0x7E9, "412000000000")],
        "0140": [(0x7E8, "414000020000")], "010C0D": [(0x7E8, "410C0D740D32")], "010B": [(0x7E8, "410B7F")],
        "0110": [(0x7E9, "41101000")], "014F": [(0x7E8, "414F0000004D")],
      ]))
    rig.run(for: 30 * .second)
    #expect(rig.seen["intake-pressure"] == ["383.5"] && rig.seen["air-flow"] == ["40.96"])
  }

  @Test(arguments: [DiagnosticBus.can11, .can29, .kwp, .iso9141])
  func `a simulated engine with its own scaling gives the same values`(_ bus: DiagnosticBus) throws {
    var (plain, scaled) = (try VehicleRig(PetrolCar(bus)), try VehicleRig(PetrolCar(bus, reportsScaling: true)))
    plain.run(for: 120 * .second)
    scaled.run(for: 120 * .second)
    for (name, tolerance) in [("intake-pressure", 2), ("air-flow", 0.1), ("commanded-lambda", 0.001)] as [(String, Double)] {
      let values = try (#require(plain.number(name)), #require(scaled.number(name)))
      #expect(abs(values.0 - values.1) <= max(tolerance, values.0 / 5), "\(name) \(values)")
    }
    // The scaling is not valid for the next connection's vehicle.
    scaled.reconnect()
    #expect(scaled.machine.router.values.scales.maximum(of: .airFlow, at: 0x7E8) == nil)
  }
}
