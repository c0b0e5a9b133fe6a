// The units of DBC files as symbols of SI and automotive units. Manufacturers write them in words, abbreviated, in German, or behind "Unit_".

import Protocols

enum DBCUnits {
  /// Symbols and their spellings in small letters, without blanks, "unit_", and the s of a plural. Single letters are not spellings:
  /// a capital letter is another unit.
  private static let symbols: [String: [String]] = [
    "rpm": ["1/min", "u/min", "umin", "upm", "rev/min", "min-1", "min^-1", "r/min", "minutinver"],
    "km/h": ["kmh", "kmph", "kph", "km/hr", "kilometerperhour", "kilometer/hour"],
    "m/s": ["m/sec", "meter/sec", "meterpersecon", "meterpersecond"],
    "m/s²": ["m/s^2", "m/s2", "m/s/s", "m/s**2", "m/sec^2", "meterpersquaresecond", "meterperseconsquar"],
    "km": ["kilometer"], "m": ["meter"], "cm": ["centimeter"], "mm": ["millimeter"],
    "°": ["degree", "deg", "degreofarc", "degreeofarc", "grad", "°grad"],
    "°/s": [
      "deg/s", "deg/sec", "degree/s", "degree/sec", "degree/second", "grad/s", "grad/sec", "degreofarcpersecon", "degreeofarcpersecond",
      "degreepersecond",
    ],
    "rad": ["radian"], "rad/s": ["rad/sec", "radian/s", "radian/sec", "radian/second"],
    "°C": ["celsius", "cel", "degreec", "degreesc", "degcel", "degrecelsi", "degreecelsius"],
    "%": ["percent", "pct"],
    "V": ["volt"], "mV": ["millivolt"], "A": ["ampere", "amp", "amper"], "mA": ["milliamper", "milliampere"],
    "Ah": ["amperehour", "ampere*hour", "amphour", "amperhour"],
    "W": ["watt"], "kW": ["kilowatt"], "Wh": ["watthour", "watt*hour"], "Ω": ["ohm"], "kΩ": ["kohm"],
    "s": ["sec", "second", "secon"], "ms": ["msec", "millisecond", "millisecon"], "min": ["minute", "minut"], "h": ["hour", "hr"],
    "bar": [], "mbar": ["millibar"], "kPa": ["kilopascal"], "hPa": [], "psi": [], "mph": [],
    "Nm": ["n·m", "n.m", "n-m", "n*m", "newtometer", "newtonmeter"], "L": ["liter", "litre"], "mL": ["milliliter"],
    "d": ["day"], "g": ["forceofgravi"], "cNm": ["centinewtometer"], "kN": ["kilonewto"], "kg": ["kilogram"], "Hz": ["hertz"],
    "lx": ["lux"],
  ]
  /// Words for numbers without a unit. "SED" is a state encoded as a number.
  private static let none: Set = [
    "-", "1", "0", "x", "?", "??", "bit", "none", "no", "unitless", "number", "enum", "sed", "se", "flag", "binary", "mixed", "yes/no",
    "on/off", "n/a", "tbd", "undefined", "ascii", "bcd", "encrypted", "deprecated",
  ]
  private static let spellings = Dictionary(
    uniqueKeysWithValues: symbols.flatMap { symbol, spellings in
      (spellings + [symbol.lowercased()]).filter { $0.count > 1 }.map { ($0, symbol) }
    })

  /// The symbol, or the text as it is if it is none of the known ones; nil: no unit.
  static func unit(_ text: String) -> String? {
    let words = text.split(whereSeparator: \.isWhitespace)
    var spelling = words.joined().lowercased()
    if spelling.hasPrefix("unit_") { spelling.removeFirst("unit_".count) }
    let singular = spelling.count > 3 && spelling.hasSuffix("s") ? String(spelling.dropLast()) : spelling
    if none.contains(spelling) || none.contains(singular) { return nil }
    // MV is not mV.
    if spelling.count == 2, words[0].hasPrefix("M") { return visible(words.joined(), limit: 2) }
    let unit =
      spellings[spelling] ?? spellings[singular] ?? TorqueTable.unit(visible(words.joined(separator: " "), limit: 16))
    return unit?.isEmpty == false ? unit : nil
  }
}
