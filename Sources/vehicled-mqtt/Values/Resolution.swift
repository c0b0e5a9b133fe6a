// How finely a value is published and shown: the number of decimals by unit. A change of less than one unit in the last place is not
// published. The values of the vehicles are not more exact than this, and a plot at home needs no more.

enum Resolution {
  private static let decimals: [String: Int] = [
    "V": 2, "A": 1, "kW": 2, "kWh": 1, "Ah": 1, "%": 1, "°C": 1, "km/h": 1, "km": 1, "m": 1, "kPa": 1, "g/s": 2, "Nm": 1, "rpm": 0, "s": 0,
    "min": 0, "Hz": 1, "ms": 0, "bpm": 0, "°": 5, "L/h": 2, "Pa": 0, "mA": 2, "kg/h": 1,
    "W": 0, "Wh": 1, "mm": 1, "hPa": 1, "rad": 2, "kWh/100 km": 1, "kcal": 0, "steps/min": 0, "bytes": 0,
  ]

  /// The number of decimals of values with this unit; nil if every change counts.
  static func decimals(of unit: String?) -> Int? { unit.flatMap { decimals[$0] } }

  /// The smallest change that is published; 0 if every change counts.
  static func deadBand(of unit: String?) -> Double {
    guard let decimals = decimals(of: unit) else { return 0 }
    return (0..<decimals).reduce(1.0) { step, _ in step / 10 }
  }
}
