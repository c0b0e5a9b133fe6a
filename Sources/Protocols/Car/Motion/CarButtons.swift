// The two halves of the app's screen. As built they switch the lights, in modes that have lights; as documented they can do
// anything, so they require the motion lease and are released when it ends.
// Source: autott.md §4 and §8: in the modes that are steered by the buttons, every button raises an exception in the car.

struct CarButtons: Sendable {
  /// Whether the car accepts buttons; nil: not reported.
  var isEnabled: Bool?
  private var down: Set<CarSide> = []

  /// The buttons that the car considers pressed, left first.
  var pressed: [CarSide] { CarSide.allCases.filter(down.contains) }

  mutating func note(_ side: CarSide, isDown: Bool) { if isDown { down.insert(side) } else { down.remove(side) } }
}

extension CarSide {
  var signal: CarSignal { self == .left ? .leftButton : .rightButton }
}

extension CarMachine {
  mutating func press(_ side: CarSide, _ isDown: Bool, for id: CommandID, _ effects: inout Effects) {
    if let message = reasonNotToPress {
      return effects.append(.complete(id, .failure(.refused(code: "no-buttons", message))))
    }
    _ = add(CarQueuedCommand(.button(side, isDown), [.button(side, isDown: isDown)], for: id), &effects)
  }

  private var reasonNotToPress: String? {
    if options.dialect == .documented {
      if !driving.isHeld { return "motion lease required: run \"vehiclectl drive\"" }
      return buttons.isEnabled == false ? "the car does not accept buttons now" : nil
    }
    // The mode that the car is in when the button is sent.
    var mode = modes.current
    for queued in queue.commands { if case .mode(let next) = queued.purpose { mode = next } }
    if stopIsBroken(in: mode) { return "the buttons do not work in this mode because of a bug in the car's program: choose another mode" }
    guard CarModes.hasLights(in: mode) else { return "this mode has no buttons: choose a mode with lights" }
    return buttons.isEnabled == true || mode != modes.current ? nil : "the car does not accept buttons now"
  }

  mutating func pressed(_ side: CarSide, _ isDown: Bool, _ effects: inout Effects) {
    buttons.note(side, isDown: isDown)
    publish(side.signal, .bool(isDown), &effects)
  }

  /// The buttons that are pressed after all queued messages.
  var sidesToRelease: [CarSide] {
    let waiting = queue.commands.map(\.purpose)
    return CarSide.allCases.filter { buttons.pressed.contains($0) || waiting.contains(.button($0, true)) }
  }

  /// The lease has ended: queued presses are dropped.
  mutating func releaseButtons(_ error: CommandError, _ effects: inout Effects) {
    let sides = sidesToRelease
    for queued in queue.remove(where: { if case .button = $0.purpose { true } else { false } }) {
      if let id = queued.id { effects.append(.complete(id, .failure(error))) }
    }
    for side in sides { queue.addAlways(CarQueuedCommand(.button(side, false), [.button(side, isDown: false)])) }
  }
}
