// The two halves of the app's screen. As built they are for the lights, in the modes that have any; as documented they may
// be anything, so they are a driver's, and let go when the driver is.
// Facts: autott.md §4 and §8: in the modes that are steered by them every button ends in an exception in the car.

struct CarButtons: Sendable {
  /// What the car said last; nil: nothing.
  var isEnabled: Bool?
  private var down: Set<CarSide> = []

  /// Those that the car believes to be pressed, left first.
  var pressed: [CarSide] { CarSide.allCases.filter(down.contains) }

  mutating func note(_ side: CarSide, isDown: Bool) { if isDown { down.insert(side) } else { down.remove(side) } }
}

extension CarSide {
  var signal: CarSignal { self == .left ? .leftButton : .rightButton }
}

extension CarMachine {
  mutating func press(_ side: CarSide, _ isDown: Bool, for id: CommandID, _ effects: inout Effects) {
    if let words = reasonNotToPress {
      return effects.append(.complete(id, .failure(.refused(code: "no-buttons", words))))
    }
    _ = add(CarErrand(.button(side, isDown), [.button(side, isDown: isDown)], for: id), &effects)
  }

  private var reasonNotToPress: String? {
    if options.dialect == .documented {
      if !driving.isHeld { return "nobody drives: take the lease with vehiclectl drive" }
      return buttons.isEnabled == false ? "the car wants no buttons now" : nil
    }
    // The mode that the car will be in when their turn comes.
    var mode = modes.current
    for errand in outbox.errands { if case .mode(let next) = errand.purpose { mode = next } }
    if stopIsBroken(in: mode) { return "in this mode the buttons are broken in the car's own program: choose another mode" }
    guard CarModes.hasLights(in: mode) else { return "this mode has no buttons: choose one with lights" }
    return buttons.isEnabled == true || mode != modes.current ? nil : "the car wants no buttons now"
  }

  mutating func pressed(_ side: CarSide, _ isDown: Bool, _ effects: inout Effects) {
    buttons.note(side, isDown: isDown)
    publish(side.signal, .bool(isDown), &effects)
  }

  /// Those that are pressed, or will be when all is said.
  var sidesToRelease: [CarSide] {
    let waiting = outbox.errands.map(\.purpose)
    return CarSide.allCases.filter { buttons.pressed.contains($0) || waiting.contains(.button($0, true)) }
  }

  /// Nobody holds them any more: those that wait to be pressed are not.
  mutating func letButtonsGo(_ error: CommandError, _ effects: inout Effects) {
    let sides = sidesToRelease
    for errand in outbox.remove(where: { if case .button = $0.purpose { true } else { false } }) {
      if let id = errand.id { effects.append(.complete(id, .failure(error))) }
    }
    for side in sides { outbox.insist(CarErrand(.button(side, false), [.button(side, isDown: false)])) }
  }
}
