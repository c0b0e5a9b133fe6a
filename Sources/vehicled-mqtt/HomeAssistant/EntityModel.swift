// How Home Assistant shows a property or an action: platform, classes, unit, precision, category. No I/O.
// Source: home-assistant.io, pages of the MQTT platforms; home-assistant/core, components/sensor/const.py (classes and their units),
// components/number/const.py and components/binary_sensor/__init__.py. `make test-home-assistant` compares every row with a running one.

import Varlink

/// An entity of Home Assistant.
struct Entity: Equatable {
  enum Platform: String {
    case sensor, number, select, switchable = "switch", button
    case binarySensor = "binary_sensor"
  }

  var platform: Platform
  /// The class, which determines icon, name and conversion of units; nil if there is none.
  var deviceClass: String?
  /// measurement, or total_increasing for a counter.
  var stateClass: String?
  /// The unit as Home Assistant writes it.
  var unit: String?
  var precision: Int?
  /// Whether it is shown as a diagnostic value, or a setting.
  var category: String?
  /// Whether it is enabled without the user's doing.
  var isEnabled = true
  var options: [String] = []
  var range: ClosedRange<Double>?
  var step: Double?
}

enum EntityModel {
  /// The most significant ranks, which are enabled by default.
  private static let enabledRanks = 1...2
  private static let diagnosticGroups: Set = ["adapter", "statistics", "diagnostics", "identity", "emissions"]

  /// The entity of a property. `isWritable` is whether clients of the broker may set it. Properties that move the vehicle are never writable.
  static func entity(for property: Contract.Property, isWritable: Bool) -> Entity {
    var entity = isWritable && property.writable && !property.motion ? control(property) : display(property)
    let group = property.group ?? ""
    if entity.platform == .sensor || entity.platform == .binarySensor {
      if diagnosticGroups.contains(group) { entity.category = "diagnostic" }
    } else if group == "settings" {
      entity.category = "config"
    }
    entity.isEnabled = enabledRanks.contains(property.rank ?? 2) && !["emissions", "statistics", "cells"].contains(group)
    return entity
  }

  private static func control(_ property: Contract.Property) -> Entity {
    switch property.type {
    case "bool": return Entity(platform: .switchable)
    case "int", "float":
      guard let minimum = property.minimum, let maximum = property.maximum else { return display(property) }
      var entity = Entity(platform: .number, range: minimum...maximum)
      (entity.deviceClass, entity.unit) = quantity(property)
      entity.step = property.type == "int" ? 1 : 0.1
      return entity
    default:
      guard let choices = property.choices else { return display(property) }
      return Entity(platform: .select, options: choices)
    }
  }

  private static func display(_ property: Contract.Property) -> Entity {
    switch property.type {
    case "bool": return Entity(platform: .binarySensor, deviceClass: binaryClass(property.name))
    case "int", "float":
      var entity = Entity(platform: .sensor)
      (entity.deviceClass, entity.unit) = quantity(property)
      // Home Assistant rejects a class of measurements for angles other than of the wind, and counts these as measurements without a class.
      entity.stateClass = isCounter(property.name, entity.deviceClass) ? "total_increasing" : "measurement"
      entity.precision = Resolution.decimals(of: property.unit)
      return entity
    default:
      guard let choices = property.choices else { return Entity(platform: .sensor) }
      return Entity(platform: .sensor, deviceClass: "enum", options: choices)
    }
  }

  /// The class and the unit of numbers; no class where Home Assistant has none for this quantity.
  private static func quantity(_ property: Contract.Property) -> (deviceClass: String?, unit: String?) {
    let name = property.name
    guard let unit = property.unit else { return (nil, nil) }
    switch unit {
    case "%": return (isCharge(name) ? "battery" : name.contains("humidity") ? "humidity" : nil, unit)
    case "°C": return ("temperature", unit)
    case "V": return ("voltage", unit)
    case "A", "mA": return ("current", unit)
    case "kW", "W": return ("power", unit)
    case "kWh", "Wh":
      let isContent = name.contains("remaining") || name.contains("capacity") || name.hasSuffix("-left")
      return (isContent ? "energy_storage" : "energy", unit)
    case "km", "m", "mm": return (name.contains("rain") ? "precipitation" : "distance", unit)
    case "km/h": return (name.contains("wind") ? "wind_speed" : "speed", unit)
    case "kPa", "Pa", "hPa": return (name.contains("barometric") ? "atmospheric_pressure" : "pressure", unit)
    case "s", "min", "h", "ms": return ("duration", unit)
    case "Hz": return ("frequency", unit)
    case "L/h": return ("volume_flow_rate", unit)
    case "bytes": return ("data_size", "B")
    case "kWh/100km", "kWh/100 km": return ("energy_distance", "kWh/100km")
    default: return (nil, unit)
    }
  }

  private static func isCharge(_ name: String) -> Bool { name.hasPrefix("state-of-charge") || name == "battery" || name == "battery-level" }

  /// Whether a value only grows, apart from a reset.
  private static func isCounter(_ name: String, _ deviceClass: String?) -> Bool {
    if deviceClass == "energy" { return true }
    let counters: Set = [
      "odometer", "total-distance", "timeouts", "bad-frames", "messages", "operating-time", "engine-time", "engine-idle-time", "distance",
      "steps", "charge-in", "charge-out", "polls", "missed",
    ]
    return counters.contains(name) || name.hasSuffix("-count")
  }

  private static func binaryClass(_ name: String) -> String? {
    switch name {
    case "charging": "battery_charging"
    case "ac-plug", "dc-plug": "plug"
    case "ignition": "running"
    case "main-relay": "power"
    case "mil", "milstatus": "problem"
    default: nil
    }
  }
}
