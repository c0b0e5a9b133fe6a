// Imperial units: values, schemas, and the conversion back.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct UnitsTests {
  private func reading(_ value: Contract.Value?, _ unit: String?, _ reason: String? = nil) -> Contract.Reading {
    Contract.Reading(device: "ev", property: "x", value: value, unit: unit, time: 5, age: 1, reason: reason)
  }

  private static let conversions: [(Contract.Value, String, Double, String)] = [
    (.int(100), "km/h", 62.1, "mph"), (.float(12345.6), "km", 7671.2, "mi"), (.float(0.35), "km", 0.22, "mi"), (.int(21), "°C", 69.8, "°F"),
    (.int(-40), "°C", -40, "°F"), (.int(230), "kPa", 33.4, "psi"), (.float(2.5), "bar", 36.3, "psi"), (.float(45), "L", 11.9, "gal"),
    (.float(6.2), "L/h", 1.64, "gal/h"), (.int(300), "Nm", 221.3, "lb·ft"), (.float(25), "g/s", 3.31, "lb/min"),
    (.float(16.5), "kWh/100km", 3.77, "mi/kWh"), (.int(0), "km/h", 0, "mph"),
  ]

  @Test(arguments: conversions) func `value and unit change together`(
    _ value: Contract.Value, _ unit: String, _ shown: Double, _ name: String
  ) {
    let result = Units.imperial.converted(reading(value, unit))
    #expect(result.value == .float(shown) && result.unit == name)
    #expect(result.time == 5 && result.age == 1 && result.reference == "ev.x")
    #expect(Units.metric.converted(reading(value, unit)) == reading(value, unit))
  }

  @Test func `whole mph values convert back to whole values`() {
    for mph in -255...255 {
      let speed = (Double(mph) * 16.09344).rounded() / 10  // as ELComm's machine publishes them
      #expect(Units.imperial.converted(reading(.float(speed), "km/h")).value == .float(Double(mph)))
    }
  }

  @Test func `values without an imperial unit do not change`() {
    let others: [Contract.Reading] = [
      reading(.int(3737), "rpm"), reading(.float(12.6), "V"), reading(.string("a"), "km"), reading(.list(["1"]), "°C"),
      reading(.bool(true), nil),
    ]
    for other in others { #expect(Units.imperial.converted(other) == other) }
    #expect(Units.imperial.converted(reading(nil, "km", "not reported by this car")) == reading(nil, "mi", "not reported by this car"))
  }

  @Test func `a consumption of 0 has no mi/kWh`() {
    for number in [0.0, -3] {
      let shown = Units.imperial.converted(reading(.float(number), "kWh/100km"))
      #expect(shown.value == nil && shown.reason == "cannot be expressed in mi/kWh")
    }
  }

  @Test func `JSON has the requested unit and value`() {
    let json = JSON(Units.imperial.converted(reading(.int(100), "km/h"))).text
    #expect(json == #"{"device":"ev","property":"x","value":62.1,"unit":"mph","time":5,"age":1}"#)
  }

  private let schema = Contract.Schema(
    device: "ev", kind: "obd",
    Schema(
      properties: [
        Property("speed", .int, unit: "km/h", range: 0...255, help: "h"),
        Property("use", .float, unit: "kWh/100km", range: 0...50, help: ""),
        Property("open", .float, unit: "°C", range: -40...(.infinity), access: .write, help: ""),
        Property("rpm", .int, unit: "rpm", range: 0...9, help: ""),
        Property("names", .list, unit: "km", help: ""),
      ], actions: [Action("query", help: "")]))

  @Test func `describe shows ranges in the same unit`() {
    let shown = Units.imperial.converted(schema).properties
    #expect(shown.map(\.unit) == ["mph", "mi/kWh", "°F", "rpm", "km"])
    #expect(shown.map(\.type) == ["float", "float", "float", "int", "list"])
    #expect(shown.map(\.minimum) == [0, 1.24, -40, 0, nil])
    #expect(shown.map(\.maximum) == [158.4, nil, nil, 9, nil])
    #expect(shown[2].writable && Units.metric.converted(schema) == schema)
    #expect(shown.map(\.group) == schema.properties.map(\.group) && shown.map(\.rank) == schema.properties.map(\.rank))
  }

  @Test func `describe --json keeps unknown members`() throws {
    let reply = try #require(
      JSON(
        #"{"schemas":[{"device":"ev","x":1,"properties":[{"name":"a","type":"int","unit":"km/h","minimum":0,"maximum":255,"new":true},{"name":"u","type":"float","unit":"kWh/100km","minimum":0,"maximum":50},{"name":"b","type":"string"}]}]}"#
      ))
    #expect(
      Units.imperial.converted(reply).text
        == #"{"schemas":[{"device":"ev","x":1,"properties":[{"name":"a","type":"float","unit":"mph","minimum":0,"maximum":158.4,"new":true},{"name":"u","type":"float","unit":"mi/kWh","minimum":1.24},{"name":"b","type":"string"}]}]}"#
    )
    #expect(Units.metric.converted(reply) == reply)
  }

  @Test func `values are set in the unit that is shown`() throws {
    let limit = Property("limit", .int, unit: "km/h", range: 0...50, access: .write, help: "")
    let warm = Property("warm", .float, unit: "°C", range: 10...30, access: .write, help: "")
    #expect(try Units.imperial.parse("30", for: limit) == .int(48))
    #expect(try Units.imperial.parse("31.1", for: limit) == .int(50), "the end as it is shown is the end")
    #expect(try Units.imperial.parse("68", for: warm) == .float(20))
    #expect(try Units.metric.parse("30", for: limit) == .int(30))
    let names = Property("name", .string, unit: "km", access: .write, help: "")
    #expect(try Units.imperial.parse("x", for: names) == .string("x"))
    let far = #expect(throws: ValueError.self) { _ = try Units.imperial.parse("40", for: limit) }
    #expect(far?.description == "40 is outside 0 to 31.1 mph")
    #expect(throws: ValueError.self) { _ = try Units.imperial.parse("fast", for: limit) }
  }

  @Test func `the option overrides the environment, an invalid value is an error`() throws {
    func unitSystem(_ arguments: String..., value: String? = nil) throws -> Units {
      try #require(try VehicleCtl.command(of: arguments) as? any Subcommand).common.unitSystem { $0 == "VEHICLECTL_UNITS" ? value : nil }
    }
    #expect(try unitSystem("--units", "imperial", "get", "rpm") == .imperial)
    #expect(try unitSystem("watch", "--units", "metric") == .metric)
    #expect(throws: (any Error).self) { _ = try VehicleCtl.command(of: ["get", "rpm", "--units", "si"]) }
    #expect(try unitSystem("status") == .metric)
    #expect(try unitSystem("status", value: "imperial") == .imperial)
    #expect(try unitSystem("status", "--units", "metric", value: "imperial") == .metric)
    let failure = #expect(throws: Failure.self) { _ = try unitSystem("status", value: "furlongs") }
    #expect(failure?.exitCode == 2 && failure?.message.contains("set it to metric or imperial") == true)
  }
}
