// Formats values of vehicles (`vehicle_…`) and statistics of the daemon (`vehicled_…`) as OpenMetrics text. Contains only current values,
// under names that do not depend on the device. Timestamps are optional, because node_exporter's textfile collector rejects them. No I/O.
// Source: OpenMetrics specification 1.0.

import Protocols
import Varlink

public enum OpenMetrics {
  /// The unit names in the specification, and spelt-out names for other units.
  private static let unitNames: [String: String] = [
    "s": "seconds", "ms": "milliseconds", "min": "minutes", "h": "hours", "V": "volts", "mV": "millivolts", "A": "amperes",
    "mA": "milliamperes", "W": "watts", "kW": "kilowatts", "Wh": "watt_hours", "kWh": "kilowatt_hours", "Ah": "ampere_hours",
    "%": "percent", "°C": "celsius", "°": "degrees", "°/s": "degrees_per_second", "m": "meters", "mm": "millimeters", "km": "kilometers",
    "m/s": "meters_per_second", "km/h": "kilometers_per_hour", "Pa": "pascals", "kPa": "kilopascals", "bar": "bars", "hPa": "hectopascals",
    "Hz": "hertz", "kHz": "kilohertz", "rpm": "rpm", "bpm": "beats_per_minute", "steps/min": "steps_per_minute", "g/s": "grams_per_second",
    "kg/h": "kilograms_per_hour", "L/h": "liters_per_hour", "L": "liters", "Nm": "newton_meters", "kcal": "kilocalories",
    "mg/stroke": "milligrams_per_stroke", "dBm": "dbm", "dB": "decibels", "Ω": "ohms", "kΩ": "kiloohms", "g": "g", "ppm": "ppm",
  ]

  /// A metric family: all samples of one name, which OpenMetrics requires to be contiguous.
  private struct Family {
    let name: String
    let kind: String
    let help: String
    let unit: String?
    var samples: [(labels: [(String, String)], value: String, time: Int?)] = []
  }

  /// Returns the devices without the positions of those that are not in `named`.
  public static func published(_ devices: [Contract.Device], with named: [String]) -> [Contract.Device] {
    devices.map { device in
      guard !named.contains(device.name) else { return device }
      var device = device
      device.readings.removeAll { PositionPrivacy.isPosition($0.property, kind: device.kind) }
      return device
    }
  }

  /// All numbers and booleans of the devices, their states, links and faults, and the daemon's statistics. With `withTimes`, a value that
  /// expires has the time when it was measured. Any other value is valid until it changes, however long ago it was measured, and
  /// Prometheus would reject such an old time.
  public static func text(
    _ devices: [Contract.Device], _ schemas: [Contract.Schema], _ statistics: [Contract.Statistic], withTimes: Bool = false
  ) -> [String] {
    var families: [Family] = []
    var positions: [String: Int] = [:]
    func add(_ family: @autoclosure () -> Family, _ name: String, _ labels: [(String, String)], _ value: String, at time: Int? = nil) {
      let position = positions[name] ?? families.count
      if position == families.count {
        families.append(family())
        positions[name] = position
      }
      families[position].samples.append((labels, value, time))
    }
    for device in devices {
      let schema = schemas.first { $0.device == device.name }
      var usedNames: Set<String> = []
      for reading in device.readings {
        guard let value = reading.value, let number = number(value) else { continue }
        let unit = reading.unit.map(unitName).flatMap { $0.isEmpty ? nil : $0 }
        // Two properties can map to one name, such as temp in °C and temp-celsius. The first one gets the name; others get a number.
        let preferred = propertyName(reading.property, unit)
        let suffix = unit.map { "_\($0)" } ?? ""
        var (name, next) = (preferred, 2)
        while !usedNames.insert(name).inserted { (name, next) = ("vehicle_\(letters(reading.property))_\(next)\(suffix)", next + 1) }
        let property = schema?.properties.first { $0.name == reading.property }
        let time = withTimes && property?.lifetime != nil ? reading.time : nil
        let family = Family(name: name, kind: "gauge", help: property?.help ?? "", unit: unit)
        add(family, name, [("device", device.name)], number, at: time)
      }
    }
    for device in devices {
      let labels = [("device", device.name), ("kind", device.kind), ("state", device.state)]
      let (state, fault) = ("vehicled_device_state", "vehicled_device_fault")
      add(Family(name: state, kind: "gauge", help: "1 for the current state of the device.", unit: nil), state, labels, "1")
      let faultValue = device.fault == nil ? "0" : "1"
      add(Family(name: fault, kind: "gauge", help: "1 if the device has a fault.", unit: nil), fault, [labels[0]], faultValue)
      for link in device.links {
        let (up, upValue) = ("vehicled_link_up", link.state == "up" ? "1" : "0")
        add(Family(name: up, kind: "gauge", help: "1 if the link is up.", unit: nil), up, [labels[0], ("link", link.name)], upValue)
      }
    }
    for statistic in statistics {
      let labels = (statistic.labels ?? [:]).sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
      let family = Family(name: statistic.name, kind: statistic.kind, help: statistic.help, unit: statistic.unit)
      add(family, statistic.name, labels, number(.float(statistic.value)) ?? "NaN")
    }
    return families.sorted { $0.name < $1.name }.flatMap(lines) + ["# EOF"]
  }

  private static func lines(_ family: Family) -> [String] {
    var lines = ["# TYPE \(family.name) \(family.kind)"]
    if let unit = family.unit { lines.append("# UNIT \(family.name) \(unit)") }
    if !family.help.isEmpty { lines.append("# HELP \(family.name) \(escaped(family.help))") }
    let name = family.kind == "counter" ? family.name + "_total" : family.name
    return lines
      + family.samples.map { labels, value, time in
        let text = labels.map { "\($0.0)=\"\(escaped($0.1))\"" }.joined(separator: ",")
        return (text.isEmpty ? "\(name) \(value)" : "\(name){\(text)} \(value)") + (time.map { " \(seconds($0))" } ?? "")
      }
  }

  /// A time in µs as seconds, to the millisecond.
  private static func seconds(_ time: Int) -> String {
    let milliseconds = "\(1000 + time / 1000 % 1000)".dropFirst()
    return "\(time / 1_000_000).\(milliseconds)"
  }

  /// The text of a sample: a number, or 0 or 1 for a boolean; nil for strings and lists.
  private static func number(_ value: Value) -> String? {
    switch value {
    case .bool(let isOn): isOn ? "1" : "0"
    case .int(let number): String(number)
    case .float(let number): number == number.rounded() && abs(number) < 1e15 ? String(Int64(number)) : String(number)
    case .string, .list: nil
    }
  }

  /// The metric name of a property, such as `vehicle_state_of_charge_percent`. The unit is not appended if the name ends with it.
  static func propertyName(_ property: String, _ unit: String?) -> String {
    let name = "vehicle_" + letters(property)
    guard let unit, !name.hasSuffix("_\(unit)") else { return name }
    return "\(name)_\(unit)"
  }

  static func unitName(_ unit: String) -> String { unitNames[unit] ?? letters(unit.replacing("/", with: "_per_")) }

  /// Replaces characters that a metric name cannot contain with underscores.
  private static func letters(_ text: String) -> String {
    String(
      text.unicodeScalars.map { ("a"..."z").contains($0) || ("A"..."Z").contains($0) || ("0"..."9").contains($0) ? Character($0) : "_" })
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n").replacing("\"", with: "\\\"")
  }
}
