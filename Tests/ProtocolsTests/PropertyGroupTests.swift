import Testing

@testable import Protocols

@Suite("Property groups") struct PropertyGroupTests {
  @Test func `every property of a vehicle has a group`() {
    let rows =
      BMSRecord.entries.map(\.dataRow) + ManufacturerRecord.all.flatMap(\.rows) + StandardParameter.all.values.flatMap(\.rows)
      + VehicleProfile.all.flatMap(\.signals).map(\.row)
    let ungrouped = rows.map(\.property).filter { $0.group == .general }
    #expect(rows.count > 300 && ungrouped.isEmpty, "\(ungrouped.map(\.name))")
    let rig = [MirrorProperty.properties, ELCommProperty.properties(period: .second)].joined()
    #expect(rig.filter { $0.group == .general }.map(\.name) == ["extra"])
  }

  @Test func `a summary of a device has one to four values`() {
    let kinds = [
      OBDMachine().schema.properties, MirrorProperty.properties, ELCommProperty.properties(period: .second), ToyProperty.properties,
      WeatherProperty.table(freshFor: .second), PositionProperty.table(maxAge: .second), HealthMetric.properties(heartRateMaxAge: .second),
      StandardParameter.all.values.flatMap(\.rows).map(\.property),
    ]
    for properties in kinds {
      let headlines = properties.filter { $0.rank == .headline }.map(\.name)
      #expect((1...4).contains(headlines.count), "\(headlines)")
    }
  }
}
