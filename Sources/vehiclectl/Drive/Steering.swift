// Turns keys into a tilt. No I/O: time is an argument. A terminal reports presses and repeats but no releases. A key therefore counts as
// held for `pressHold` after a press and for `repeatHold` after a repeat. Then the tilt returns to level.
// Source: the car's Steering.py (task123/AutoTT): full speed is 45° of roll or 80° of pitch, positive pitch turns right.

/// The deflection of a stick, or of keys that act like one. Each component is from -1 to 1.
struct Deflection: Equatable {
  /// Positive is forward.
  var forward = 0.0
  /// Positive is right.
  var turn = 0.0

  /// The angles in rad. `limit` is the fraction of the maximum tilt, 0 to 1.
  func tilt(limit: Double) -> (roll: Double, pitch: Double) {
    // Adding 0 turns -0 into 0: the car's atan2 would take -0 for the opposite direction.
    (forward * limit * .pi / 4 + 0, turn * limit * 80 * .pi / 180 + 0)
  }
}

struct Steering {
  /// Seconds for which a key counts as held after a press; keyboards start to repeat after about half a second.
  static let pressHold = 0.6
  /// Seconds for which a key counts as held after a repeat.
  static let repeatHold = 0.2
  /// Seconds of the return from full tilt to level.
  static let ramp = 0.2

  enum Direction { case forward, backward, left, right }

  /// A pair of opposite keys.
  private struct Axis {
    var direction = 0.0
    var until = -Double.infinity

    func isHeld(_ now: Double) -> Bool { direction != 0 && now < until }

    func value(_ now: Double) -> Double {
      now < until ? direction : direction * max(0, 1 - (now - until) / Steering.ramp)
    }

    mutating func press(_ direction: Double, _ now: Double) {
      let repeats = direction == self.direction && now <= until + Steering.ramp
      until = repeats ? max(until, now + Steering.repeatHold) : now + Steering.pressHold
      self.direction = direction
    }
  }

  private var forward = Axis()
  private var turn = Axis()

  /// Handles a key that is pressed or repeats. Extends the hold of a key on the other axis, because a keyboard repeats only the last key.
  mutating func press(_ direction: Direction, at now: Double) {
    switch direction {
    case .forward, .backward:
      forward.press(direction == .forward ? 1 : -1, now)
      if turn.isHeld(now) { turn.until = max(turn.until, forward.until) }
    case .left, .right:
      turn.press(direction == .right ? 1 : -1, now)
      if forward.isHeld(now) { forward.until = max(forward.until, turn.until) }
    }
  }

  /// Returns to level at once.
  mutating func release() { self = Steering() }

  /// The deflection that the keys stand for at this time.
  func deflection(at now: Double) -> Deflection { Deflection(forward: forward.value(now), turn: turn.value(now)) }
}
