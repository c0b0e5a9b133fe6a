// Plausibility check of a response to 220101 or 2101 from 7E4 as BMS data of an electric Hyundai or Kia. ECUs of other makers at that
// address return other data, which would give values such as 198 million kWh.

extension BMSRecord {
  /// The length up to the inverter voltage.
  private static let minCount = 53
  /// Captured records satisfy all checks; a battery that has just woken up, or a special field, may fail one.
  private static let minAgreement = 4

  /// Whether related fields agree: pack and cell voltages, temperatures, inverter voltage with closed contactors, and both pairs of
  /// lifetime counters.
  static func isPlausible(_ data: UnsafeBufferPointer<UInt8>) -> Bool {
    guard data.count >= minCount else { return false }
    let voltage = Double(NumberLayout.u16.raw(data, 12)) / 10
    let (highest, lowest) = (Double(data[23]) / 50, Double(data[25]) / 50)
    let (warmest, coldest) = (NumberLayout.s8.raw(data, 14), NumberLayout.s8.raw(data, 15))
    let checks = [
      (40...1000).contains(voltage),
      lowest >= 1 && lowest <= highest && highest <= 4.5 && (10...260).contains(voltage / lowest),
      coldest >= -40 && coldest <= warmest && warmest <= 85 && warmest - coldest <= 40,
      Double(NumberLayout.u16.raw(data, 51)) <= voltage + 20,
      isMean(voltage, data, charge: 30, energy: 38) && isMean(voltage, data, charge: 34, energy: 42),
    ]
    return checks.count { $0 } >= minAgreement
  }

  /// Whether lifetime energy divided by lifetime charge (0.1 kWh per 0.1 Ah), the average pack voltage in kV, is near the current voltage.
  private static func isMean(_ voltage: Double, _ data: UnsafeBufferPointer<UInt8>, charge: Int, energy: Int) -> Bool {
    let (charge, energy) = (NumberLayout.u32.raw(data, charge), NumberLayout.u32.raw(data, energy))
    return charge > 0 && (voltage * 0.6...voltage * 1.4).contains(Double(energy) * 1000 / Double(charge))
  }
}

extension FastRequest {
  /// Whether the BMS data record is requested.
  var isBMSRecord: Bool { parameters.isEmpty && !isDiscovery }
}
