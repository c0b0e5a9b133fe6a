// The settings that the daemon keeps for a car, set whether or not the car is there.

extension CarMachine {
  /// Takes a setting that is kept; false where the property is none.
  mutating func setKept(_ signal: CarSignal, _ value: Value, for id: CommandID, _ effects: inout Effects) -> Bool {
    func refuse(_ words: String) { effects.append(.complete(id, .failure(.invalid(argument: "value", words)))) }
    switch signal {
    case .sensitivity, .neutralRoll, .neutralPitch, .neutralYaw:
      if refusesToJump(id, &effects) { return true }
      guard let number = value.number, number.isFinite, schema.properties[signal.rawValue].range?.contains(number) != false else {
        refuse("\(value.text) is outside of what it can be")
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
        refuse("a page is a text")
        return true
      }
      if !page.isEmpty, let words = CarKeeping.refusal(page: page) {
        refuse(words)
      } else {
        keep(.page(page.isEmpty ? nil : page), for: id, &effects)
      }
    default: return false
    }
    return true
  }

  /// While the car runs it would take another neutral position for a set-point.
  private func refusesToJump(_ id: CommandID, _ effects: inout Effects) -> Bool {
    if driving.isRunning {
      effects.append(.complete(id, .failure(.refused(code: "driving", "somebody drives, and the car would jump: stop it first"))))
    }
    return driving.isRunning
  }

  private func neutral(_ signal: CarSignal, _ angle: Double) -> CarAttitude {
    var neutral = keeping.nextNeutral
    switch signal {
    case .neutralRoll: neutral.roll = angle
    case .neutralPitch: neutral.pitch = angle
    default: neutral.yaw = angle
    }
    return neutral.rounded
  }

  /// How the driver holds it now, or level, is how the car stands from now on.
  mutating func takeNeutral(_ position: Value?, for id: CommandID, _ effects: inout Effects) {
    switch position {
    case .string("horizontal") where refusesToJump(id, &effects): break
    case .string("horizontal"): keep(.neutral(.level), for: id, &effects)
    case .string("here"):
      guard let attitude = driving.attitude else {
        let words = "nobody tilts now: take the lease with vehiclectl drive and hold it as you like"
        return effects.append(.complete(id, .failure(.refused(code: "no-tilt", words))))
      }
      keep(.neutral(attitude.rounded), for: id, &effects)
    default:
      effects.append(
        .complete(id, .failure(.invalid(argument: "position", "\(position?.text ?? "nothing") is neither here nor horizontal"))))
    }
  }
}
