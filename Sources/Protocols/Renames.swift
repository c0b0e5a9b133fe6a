// Old names of device kinds, properties, configuration keys and their values, with the current names. The use of an old name is an error,
// whose message contains the current name.

/// Looks up old names.
public enum Renames {
  /// Old names of kinds.
  static let kinds = ["car": "rc-car", "running": "foot-pod"]
  /// Old names of properties.
  static let properties = [
    "converter-temperature": "dc-dc-temperature", "converter-voltage": "dc-dc-voltage", "converter-current": "dc-dc-current",
    "converter-input-voltage": "dc-dc-input-voltage", "emission-requirements": "obd-standard",
    "emission-standard": "emission-class",
  ]
  /// Old names of configuration keys.
  static let options = [
    "ask": "poll", "pages": "poll", "probe-pause": "probe-interval", "heart-rate-fresh": "heart-rate-max-age",
    "estimate-distance": "step-length", "motion-current": "max-motor-current", "motion-duty": "max-duty-cycle",
    "charge-standing-time": "charge-stationary-time", "command": "run-program",
  ]
  /// Old names of values, by configuration key.
  static let values = ["vehicle": ["ice": "generic"]]

  /// The current name of a kind, or nil if this is not an old name.
  public static func kind(_ old: String) -> String? { kinds[old] }

  /// The current name of a property, or nil if this is not an old name.
  public static func property(_ old: String) -> String? { properties[old] }

  /// The current name of a configuration key, or nil if this is not an old name.
  public static func option(_ old: String) -> String? { options[old] }

  /// The current name of a value of a configuration key, or nil if this is not an old name.
  public static func value(_ old: String, of option: String) -> String? { values[option]?[old] }
}
