// Checks whether the response of the ECU at 7E4 to 220101 or 2101 is plausible as BMS data of an electric Hyundai or Kia. At that address,
// ECUs of other makers return other data, which would decode to values such as 198 million kWh.

extension BMSRecord {
  /// The minimum length in bytes: up to and including the inverter voltage, the last field that is checked.
  private static let checkedLength = 53
  /// Captured records pass all five checks. One check may fail, because the BMS has just woken up or a field has another meaning.
  private static let minPassedChecks = 4

  /// Whether related fields agree: pack and cell voltages, temperatures, inverter voltage with closed contactors, and both pairs of
  /// lifetime counters.
  static func isPlausible(_ data: UnsafeBufferPointer<UInt8>) -> Bool {
    guard data.count >= checkedLength else { return false }
    let voltage = Double(NumberLayout.u16.raw(data, 12)) / 10
    let (maxCellVoltage, minCellVoltage) = (Double(data[23]) / 50, Double(data[25]) / 50)
    let (maxTemperature, minTemperature) = (NumberLayout.s8.raw(data, 14), NumberLayout.s8.raw(data, 15))
    let checks = [
      (40...1000).contains(voltage),
      minCellVoltage >= 1 && minCellVoltage <= maxCellVoltage && maxCellVoltage <= 4.5 && (10...260).contains(voltage / minCellVoltage),
      minTemperature >= -40 && minTemperature <= maxTemperature && maxTemperature <= 85 && maxTemperature - minTemperature <= 40,
      Double(NumberLayout.u16.raw(data, 51)) <= voltage + 20,
      isNearMean(voltage, data, chargeOffset: 30, energyOffset: 38) && isNearMean(voltage, data, chargeOffset: 34, energyOffset: 42),
    ]
    return checks.count { $0 } >= minPassedChecks
  }

  /// Whether the mean pack voltage over the lifetime is within 40 % of the present voltage. The mean in kV is lifetime energy (in units of
  /// 0.1 kWh) divided by lifetime charge (in units of 0.1 Ah).
  private static func isNearMean(_ voltage: Double, _ data: UnsafeBufferPointer<UInt8>, chargeOffset: Int, energyOffset: Int) -> Bool {
    let (charge, energy) = (NumberLayout.u32.raw(data, chargeOffset), NumberLayout.u32.raw(data, energyOffset))
    return charge > 0 && (voltage * 0.6...voltage * 1.4).contains(Double(energy) * 1000 / Double(charge))
  }
}
