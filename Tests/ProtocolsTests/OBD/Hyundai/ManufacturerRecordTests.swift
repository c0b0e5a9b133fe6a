import Testing

@testable import Protocols

@Suite struct ManufacturerRecordTests {
  /// The data record of a family with this address and request.
  static func record(_ family: VehicleFamily, _ header: UInt32, _ request: [UInt8]) throws -> ManufacturerRecord {
    try #require(family.records.first { $0.header == header && $0.request == request })
  }

  /// The decoded rows of a printed reply.
  static func read(_ family: VehicleFamily, _ header: UInt32, _ request: [UInt8], _ lines: [String]) throws -> [String: Decoded] {
    try read(family, header, request, Array(lines.joined(separator: "\r").utf8))
  }

  static func read(_ family: VehicleFamily, _ header: UInt32, _ request: [UInt8], _ reply: [UInt8]) throws -> [String: Decoded] {
    let record = try record(family, header, request)
    var reader = ReplyReader()
    let outcome = reader.read(reply.last == prompt ? reply.dropLast() : reply)
    #expect(outcome == .messages)
    let message = try #require(reader.messages.first)
    #expect(message.source == record.reply && reader.bytes(of: message).starts(with: record.responsePrefix))
    return values(record, Array(reader.bytes(of: message).dropFirst(record.responsePrefix.count)))
  }

  static func values(_ record: ManufacturerRecord, _ data: [UInt8]) -> [String: Decoded] {
    var found: [String: Decoded] = [:]
    for row in record.rows { found[row.property.name] = data.withUnsafeBufferPointer(row.read) }
    return found
  }

