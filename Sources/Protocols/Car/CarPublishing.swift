// Publishes single properties of a car. A value outside its range is not published.

extension Effects {
  mutating func publish(_ property: CarProperty, _ value: Value) {
    if let range = CarProperty.ranges[property.rawValue], let number = value.number, !range.contains(number) {
      return withdraw(property, "implausible value \(value.text) from the car")
    }
    publish(property.rawValue, value)
  }

  mutating func withdraw(_ property: CarProperty, _ reason: String) { withdraw(property.rawValue, reason) }
}
