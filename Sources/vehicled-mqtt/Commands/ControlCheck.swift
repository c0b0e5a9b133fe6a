// Finds the entries of `control` that select nothing that clients of the broker may use, such as misspelt names. No I/O.

import Observations
import Protocols
import Varlink

struct ControlCheck {
  private let entries: [ReferencePattern]
  private var reported: Set<String> = []

  /// Checks these entries of `control`.
  init(_ entries: [ReferencePattern]) { self.entries = entries }

  /// Returns a message for each entry that selects nothing in the schemas of all devices, unless the last call returned it as well.
  mutating func newProblems(in schemas: [Contract.Schema]) -> [String] {
    let problems = entries.compactMap { entry in
      Self.problem(with: entry, schemas).map { "control: \"\(entry.text)\" selects nothing: \($0)" }
    }
    defer { reported = Set(problems) }
    return problems.filter { !reported.contains($0) }
  }

  private static func problem(with entry: ReferencePattern, _ schemas: [Contract.Schema]) -> String? {
    let parts = entry.text.split(separator: ".", maxSplits: 1).map(String.init)
    let devices = schemas.filter { entry.matches(device: $0.device) }
    guard !devices.isEmpty else {
      let remedy = "correct it in mqtt.toml, or grant vehicled-mqtt the right to observe the device"
      return "there is no device \(parts[0]); " + (suggestion(for: parts[0], schemas.map(\.device)) ?? remedy)
    }
    // The properties of a car are known once it has been detected.
    if devices.contains(where: { $0.provisional == true }) { return nil }
    let reasons = devices.flatMap { schema in
      schema.properties.filter { entry.matches(schema.device, $0.name) }.map { reason(against: $0, of: schema.device) }
        + schema.actions.filter { entry.matches(schema.device, $0.name) }.map { reason(against: $0, of: schema.device) }
    }
    if reasons.contains(nil) { return nil }
    if parts.count == 2, reasons.count == 1, let reason = reasons[0] { return "\(reason); remove it from mqtt.toml" }
    let owner = devices.count == 1 ? devices[0].device : nil
    let lack = "\(owner.map { "\($0) has no" } ?? "no device has a") property or action"
    if parts.count == 1 || !reasons.isEmpty { return "\(lack) that is available by MQTT; remove it from mqtt.toml" }
    let names = devices.flatMap { $0.properties.map(\.name) + $0.actions.map(\.name) }
    let list = "list them: vehiclectl describe" + (owner.map { " \($0)" } ?? "")
    return "\(lack) \(parts[1]); \(suggestion(for: parts[1], names) ?? list)"
  }

  private static func suggestion(for name: String, _ known: [String]) -> String? {
    nearest(to: name, among: known).map { "did you mean \($0)?" }
  }

  /// Why clients of the broker can never set a property; nil if they can.
  private static func reason(against property: Contract.Property, of device: String) -> String? {
    if property.motion { return "\(device).\(property.name) moves the vehicle, which is not possible by MQTT" }
    return property.writable ? nil : "\(device).\(property.name) is read-only"
  }

  /// Why clients of the broker can never run an action; nil if they can.
  private static func reason(against action: Contract.Action, of device: String) -> String? {
    if action.motion { return "\(device).\(action.name) moves the vehicle, which is not possible by MQTT" }
    return CommandReader.forbidden.contains(action.name) ? "\(device).\(action.name) is not available by MQTT" : nil
  }
}
