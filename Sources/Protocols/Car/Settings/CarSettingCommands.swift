// The settings of a car that the daemon stores; they can be changed without a link.

extension CarMachine {
  /// Changes a setting; false if the property is not one.
  mutating func setKept(_ signal: CarSignal, _ value: Value, for id: CommandID, _ effects: inout Effects) -> Bool {
    func refuse(_ message: String) { effects.append(.complete(id, .failure(.invalid(argument: "value", message)))) }
    switch signal {
    case .sensitivity, .neutralRoll, .neutralPitch, .neutralYaw:
      if refusesToJump(id, &effects) { return true }
      guard let number = value.number, number.isFinite, schema.properties[signal.rawValue].range?.contains(number) != false else {
        refuse("\(value.text) is out of range")
        return true
      }
      keep(signal == .sensitivity ? .sensitivity(number) : .neutral(neutral(signal, number)), for: id, &effects)
    case .videoQuality:
      if case .string(let name) = value, let quality = CarVideoQuality(rawValue: name) {
        keep(.quality(quality), for: id, &effects)
      } else {
        refuse("\(value.text) is not low, medium or high")
      }
    case .webPage:
      guard case .string(let page) = value else {
        refuse("not a string")
        return true
      }
      if !page.isEmpty, let message = CarSettings.refusal(page: page) {
        refuse(message)
      } else {
        keep(.page(page.isEmpty ? nil : page), for: id, &effects)
      }
    default: return false
    }
    return true
  }

  /// While the car is driven, a new neutral position would act as a set-point.
  private func refusesToJump(_ id: CommandID, _ effects: inout Effects) -> Bool {
    if driving.isRunning {
      effects.append(.complete(id, .failure(.refused(code: "driving", "the car is being driven: stop it first"))))
    }
    return driving.isRunning
  }

  private func neutral(_ signal: CarSignal, _ angle: Double) -> CarAttitude {
    var neutral = settings.nextNeutral
    switch signal {
    case .neutralRoll: neutral.roll = angle
    case .neutralPitch: neutral.pitch = angle
    default: neutral.yaw = angle
    }
    return neutral.rounded
  }

  /// Sets the neutral position to the driver's current one, or to level.
  mutating func takeNeutral(_ position: Value?, for id: CommandID, _ effects: inout Effects) {
    switch position {
    case .string("horizontal") where refusesToJump(id, &effects): break
    case .string("horizontal"): keep(.neutral(.level), for: id, &effects)
    case .string("here"):
      guard let attitude = driving.attitude else {
        let message = "no current position: run \"vehiclectl drive\" and hold the controls in the neutral position"
        return effects.append(.complete(id, .failure(.refused(code: "no-tilt", message))))
      }
      keep(.neutral(attitude.rounded), for: id, &effects)
    default:
      effects.append(
        .complete(id, .failure(.invalid(argument: "position", "must be here or horizontal, not \(position?.text ?? "empty")"))))
    }
  }
}