  static func expect(_ found: [String: Decoded], _ numbers: [String: Double], _ strings: [String: String] = [:]) {
    for (name, number) in numbers {
      guard case .value(let value)? = found[name] else {
        Issue.record("\(name) is \(String(describing: found[name]))")
        continue
      }
      #expect(value.number == number, "\(name)")
    }
    for (name, string) in strings { #expect(found[name] == .value(.string(string)), "\(name)") }
  }

  @Test func record05OfAnEV6HasItsModulesAndItsEnergy() throws {
    let found = try Self.read(.eGMP, 0x7E4, [0x22, 0x01, 0x05], Vector.wallboxRecord05)
    var numbers: [String: Double] = [
      "state-of-charge-display": 53, "state-of-health": 100, "remaining-energy": 36.868, "available-charge-power": 277,
      "available-discharge-power": 277, "cell-voltage-deviation": 0, "airbag-duty": 100, "battery-heater-temperature": 34,
      "cell-deterioration-max-cell": 5,
    ]
    for (module, temperature) in zip(6...16, [31, 32, 31, 31, 31, 31, 30, 31, 30, 31, 32]) {
      numbers["module-temperature-\(module)"] = Double(temperature)
    }
    Self.expect(found, numbers)
    #expect(found.count == numbers.count)
  }

  @Test func record05OfAKonaHasDeteriorationAndNoFurtherModules() throws {
    let found = try Self.read(
      .konaNiro, 0x7E4, [0x22, 0x01, 0x05],
      [
        "7EC102E620105003FFF", "7EC2190000000000000", "7EC220000077E000041", "7EC238C3E7800006407", "7EC244B03E032003137",
        "7EC254B0000B4B40000", "7EC260900000000AAAA",
      ])
    Self.expect(
      found,
      [
        "state-of-charge-display": 37.5, "state-of-health": 99.2, "available-charge-power": 167.8, "available-discharge-power": 159.92,
        "battery-heater-temperature": 7, "cell-deterioration-min": 4.9, "cell-deterioration-min-cell": 55,
        "cell-deterioration-max-cell": 50,
      ])
    #expect(found["module-temperature-6"] == nil && found["remaining-energy"] == nil)
  }

  @Test func zerosAfterTheLastModuleAreNoTemperatures() throws {
    var reader = ReplyReader()
    let outcome = reader.read(Vector.wallboxRecord05.dropLast())
    #expect(outcome == .messages)
    var data = Array(reader.payload.dropFirst(3))
    try #require(data.count == 43)
    let record = try Self.record(.eGMP, 0x7E4, [0x22, 0x01, 0x05])
    for at in 41...42 { data[at] = 0 }
    var found = Self.values(record, data)
    #expect(found["module-temperature-14"] == .value(.int(30)))
    #expect(found["module-temperature-15"] == .absent(.notReported) && found["module-temperature-16"] == .absent(.notReported))
    // A real 0 °C is followed by others.
    data[39] = 0
    found = Self.values(record, data)
    #expect(found["module-temperature-13"] == .value(.int(0)))
    // Unsupported state of health is not 0.
    (data[25], data[26]) = (0, 0)
    #expect(Self.values(record, data)["state-of-health"] == .absent(.notReported))
    (data[25], data[26]) = (0x03, 0xE9)
    #expect(Self.values(record, data)["state-of-health"] == .absent(.implausible))
  }

  @Test func coolantIsReadFromRecord06() throws {
    let ev6 = [
      "7EC102662010617F811", "7EC2100170018000000", "7EC2200007854000000", "7EC230000000B00EA00", "7EC2400000000000000",
      "7EC2500000000AAAAAA",
    ]
    Self.expect(try Self.read(.eGMP, 0x7E4, [0x22, 0x01, 0x06], ev6), ["battery-coolant-temperature": 23])
  }

  @Test func cellsAreAListWithTheirExtremes() throws {
    let found = try Self.read(
      .eGMP, 0x7E4, [0x22, 0x01, 0x0C],
      [
        "7EC102762010CFFFFFF", "7EC21FFB5B5B5B5B5B5", "7EC22B5B4B4B4B5B5B5", "7EC23B5B5B5B4B4B5B5", "7EC24B5B5B5B5B5B5B4",
        "7EC25B4B5B5B5B5AAAA",
      ])
    guard case .value(.list(let cells))? = found["cells-161-192"] else {
      Issue.record("no cells")
      return
    }
    #expect(cells.count == 32 && cells[0] == "3.62" && cells[7] == "3.6" && cells[31] == "3.62")
    Self.expect(found, ["cells-161-192-min": 3.6, "cells-161-192-max": 3.62, "cells-161-192-deviation": 0.02])
    let older = try Self.record(.older, 0x7E4, [0x21, 0x02])
    let data: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0xBE, 0, 0xFF, 0xBF] + [UInt8](repeating: 0, count: 28)
    let few = Self.values(older, data)
    #expect(few["cells-1-32"] == .value(.list(["3.8", "?", "?", "3.82"])))
    Self.expect(few, ["cells-1-32-min": 3.8, "cells-1-32-max": 3.82])
    let empty: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF] + [UInt8](repeating: 0, count: 32)
    let none = Self.values(older, empty)
    #expect(none.values.allSatisfy { $0 == .absent(.notReported) })
    let broken = Self.values(older, [UInt8](repeating: 0xFF, count: 36))
    #expect(broken["cells-1-32-min"] == .absent(.implausible))
  }

  @Test func theVCUReportsPedalGearAndSpeed() throws {
    let forward = ["7EA10186101FFF80000", "7EA2109285A01101808", "7EA22AE479B05A26B34", "7EA2304080805000000"]
    Self.expect(try Self.read(.konaNiro, 0x7E2, [0x21, 0x01], forward), ["pedal-position": 35.5, "speed": 23.1], ["gear": "drive"])
    Self.expect(try Self.read(.older, 0x7E2, [0x21, 0x01], forward), ["speed": 23.1])
    let backward = ["7EA10186101FFF80000", "7EA21090259FF050903", "7EA22000024FFB47534", "7EA2304080805000000"]
    Self.expect(try Self.read(.konaNiro, 0x7E2, [0x21, 0x01], backward), ["pedal-position": 0, "speed": -3.5], ["gear": "reverse"])
    let ioniq5 = ["7EA102262E004FC0000", "7EA2100001AF60C799F", "7EA22E80DAC6F050000", "7EA2300000000000000", "7EA2400000000000000"]
    Self.expect(
      try Self.read(.eGMP, 0x7E2, [0x22, 0xE0, 0x04], ioniq5), ["pedal-position": 79.7, "speed": 55.63, "supply-voltage": 13.96])
    let rolling = ["7EA102262E004FC0000", "7EA21000006E1020000", "7EA2236FFFE6F070000", "7EA2300000000000000", "7EA2400000000000000"]
    Self.expect(try Self.read(.eGMP, 0x7E2, [0x22, 0xE0, 0x04], rolling), ["speed": -3.16, "supply-voltage": 14])
  }

  @Test func anotherLayoutOfTheVCUIsRejected() throws {
    // The Soul 27 kWh has its speed elsewhere, in a response of another length.
    let record = try Self.record(.older, 0x7E2, [0x21, 0x01])
    for count in [0, 11, 21, 23, 40] {
      let found = Self.values(record, [UInt8](repeating: 0x11, count: count))
      #expect(found.values.allSatisfy { $0 == .absent(.notReported) }, "\(count) bytes")
    }
  }

  @Test func theBrakeECUReportsGearAndWheels() throws {
    let found = try Self.read(
      .eGMP, 0x7D1, [0x22, 0x01, 0x04],
      [
        "7D9102E620104FFFEFF", "7D921FC046C040F02B9", "7D92203040204000600", "7D9230C7FFF00F0F3F0", "7D924FCD5FC000011D0",
        "7D92512DCF50003FFC3", "7D9260000FCFFF0AAAA",
      ])
    Self.expect(
      found,
      [
        "speed-brakes": 4, "wheel-speed-front-left": 3, "wheel-speed-front-right": 4, "wheel-speed-rear-left": 2,
        "wheel-speed-rear-right": 4,
      ], ["gear": "reverse"])
  }

  @Test func theChargerReportsThe12VoltBattery() throws {
    let charging = [
      "7ED103162E011FFFFFF", "7ED21F8010100000078", "7ED223A3A071B1B5539", "7ED238480194A225D00", "7ED246D08010101000A",
      "7ED2500000400070000", "7ED2600000000000000", "7ED2700AAAAAAAAAAAA",
    ]
    Self.expect(
      try Self.read(.eGMP, 0x7E5, [0x22, 0xE0, 0x11], charging),
      [
        "dc-dc-temperature": 20, "dc-dc-voltage": 14.91, "dc-dc-current": 18.19, "dc-dc-input-voltage": 699.7,
        "aux-battery-current": -0.93, "aux-battery-charge": 74, "aux-battery-temperature": 14.5,
      ])
    let giving = [
      "7ED103162E011FFFFFF", "7ED21F801000000005D", "7ED222E220000005F2C", "7ED23F07D4250175B00", "7ED243C10010101000A",
      "7ED2500000D0004C101", "7ED2600000000000000", "7ED2700AAAAAAAAAAAA",
    ]
    Self.expect(
      try Self.read(.eGMP, 0x7E5, [0x22, 0xE0, 0x11], giving),
      [
        "dc-dc-temperature": -7, "dc-dc-voltage": 11.81, "dc-dc-current": 0, "dc-dc-input-voltage": 9.5,
        "aux-battery-current": 6.34, "aux-battery-charge": 80, "aux-battery-temperature": -10,
      ])
    let record = try Self.record(.eGMP, 0x7E5, [0x22, 0xE0, 0x11])
    #expect(Self.values(record, [UInt8](repeating: 0, count: 46)).values.allSatisfy { $0 == .absent(.implausible) })
  }

  @Test func climateControlReportsTemperatures() throws {
    let ev6 = [
      "7BB10246201007FD407", "7BB21C8FF664A6602E3", "7BB22E402E4E4FF1CFF", "7BB2386FFFFFFFFFFFF", "7BB24FF35A0897141FF",
      "7BB25FF000000000000",
    ]
    let kona = [
      "7BB10266201007E5007", "7BB21C8FF73706C0CEE", "7BB2210FFFF10FF10FF", "7BB23FFFFFFFFFFFFFF", "7BB24FF26F1726E17FF",
      "7BB25FF00FFFF000000",
    ]
    Self.expect(
      try Self.read(.eGMP, 0x7B3, [0x22, 0x01, 0x00], ev6),
      ["indoor-temperature": 11, "outdoor-temperature": -3, "evaporator-temperature": 11, "speed-climate": 65])
    Self.expect(
      try Self.read(.konaNiro, 0x7B3, [0x22, 0x01, 0x00], kona),
      ["indoor-temperature": 17.5, "outdoor-temperature": 16, "evaporator-temperature": 14, "speed-climate": 23])
  }

  @Test func theOdometerCountsKilometresAlsoInCarsThatCountMiles() throws {
    let kilometres = ["7CE100F62B002E00000", "7CE2100FF97028C5200", "7CE220000AAAAAAAAAA"]
    let miles = ["7CE100F62B002D00000", "7CE2100FF9D00000000", "7CE22ABF0AAAAAAAAAA"]
    let none = ["7CE100F62B002E00000", "7CE2100FF9700000000", "7CE220000AAAAAAAAAA"]
    for family in VehicleFamily.allCases {
      Self.expect(try Self.read(family, 0x7C6, [0x22, 0xB0, 0x02], kilometres), ["odometer": 166_994])
      Self.expect(try Self.read(family, 0x7C6, [0x22, 0xB0, 0x02], miles), ["odometer": 70_837])
      let found = try Self.read(family, 0x7C6, [0x22, 0xB0, 0x02], none)
      #expect(found["odometer"] == .absent(.notAvailable))
    }
  }

  @Test func tyresHaveTheStrideOfTheirCar() throws {
    let ev6 = [
      "7A8102462C00BFFFFFF", "7A82180902D0004008F", "7A8222C0004008E2D00", "7A82304008E2D000400", "7A8242C8DB08DB08DB0",
      "7A8258DB0AAAAAAAAAA",
    ]
    Self.expect(
      try Self.read(.eGMP, 0x7A0, [0x22, 0xC0, 0x0B], ev6),
      [
        "tyre-pressure-front-left": 198.6, "tyre-pressure-front-right": 197.2, "tyre-pressure-rear-left": 195.8,
        "tyre-pressure-rear-right": 195.8, "tyre-temperature-front-left": -5, "tyre-temperature-front-right": -6,
        "tyre-temperature-rear-left": -5, "tyre-temperature-rear-right": -5,
      ])
    let kona = ["7A8101762C00BFFFF00", "7A82100BB420100BD41", "7A8220100B63E0100B8", "7A8233E0100AAAAAAAA"]
    Self.expect(
      try Self.read(.konaNiro, 0x7A0, [0x22, 0xC0, 0x0B], kona),
      [
        "tyre-pressure-front-left": 257.9, "tyre-pressure-front-right": 260.6, "tyre-pressure-rear-a": 251, "tyre-pressure-rear-b": 253.7,
        "tyre-temperature-front-left": 16, "tyre-temperature-front-right": 15, "tyre-temperature-rear-a": 12, "tyre-temperature-rear-b": 12,
      ])
    let asleep = [
      "7A8102462C00BFFFFFF", "7A82180902D0004008E", "7A8222C000400000000", "7A82300020000000002", "7A824FF8DB08DB0FFFF",
      "7A825FFFFAAAAAAAAAA",
    ]
    let found = try Self.read(.eGMP, 0x7A0, [0x22, 0xC0, 0x0B], asleep)
    Self.expect(found, ["tyre-pressure-front-left": 198.6])
    #expect(found["tyre-pressure-rear-left"] == .absent(.notAvailable) && found["tyre-temperature-rear-left"] == .absent(.notAvailable))
  }

  @Test func aFamilyIsDetectedByItsFirstRecord() {
    let family = { (request: FastRequest, reply: [UInt8], head: Int) -> VehicleFamily? in
      var reader = ReplyReader()
      guard reader.read(Array(reply.dropLast())) == .messages, let message = reader.messages.first else { return nil }
      return Array(reader.bytes(of: message).dropFirst(head)).withUnsafeBufferPointer { VehicleFamily(request, record: $0) }
    }
    #expect(
      family(.bmsUDS, Vector.ev6, 3) == .eGMP && family(.bmsUDS, Vector.kona, 3) == .konaNiro && family(.bmsKWP, Vector.soul, 2) == .older)
    #expect([UInt8]().withUnsafeBufferPointer { VehicleFamily(.bmsUDS, record: $0) } == nil)
  }

  @Test func everyFamilysNamesAreUniqueAndValuesMatchTheirDeclaration() {
    let first = Set(OBDMachine().schema.properties.map(\.name))
    for family in VehicleFamily.allCases {
      let rows = family.records.flatMap(\.rows)
      let names = rows.map(\.property.name)
      #expect(names.count == Set(names).count, "\(family): \(names.filter { name in names.count { $0 == name } > 1 })")
      #expect(first.isDisjoint(with: names), "\(family): \(first.intersection(names))")
      let requests = family.records.map { "\($0.header) \($0.request)" }
      #expect(Set(requests).count == requests.count)
    }
    var dice = OBDRobustnessTests.Dice(state: 5)
    for record in ManufacturerRecord.all {
      #expect(record.reply == record.header + 8 && record.period >= .second && !record.rows.isEmpty)
      #expect(record.responsePrefix.count == record.request.count && record.responsePrefix[0] == record.request[0] + 0x40)
      for _ in 0..<500 {
        let fill = [0, 0xFF, dice.byte()][dice.below(3)]
        let data = (0..<dice.below(64)).map { _ in dice.below(4) == 0 ? dice.byte() : fill }
        for row in record.rows {
          guard case .value(let value) = data.withUnsafeBufferPointer(row.read) else { continue }
          if (try? row.property.rule.accept(value)) != value { Issue.record("\(row.property.name) cannot be \(value.text)") }
        }
      }
    }
  }
}
