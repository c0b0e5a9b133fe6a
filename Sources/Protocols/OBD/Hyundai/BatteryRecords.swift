// BMS data records 0x05 and 0x06: displayed state of charge, health, available power, further modules. Facts: captures of Kona and EV6;
// published tables of those cars agree.

extension ManufacturerRecord {
  static let battery: [ManufacturerRecord] = [
    ManufacturerRecord(0x7E4, 0x7EC, [0x22, 0x01, 0x05], every: 10, [.eGMP], detail + modules(6...16) + [remainingEnergy]),
    ManufacturerRecord(0x7E4, 0x7EC, [0x22, 0x01, 0x05], every: 10, [.konaNiro], detail + deterioration),
    ManufacturerRecord(0x7E4, 0x7EC, [0x21, 0x05], every: 10, [.older], detail + modules(6...12) + deterioration),
    ManufacturerRecord(
      0x7E4, 0x7EC, [0x22, 0x01, 0x06], every: 10, [.eGMP, .konaNiro],
      [whole("battery-coolant-temperature", .s8(4), "°C", -50...100, "Coolant temperature at the battery inlet")]),
  ]

  private static let detail: [DataRow] = [
    scaled("state-of-charge-display", .u8(31), "%", 0...100, over: 2, decimals: 1, "State of charge as shown on the dashboard"),
    // Some cars report 0.
    scaled(
      "state-of-health", .u16(25), "%", 0.1...100, over: 10, decimals: 1, lifetime: .retained, absent: (0, .notReported),
      "State of health: remaining capacity of the traction battery"),
    scaled("available-charge-power", .u16(16), "kW", 0...660, over: 100, decimals: 2, "Available charging power"),
    scaled("available-discharge-power", .u16(18), "kW", 0...660, over: 100, decimals: 2, "Available discharging power"),
    scaled("cell-voltage-deviation", .u8(20), "V", 0...5, over: 50, decimals: 2, "Difference between highest and lowest cell voltage"),
    whole("airbag-duty", .u8(22), "%", 0...100, "Duty cycle of the signal from the airbag ECU to the battery"),
    // On some cars the byte of the second heater holds another value.
    whole("battery-heater-temperature", .s8(23), "°C", -50...100, "Temperature of the battery heater"),
    whole("cell-deterioration-max-cell", .u8(27), nil, 1...255, absent: (0, .notReported), "Number of the most deteriorated cell"),
  ]

  private static let deterioration: [DataRow] = [
    scaled("cell-deterioration-min", .u16(28), "%", 0...100, over: 10, decimals: 1, "Deterioration of the least deteriorated cell"),
    whole("cell-deterioration-min-cell", .u8(30), nil, 1...255, absent: (0, .notReported), "Number of the least deteriorated cell"),
  ]

  /// On E-GMP these bytes count in units of 2 Wh.
  private static let remainingEnergy = scaled(
    "remaining-energy", .u16(28), "kWh", 0.002...131.07, over: 500, decimals: 3, absent: (0, .notReported),
    "Remaining energy of the traction battery")

  /// The offset of a module's temperature: modules 6 to 12, then 13 to 16.
  private static func place(of module: Int) -> Int { module <= 12 ? module + 3 : module + 26 }

  /// Temperatures of further modules. A short pack is padded with zeros: trailing zeros are not 0 °C.
  private static func modules(_ modules: ClosedRange<Int>) -> [DataRow] {
    modules.map { module in
      let row = whole("module-temperature-\(module)", .s8(place(of: module)), "°C", -50...100, "Temperature of battery module \(module)")
      return DataRow(row.property) { data in
        let isPadding = (module...modules.upperBound).allSatisfy { place(of: $0) >= data.count || data[place(of: $0)] == 0 }
        return isPadding ? .absent(.notReported) : row.read(data)
      }
    }
  }
}
