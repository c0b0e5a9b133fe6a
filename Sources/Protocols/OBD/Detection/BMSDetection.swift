// Plausibility check of a response to 220101 or 2101 from 7E4 as BMS data of an electric Hyundai or Kia. ECUs of other makers at that
// address return other data, which would give values such as 198 million kWh.

extension BMSRecord {
  /// The number of bytes up to the inverter voltage, the last field that is checked.
  private static let checkedLength = 53
  /// Captured records pass all five checks; one may fail for a battery that has just woken up, or for a field with another meaning.
  private static let minPassedChecks = 4

  /// Whether related fields agree: pack and cell voltages, temperatures, inverter voltage with closed contactors, and both pairs of
  /// lifetime counters.
  static func isPlausible(_ data: UnsafeBufferPointer<UInt8>) -> Bool {
    guard data.count >= checkedLength else { return false }
    let voltage = Double(NumberLayout.u16.raw(data, 12)) / 10
    let (highest, lowest) = (Double(data[23]) / 50, Double(data[25]) / 50)
    let (warmest, coldest) = (NumberLayout.s8.raw(data, 14), NumberLayout.s8.raw(data, 15))
    let checks = [
      (40...1000).contains(voltage),
      lowest >= 1 && lowest <= highest && highest <= 4.5 && (10...260).contains(voltage / lowest),
      coldest >= -40 && coldest <= warmest && warmest <= 85 && warmest - coldest <= 40,
      Double(NumberLayout.u16.raw(data, 51)) <= voltage + 20,
      isNearMean(voltage, data, chargeOffset: 30, energyOffset: 38) && isNearMean(voltage, data, chargeOffset: 34, energyOffset: 42),
    ]
    return checks.count { $0 } >= minPassedChecks
  }

  /// Whether the voltage is near the mean pack voltage: lifetime energy (0.1 kWh) divided by lifetime charge (0.1 Ah), in kV.
  private static func isNearMean(_ voltage: Double, _ data: UnsafeBufferPointer<UInt8>, chargeOffset: Int, energyOffset: Int) -> Bool {
    let (charge, energy) = (NumberLayout.u32.raw(data, chargeOffset), NumberLayout.u32.raw(data, energyOffset))
    return charge > 0 && (voltage * 0.6...voltage * 1.4).contains(Double(energy) * 1000 / Double(charge))
  }
}

extension FastRequest {
  /// Whether the BMS data record is requested.
  var isBMSRecord: Bool { parameters.isEmpty && !isDiscovery }
}
