// One property at a time: what is outside of its range is never a value.

extension CarMachine {
  mutating func publish(_ signal: CarSignal, _ value: Value, _ effects: inout Effects) {
    if let range = schema.properties[signal.rawValue].range, let number = value.number, !range.contains(number) {
      return withdraw(signal, "the car says \(value.text), which cannot be", &effects)
    }
    effects.publish(signal.rawValue, value)
  }

  mutating func withdraw(_ signal: CarSignal, _ reason: String, _ effects: inout Effects) {
    effects.withdraw(signal.rawValue, reason)
  }

  /// The mode that the car is in, as far as somebody has told it one.
  mutating func sayMode(_ effects: inout Effects) {
    guard hasSpoken else { return }
    guard let current = modes.current else {
      for signal in [CarSignal.mode, .modeNumber] {
        withdraw(signal, "the car was not told a mode yet: vehiclectl set mode NAME", &effects)
      }
      return
    }
    publish(.mode, .string(modes.name(of: current)), &effects)
    publish(.modeNumber, .int(current), &effects)
  }

  mutating func sayTiltRate(_ effects: inout Effects) {
    if driving.isMuted {
      withdraw(.tiltRate, "the car wants no tilt now (GyroStop)", &effects)
    } else if driving.interval != nil {
      publish(.tiltRate, .float(driving.pace.rate), &effects)
    } else {
      withdraw(.tiltRate, "the car has not asked for tilt yet", &effects)
    }
  }
}
