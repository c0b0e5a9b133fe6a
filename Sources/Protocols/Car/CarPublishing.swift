// Publishes single properties. A value outside of its range is not published.

extension CarMachine {
  mutating func publish(_ signal: CarSignal, _ value: Value, _ effects: inout Effects) {
    if let range = schema.properties[signal.rawValue].range, let number = value.number, !range.contains(number) {
      return withdraw(signal, "implausible value \(value.text) from the car", &effects)
    }
    effects.publish(signal.rawValue, value)
  }

  mutating func withdraw(_ signal: CarSignal, _ reason: String, _ effects: inout Effects) {
    effects.withdraw(signal.rawValue, reason)
  }

  /// Publishes the current mode, if it is known.
  mutating func publishMode(_ effects: inout Effects) {
    guard hasResponded else { return }
    guard let current = modes.current else {
      for signal in [CarSignal.mode, .modeNumber] {
        withdraw(signal, "no mode was set yet: vehiclectl set mode NAME", &effects)
      }
      return
    }
    publish(.mode, .string(modes.name(of: current)), &effects)
    publish(.modeNumber, .int(current), &effects)
  }

  mutating func publishTiltRate(_ effects: inout Effects) {
    if driving.isMuted {
      withdraw(.tiltRate, "the car does not accept tilt (GyroStop)", &effects)
    } else if driving.interval != nil {
      publish(.tiltRate, .float(driving.pace.rate), &effects)
    } else {
      withdraw(.tiltRate, "the car has not requested tilt yet", &effects)
    }
  }
}
