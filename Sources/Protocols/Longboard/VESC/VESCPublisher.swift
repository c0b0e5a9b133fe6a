// Publishes properties. The reason for an absent value is published once, not with every response, and values outside their range are
// not published. Passed to the components as an output, like `Effects`.

struct VESCPublisher: Sendable {
  private let properties: [Property]
  /// The published reason for each absent property.
  private var reasons: [String?]
  /// Whether each property is absent because the configuration lacks a key.
  private var isUnconfigured: [Bool]

  init(_ schema: Schema) {
    properties = schema.properties
    reasons = [String?](repeating: nil, count: properties.count)
    isUnconfigured = [Bool](repeating: false, count: properties.count)
  }

  func name(of property: VESCProperty) -> String { properties[property.rawValue].name }

  /// Publishes a value; nil means that this firmware does not report it.
  mutating func publish(_ property: VESCProperty, _ value: Value?, _ effects: inout Effects) {
    guard let value else { return withdraw(property, "not reported by this firmware", &effects) }
    if let range = properties[property.rawValue].range, let number = value.number, !range.contains(number) {
      return withdraw(property, "implausible value from the VESC", &effects)
    }
    reasons[property.rawValue] = nil
    isUnconfigured[property.rawValue] = false
    effects.publish(property.rawValue, value)
  }

  mutating func withdraw(_ property: VESCProperty, _ reason: String, _ effects: inout Effects) {
    let position = property.rawValue
    guard reasons.indices.contains(position), reasons[position] != reason else { return }
    reasons[position] = reason
    isUnconfigured[position] = false
    effects.withdraw(position, reason)
  }

  /// Withdraws a value that requires these configuration keys. The reason is formatted only once, not for every response.
  mutating func withdraw(_ property: VESCProperty, unconfigured keys: @autoclosure () -> String, _ effects: inout Effects) {
    guard !isUnconfigured[property.rawValue] else { return }
    withdraw(property, "not reported by the VESC: set \(keys()) in the configuration", &effects)
    isUnconfigured[property.rawValue] = true
  }

  mutating func vescBeganToRespond(_ effects: inout Effects) { publish(.connected, .bool(true), &effects) }

  mutating func vescStoppedResponding(_ reason: String, _ effects: inout Effects) {
    for property in VESCProperty.reported + VESCProperty.measured { withdraw(property, reason, &effects) }
    publish(.connected, .bool(false), &effects)
  }

  /// Discards the published reasons, so that they are published again.
  mutating func forgetReasons() {
    for index in reasons.indices { (reasons[index], isUnconfigured[index]) = (nil, false) }
  }
}
