// Maps the unit names of other programs to the symbols of SI and automotive units.

import Protocols

extension SignalField {
  /// The units by OBDb's names. Names without a unit (scalar, normal, hex, unknown, booleans) have no entry.
  static let units: [String: String] = [
    "ampereHours": "Ah", "milliampereHours": "mAh", "kiloampereHours": "kAh", "amps": "A", "milliamps": "mA", "kiloamps": "kA",
    "coulombs": "C", "volts": "V", "millivolts": "mV", "kilovolts": "kV", "ohms": "Ω", "milliohms": "mΩ", "microohms": "µΩ",
    "kiloohms": "kΩ", "megaohms": "MΩ", "watts": "W", "milliwatts": "mW", "kilowatts": "kW", "kilowattHours": "kWh", "joules": "J",
    "kilojoules": "kJ", "kilowattHoursPer100Kilometers": "kWh/100km", "kilowattHoursPer100Miles": "kWh/100mi",
    "milesPerKilowattHour": "mi/kWh", "celsius": "°C", "fahrenheit": "°F", "kelvin": "K", "percent": "%", "degrees": "°",
    "radians": "rad", "meters": "m", "centimeters": "cm", "millimeters": "mm", "kilometers": "km", "miles": "mi", "feet": "ft",
    "inches": "in", "yards": "yd", "kilometersPerHour": "km/h", "milesPerHour": "mph", "metersPerSecond": "m/s",
    "metersPerSecondSquared": "m/s²", "gravity": "g", "rpm": "rpm", "seconds": "s", "milliseconds": "ms", "minutes": "min",
    "hours": "h", "hertz": "Hz", "kilohertz": "kHz", "megahertz": "MHz", "kilopascal": "kPa", "bars": "bar", "psi": "psi",
    "liters": "L", "litersPerHour": "L/h", "gallons": "gal", "gallonsPerHour": "gal/h", "gramsPerLiter": "g/L",
    "gramsPerSecond": "g/s", "kilogramsPerHour": "kg/h", "milligramsPerDeciliter": "mg/dL", "milligramsPerStroke": "mg/stroke",
    "newtonMeters": "Nm", "poundFoot": "lb·ft", "inchPound": "in·lb", "framesPerSecond": "fps",
  ]
}

extension TorqueTable {
  /// The units by Torque's spellings in lower case.
  private static let spellings: [String: String] = [
    "c": "°C", "°c": "°C", "degc": "°C", "deg c": "°C", "f": "°F", "°f": "°F", "degf": "°F", "kph": "km/h", "kmh": "km/h",
    "km/h": "km/h", "kpa": "kPa", "l/hr": "L/h", "l/h": "L/h", "l": "L", "nm": "Nm", "kwh": "kWh", "kw": "kW", "volts": "V",
    "volt": "V", "v": "V", "amps": "A", "a": "A", "mv": "mV", "rpm": "rpm", "hz": "Hz", "sec": "s", "kwh/100km": "kWh/100km",
  ]

  static func unit(_ text: String) -> String? {
    let trimmed = visible(text, limit: 16)
    return trimmed.isEmpty ? nil : spellings[trimmed.lowercased()] ?? trimmed
  }
}
