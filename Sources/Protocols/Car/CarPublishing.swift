// Publishes single properties of a car. A value outside of its range is not published.

extension Effects {
  mutating func publish(_ signal: CarSignal, _ value: Value) {
    if let range = CarSignal.ranges[signal.rawValue], let number = value.number, !range.contains(number) {
      return withdraw(signal, "implausible value \(value.text) from the car")
    }
    publish(signal.rawValue, value)
  }

  mutating func withdraw(_ signal: CarSignal, _ reason: String) { withdraw(signal.rawValue, reason) }
}
