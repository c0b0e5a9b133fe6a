// PIDs of bits and enumerations: readiness, fuel system, oxygen sensors present, standards (SAE J1979, PIDs 01, 02, 03, 12, 13, 1C, 1D, 1E,
// 41, 51 and 5F).

extension StandardParameter {
  static let status: [StandardParameter] = [
    StandardParameter(0x01, 4, rows: Readiness.sinceClear),
    StandardParameter(0x02, 2, freezeFrameCode),
    StandardParameter(
      0x03, 2, .word("fuel-system-1", .u8(0), fuelSystem, help: "Control state of the first fuel system"), secondFuelSystem),
    StandardParameter(0x12, 1, .word("secondary-air", .u8(0), secondaryAir, help: "Secondary air status")),
    StandardParameter(0x13, 1, sensors("o2-sensors", banks: [1, 1, 1, 1, 2, 2, 2, 2], "Oxygen sensors present, in two banks")),
    StandardParameter(
      0x1C, 1, .word("obd-standard", .u8(0), obdStandard, lifetime: .retained, help: "OBD standard that the vehicle conforms to")),
    StandardParameter(
      0x1D, 1, sensors("o2-sensors-in-four-banks", banks: [1, 1, 2, 2, 3, 3, 4, 4], "Oxygen sensors present, in four banks")),
    StandardParameter(0x1E, 1, .bit(Property("power-take-off", .bool, help: "The power take-off is active"), 0, 0)),
    StandardParameter(0x41, 4, rows: Readiness.thisDrive),
    StandardParameter(0x51, 1, .word("fuel-type", .u8(0), fuelType, lifetime: .retained, help: "Fuel type")),
    StandardParameter(
      0x5F, 1,
      .word(
        "emission-class", .u8(0), emissionClass, lifetime: .retained, help: "Emission requirements that the vehicle is designed to")),
  ]

  /// 0000 means that there is no freeze frame.
  private static let freezeFrameCode = DataRow(Property("freeze-frame-code", .string, help: "Trouble code that stored the freeze frame")) {
    data in
    guard data.count >= 2 else { return .absent(.notReported) }
    let code = TroubleCode(data[0], data[1])
    return code.isFiller ? .absent(.notAvailable) : .value(.string(code.text))
  }

  private static let fuelSystem = [
    0: "off", 1: "open-loop-warming", 2: "closed-loop", 4: "open-loop-load", 8: "open-loop-fault", 16: "closed-loop-fault",
  ]

  /// 0 also means that there is no second system.
  private static let secondFuelSystem: DataRow = {
    let row = DataRow.word("fuel-system-2", .u8(1), fuelSystem, help: "Control state of the second fuel system")
    return DataRow(row.property) { data in data.count >= 2 && data[1] == 0 ? .absent(.notReported) : row.read(data) }
  }()

  private static let secondaryAir = [1: "before-catalyst", 2: "behind-catalyst", 4: "off", 8: "test"]

  private static func sensors(_ name: String, banks: [Int], _ help: String) -> DataRow {
    let names = banks.enumerated().map { bit, bank in "bank \(bank) sensor \(1 + banks[..<bit].count { $0 == bank })" }
    return DataRow(Property(name, .list, help: help)) { data in
      guard let bits = data.first else { return .absent(.notReported) }
      return .value(.list(names.enumerated().filter { bits >> $0.offset & 1 == 1 }.map(\.element)))
    }
  }

  private static let obdStandard = [
    1: "OBD-II (CARB)", 2: "OBD (EPA)", 3: "OBD and OBD-II", 4: "OBD-I", 5: "none", 6: "EOBD", 7: "EOBD and OBD-II", 8: "EOBD and OBD",
    9: "EOBD, OBD and OBD-II", 10: "JOBD", 11: "JOBD and OBD-II", 12: "JOBD and EOBD", 13: "JOBD, EOBD and OBD-II", 17: "EMD", 18: "EMD+",
    19: "HD OBD-C", 20: "HD OBD", 21: "WWH OBD", 23: "HD EOBD-I", 24: "HD EOBD-I N", 25: "HD EOBD-II", 26: "HD EOBD-II N", 28: "OBDBr-1",
    29: "OBDBr-2", 30: "KOBD", 31: "IOBD-I", 32: "IOBD-II", 33: "HD EOBD-VI",
  ]

  private static let emissionClass = [14: "Euro IV B1", 15: "Euro V B2", 16: "EEV C"]

  private static let fuelType = [
    1: "petrol", 2: "methanol", 3: "ethanol", 4: "diesel", 5: "lpg", 6: "cng", 7: "propane", 8: "electric", 9: "bifuel-petrol",
    10: "bifuel-methanol", 11: "bifuel-ethanol", 12: "bifuel-lpg", 13: "bifuel-cng", 14: "bifuel-propane", 15: "bifuel-electric",
    16: "bifuel-electric-engine", 17: "hybrid-petrol", 18: "hybrid-ethanol", 19: "hybrid-diesel", 20: "hybrid-electric",
    21: "hybrid-electric-engine", 22: "hybrid-regenerating", 23: "bifuel-diesel",
  ]
}
