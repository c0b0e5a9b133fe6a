// Whether the car has heard what was said last. As built it forgets what it read in one go behind a word that its program
// stumbles over, as over Continue in the modes in which it drives by itself, and it hears nothing for two seconds while a
// mode starts its camera. So after such a word it is asked for its modes: only what is said after its answer is surely heard.
// A Stop before that is said on and on, and once more behind the answer. Facts: autott.md §8; Steering.py, Modes.py.

struct CarSettling: Sendable, Equatable {
  private static let first: Nanoseconds = 300 * .millisecond
  private static let longest: Nanoseconds = 5 * .second
  /// From here on a person is told.
  private static let suspicious = 3

  /// All that was said was heard.
  private(set) var isSettled = true
  /// The question is with the link.
  private var isAsked = false
  /// A Stop was said that may not have been heard.
  private(set) var owesStop = false
  /// When it is said again.
  private(set) var due: Instant?
  private var interval = Self.first
  private var repeats = 0

  /// The car may forget what follows.
  mutating func unsettle() { (isSettled, isAsked) = (false, false) }

  /// The link took the question.
  mutating func asked() { isAsked = true }

  /// A Stop goes out.
  mutating func stop() {
    guard !isSettled else { return }
    (owesStop, due, interval, repeats) = (true, nil, Self.first, 0)
  }

  /// The words of the last Stop are out.
  mutating func stopsAreOut(at now: Instant) {
    guard owesStop, due == nil else { return }
    due = now &+ interval
    interval = min(interval &* 2, Self.longest)
    repeats &+= 1
  }

  /// It is said again now.
  mutating func again() { due = nil }

  /// The car has answered; true where a Stop is owed.
  mutating func answered() -> Bool {
    guard !isSettled, isAsked else { return false }
    defer { self = CarSettling() }
    return owesStop
  }

  var trouble: String? {
    owesStop && repeats >= Self.suspicious ? "the car has not confirmed Stop: it may still be driving" : nil
  }
}
