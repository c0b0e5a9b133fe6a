// What is known, as OpenMetrics text: `vehicle_…` for what vehicles report, `vehicled_…` for the daemon itself. Only values that are
// fresh are there, each under a name that never changes with the device; no times, which node_exporter's textfile collector refuses.
// Pure. Facts: the OpenMetrics specification 1.0.

import Protocols

enum OpenMetrics {
  /// The specification's words for units; others are spelt out.
  private static let words: [String: String] = [
    "s": "seconds", "ms": "milliseconds", "min": "minutes", "h": "hours", "V": "volts", "mV": "millivolts", "A": "amperes",
    "mA": "milliamperes", "W": "watts", "kW": "kilowatts", "Wh": "watt_hours", "kWh": "kilowatt_hours", "Ah": "ampere_hours",
    "%": "percent", "°C": "celsius", "°": "degrees", "°/s": "degrees_per_second", "m": "meters", "mm": "millimeters", "km": "kilometers",
    "m/s": "meters_per_second", "km/h": "kilometers_per_hour", "Pa": "pascals", "kPa": "kilopascals", "bar": "bars", "hPa": "hectopascals",
    "Hz": "hertz", "kHz": "kilohertz", "rpm": "rpm", "bpm": "beats_per_minute", "steps/min": "steps_per_minute", "g/s": "grams_per_second",
    "kg/h": "kilograms_per_hour", "L/h": "liters_per_hour", "L": "liters", "Nm": "newton_meters", "kcal": "kilocalories",
    "mg/stroke": "milligrams_per_stroke", "dBm": "dbm", "dB": "decibels", "Ω": "ohms", "kΩ": "kiloohms", "g": "g", "ppm": "ppm",
  ]

  /// Metrics of one name: its samples must stand together.
  private struct Family {
    let name: String
    let kind: String
    let help: String
    let unit: String?
    var samples: [(labels: [(String, String)], value: String)] = []
  }

  /// All numbers and switches of these devices, whether each is reached and well, and the daemon's own figures.
  static func text(_ devices: [Contract.Device], _ schemas: [Contract.Schema], _ statistics: [Contract.Statistic]) -> [String] {
    var families: [Family] = []
    var places: [String: Int] = [:]
    func add(_ family: @autoclosure () -> Family, _ name: String, _ labels: [(String, String)], _ value: String) {
      let place = places[name] ?? families.count
      if place == families.count {
        families.append(family())
        places[name] = place
      }
      families[place].samples.append((labels, value))
    }
    for device in devices {
      let schema = schemas.first { $0.device == device.name }
      var taken: Set<String> = []
      for reading in device.readings {
        guard let value = reading.value, let number = number(value) else { continue }
        let unit = reading.unit.map(unitName).flatMap { $0.isEmpty ? nil : $0 }
        // temp in °C and temp-celsius would be one: of two properties of a device the first has the name.
        let usual = propertyName(reading.property, unit)
        guard
          let name = ([usual] + (2...9).map { "vehicle_\(letters(reading.property))_\($0)" + (unit.map { "_\($0)" } ?? "") })
            .first(where: { taken.insert($0).inserted })
        else { continue }
        let help = schema?.properties.first { $0.name == reading.property }?.help ?? ""
        add(Family(name: name, kind: "gauge", help: help, unit: unit), name, [("device", device.name)], number)
      }
    }
    for device in devices {
      let labels = [("device", device.name), ("kind", device.kind), ("state", device.state)]
      let (state, fault) = ("vehicled_device_state", "vehicled_device_fault")
      add(Family(name: state, kind: "gauge", help: "1 for the state that the device is in.", unit: nil), state, labels, "1")
      let isBad = device.fault == nil ? "0" : "1"
      add(Family(name: fault, kind: "gauge", help: "Whether something is wrong with the device.", unit: nil), fault, [labels[0]], isBad)
      for link in device.links {
        let (up, isUp) = ("vehicled_link_up", link.state == "up" ? "1" : "0")
        add(Family(name: up, kind: "gauge", help: "Whether the link is up.", unit: nil), up, [labels[0], ("link", link.name)], isUp)
      }
    }
    for figure in statistics {
      let labels = (figure.labels ?? [:]).sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
      let family = Family(name: figure.name, kind: figure.kind, help: figure.help, unit: figure.unit)
      add(family, figure.name, labels, number(.float(figure.value)) ?? "NaN")
    }
    return families.sorted { $0.name < $1.name }.flatMap(lines) + ["# EOF"]
  }

  private static func lines(_ family: Family) -> [String] {
    var lines = ["# TYPE \(family.name) \(family.kind)"]
    if let unit = family.unit { lines.append("# UNIT \(family.name) \(unit)") }
    if !family.help.isEmpty { lines.append("# HELP \(family.name) \(escaped(family.help))") }
    let name = family.kind == "counter" ? family.name + "_total" : family.name
    return lines
      + family.samples.map { labels, value in
        let text = labels.map { "\($0.0)=\"\(escaped($0.1))\"" }.joined(separator: ",")
        return text.isEmpty ? "\(name) \(value)" : "\(name){\(text)} \(value)"
      }
  }

  /// Numbers as they are, switches as 0 or 1; nothing for words and lists.
  private static func number(_ value: Value) -> String? {
    switch value {
    case .bool(let isOn): isOn ? "1" : "0"
    case .int(let number): String(number)
    case .float(let number): number == number.rounded() && abs(number) < 1e15 ? String(Int64(number)) : String(number)
    case .string, .list: nil
    }
  }

  /// `vehicle_state_of_charge_percent`; a unit that a name ends with is not said twice.
  static func propertyName(_ property: String, _ unit: String?) -> String {
    let name = "vehicle_" + letters(property)
    guard let unit, !name.hasSuffix("_\(unit)") else { return name }
    return "\(name)_\(unit)"
  }

  static func unitName(_ unit: String) -> String { words[unit] ?? letters(unit.replacing("/", with: "_per_")) }

  /// What a name may hold: letters, digits and underscores.
  private static func letters(_ text: String) -> String {
    String(
      text.unicodeScalars.map { ("a"..."z").contains($0) || ("A"..."Z").contains($0) || ("0"..."9").contains($0) ? Character($0) : "_" })
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n").replacing("\"", with: "\\\"")
  }
}
