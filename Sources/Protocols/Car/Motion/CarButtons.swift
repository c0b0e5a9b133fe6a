// The two buttons: the halves of the app's screen. On an as-built car they switch lights, in modes that have lights. In the documented
// dialect they may steer, so they require the motion lease, and are released when it ends.
// Source: AutoTT, Steering.py and Modes.py: in the button-steered modes every button raises an exception.

struct CarButtons: Sendable {
  private let dialect: CarDialect
  /// Whether the car accepts buttons; nil if the car has not reported it.
  private var isEnabled: Bool?
  private var down: Set<CarSide> = []

  init(_ dialect: CarDialect) { self.dialect = dialect }

  /// The buttons that the car considers pressed, left first.
  var pressed: [CarSide] { CarSide.allCases.filter(down.contains) }

  /// Why a button cannot be pressed, or nil if it can. `mode`: the current mode; `next`: the mode when the button message is sent.
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

  /// Withdraws the state of the buttons, because it is unknown.
  func withdraw(_ reason: String, _ effects: inout Effects) {
    for property in [CarProperty.leftButton, .rightButton, .buttonsEnabled] { effects.withdraw(property, reason) }
  }

  /// Publishes the initial state after the car's first message over this link.
  func publishInitialState(_ effects: inout Effects) {
    for side in CarSide.allCases { effects.publish(side.property, .bool(false)) }
    if dialect == .asBuilt {
      effects.publish(.buttonsEnabled, .bool(false))
    } else {
      effects.withdraw(.buttonsEnabled, "not reported")
    }
  }

  /// Stores whether the car accepts buttons, as it has reported.
  mutating func setEnabled(_ isEnabled: Bool) { self.isEnabled = isEnabled }

  func publishEnabled(_ effects: inout Effects) {
    if let isEnabled { effects.publish(.buttonsEnabled, .bool(isEnabled)) }
  }

  /// Stores a press or release that the link has accepted.
  mutating func sent(_ side: CarSide, isDown: Bool, _ effects: inout Effects) {
    if isDown { down.insert(side) } else { down.remove(side) }
    effects.publish(side.property, .bool(isDown))
  }

  /// Marks the pressed buttons as released, because the mode has changed.
  mutating func modeChanged(_ effects: inout Effects) {
    for side in pressed { sent(side, isDown: false, &effects) }
  }
}

extension CarSide {
  var property: CarProperty { self == .left ? .leftButton : .rightButton }
}
