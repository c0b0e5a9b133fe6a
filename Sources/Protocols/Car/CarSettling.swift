// Whether the car has heard what was said last. As built it forgets what it read in one go behind a word that its program
// stumbles over, as over Continue in the modes in which it drives by itself, and it hears nothing for two seconds while a
// mode starts its camera. So after such a word it is asked for its modes: only what is said after its answer is surely heard.
// It is asked on and on, and a Stop before that is said on and on as well, and once more behind the answer. Answers have no
// mark of their question but come in order: those to questions asked before count for nothing.
// Facts: autott.md §8; Steering.py, Modes.py.

struct CarSettling: Sendable, Equatable {
  private static let first: Nanoseconds = 300 * .millisecond
  private static let longest: Nanoseconds = 5 * .second
  /// From here on a person is told.
  private static let suspicious = 3
  /// So many answers can be under way; questions beyond that were lost.
  private static let mostOpen = 4

  /// All that was said was heard.
  private(set) var isSettled = true
  /// A Stop was said that may not have been heard.
  private(set) var owesStop = false
  /// When the car is asked again.
  private(set) var due: Instant?
  /// Answers that the car may still give, and how many of them are older than what it may have forgotten.
  private var open: Int
  private var stale = 0
  private var interval = Self.first
  private var repeats = 0

  /// A new session, in which the car tells its modes so many times unasked.
  init(unasked: Int = 0) { open = unasked }

  /// The car may forget what follows.
  mutating func unsettle() {
    (isSettled, stale) = (false, open)
    (due, interval, repeats) = (nil, Self.first, 0)
  }

  /// The link took the question.
  mutating func asked(at now: Instant) {
    open = min(open + 1, Self.mostOpen)
    stale = min(stale, open - 1)
    if !isSettled, due == nil { wait(from: now) }
  }

  /// A Stop goes out.
  mutating func stop() {
    guard !isSettled else { return }
    (owesStop, due, interval, repeats) = (true, nil, Self.first, 0)
  }

  /// The words of the last Stop are out.
  mutating func stopsAreOut(at now: Instant) {
    if owesStop, due == nil { wait(from: now) }
  }

  private mutating func wait(from now: Instant) {
    due = now &+ interval
    interval = min(interval &* 2, Self.longest)
    repeats &+= 1
  }

  /// The car is asked again now.
  mutating func again() { due = nil }

  /// The car has told its modes; true where a Stop is owed and has to be said once more.
  mutating func answered(at now: Instant) -> Bool {
    let wasAsked = open > stale
    open = max(open - 1, 0)
    guard !isSettled else { return false }
    if stale > 0 {
      stale -= 1
      // It speaks: the next question is not put off.
      if due != nil { (due, interval) = (now &+ Self.first, Self.first) }
      return false
    }
    guard wasAsked else { return false }
    defer { self = CarSettling(unasked: open) }
    return owesStop
  }

  var trouble: String? {
    owesStop && repeats >= Self.suspicious ? "the car has not confirmed Stop: it may still be driving" : nil
  }
}
