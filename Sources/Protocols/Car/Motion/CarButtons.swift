// The two halves of the app's screen. As built they switch the lights, in modes that have lights; as documented they can do
// anything, so they require the motion lease and are released when it ends.
// Source: autott.md §4 and §8: in the modes that are steered by the buttons, every button raises an exception in the car.

struct CarButtons: Sendable {
  private let dialect: CarDialect
  /// Whether the car accepts buttons; nil: not reported.
  private var isEnabled: Bool?
  private var down: Set<CarSide> = []

  init(_ dialect: CarDialect) { self.dialect = dialect }

  /// The buttons that the car considers pressed, left first.
  var pressed: [CarSide] { CarSide.allCases.filter(down.contains) }

  /// Why a button cannot be pressed; nil: it can. `next` is the mode that the car is in when the button is sent.
  func refusal(mode: Int?, next: Int?, isDriven: Bool) -> String? {
    if dialect == .documented {
      if !isDriven { return CarMotion.leaseRequired }
      return isEnabled == false ? "the car does not accept buttons now" : nil
    }
    if CarModes.stopIsBroken(in: next, dialect) {
      return "the buttons do not work in this mode because of a bug in the car's program: choose another mode"
    }
    guard CarModes.hasLights(in: next) else { return "this mode has no buttons: choose a mode with lights" }
    return isEnabled == true || next != mode ? nil : "the car does not accept buttons now"
  }

  // MARK: Events

  /// The state is unknown.
  func withdraw(_ reason: String, _ effects: inout Effects) {
    for signal in [CarSignal.leftButton, .rightButton, .buttonsEnabled] { effects.withdraw(signal, reason) }
  }

  /// The car has sent its first message over this link: it has just started its program.
  func begin(_ effects: inout Effects) {
    for side in CarSide.allCases { effects.publish(side.signal, .bool(false)) }
    if dialect == .asBuilt {
      effects.publish(.buttonsEnabled, .bool(false))
    } else {
      effects.withdraw(.buttonsEnabled, "not reported")
    }
  }

  /// The car has reported whether it accepts buttons.
  mutating func enable(_ isEnabled: Bool) { self.isEnabled = isEnabled }

  func publishEnabled(_ effects: inout Effects) {
    if let isEnabled { effects.publish(.buttonsEnabled, .bool(isEnabled)) }
  }

  /// The link has accepted a press or a release.
  mutating func sent(_ side: CarSide, isDown: Bool, _ effects: inout Effects) {
    if isDown { down.insert(side) } else { down.remove(side) }
    effects.publish(side.signal, .bool(isDown))
  }

  /// The mode has changed, and pressed buttons belong to the old one.
  mutating func modeChanged(_ effects: inout Effects) {
    for side in pressed { sent(side, isDown: false, &effects) }
  }
}

extension CarSide {
  var signal: CarSignal { self == .left ? .leftButton : .rightButton }
}
