// Keys into a tilt. Pure: time is an argument. A terminal tells when a key goes down or repeats, and never when it is let
// go: a press holds for a moment, each repeat for a shorter one, then the tilt goes back to level by itself.
// Facts: autott.md §5 for the angles: full speed is 45° of roll or 80° of pitch, positive pitch turns right.

/// Where the car is to go, each between -1 and 1.
struct Heading: Equatable {
  /// Forward, or backward.
  var forward = 0.0
  /// To the right, or to the left.
  var turn = 0.0

  /// The angles in rad that ask for it, when full keys ask for `top` of the speed (0 to 1).
  func tilt(top: Double) -> (roll: Double, pitch: Double) {
    // Adding zero takes the sign off a zero, which this car minds.
    (forward * top * .pi / 4 + 0, turn * top * 80 * .pi / 180 + 0)
  }
}

struct Steering {
  /// Seconds that a press holds: keyboards begin to repeat after about half a second.
  static let pressHold = 0.6
  /// Seconds that a repeat holds.
  static let repeatHold = 0.2
  /// Seconds from there to level.
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

  /// A key went down, or repeats. What is held beside it is held with it: a keyboard repeats only the last key.
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

  /// Level, at once.
  mutating func release() { self = Steering() }

  /// Where the keys point now.
  func heading(at now: Double) -> Heading { Heading(forward: along.value(now), turn: across.value(now)) }
}
