// Turns keys into a tilt. Pure: time is an argument. A terminal reports presses and repeats but no releases: a press holds for a moment, a
// repeat for a shorter one, then the tilt returns to level.
// Source: autott.md section 5: full speed is 45° of roll or 80° of pitch, positive pitch turns right.

/// The requested direction, each component from -1 to 1.
struct Heading: Equatable {
  /// Positive is forward.
  var forward = 0.0
  /// Positive is right.
  var turn = 0.0

  /// The angles in rad. `limit`: part of the maximum tilt, 0 to 1.
  func tilt(limit: Double) -> (roll: Double, pitch: Double) {
    // Adding 0 turns -0, which this car misreads, into 0.
    (forward * limit * .pi / 4 + 0, turn * limit * 80 * .pi / 180 + 0)
  }
}

struct Steering {
  /// Seconds that a press holds; keyboards start to repeat after about half a second.
  static let pressHold = 0.6
  /// Seconds that a repeat holds.
  static let repeatHold = 0.2
  /// Seconds of the return to level.
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

  private var along = Axis()
  private var across = Axis()

  /// A key was pressed or repeats. Extends a held key of the other axis, because a keyboard repeats only the last key.
  mutating func press(_ direction: Direction, at now: Double) {
    switch direction {
    case .forward, .backward:
      along.press(direction == .forward ? 1 : -1, now)
      if across.isHeld(now) { across.until = max(across.until, along.until) }
    case .left, .right:
      across.press(direction == .right ? 1 : -1, now)
      if along.isHeld(now) { along.until = max(along.until, across.until) }
    }
  }

  /// Returns to level at once.
  mutating func release() { self = Steering() }

  /// The heading at this time.
  func heading(at now: Double) -> Heading { Heading(forward: along.value(now), turn: across.value(now)) }
}
