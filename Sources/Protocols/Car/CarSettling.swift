// Whether the car has heard what was said last, and whether it stands. As built it forgets what it read in one go behind a word
// that its program stumbles over, as over Continue in the modes in which it drives by itself, and it hears nothing for two
// seconds while a mode starts its camera. So after such a word, and after every Stop, it is asked for its modes: it obeys and
// answers on one thread, in order, so the answer confirms what was said before. Where it may have forgotten that, only what is
// said after the answer is surely heard: a Stop is said once more then, and confirmed by the next answer. It is asked on and
// on, and told again to stop with each question. Answers have no mark of their question; those to older questions count for
// nothing. Facts: autott.md §8; Steering.py, Modes.py.

struct CarSettling: Sendable, Equatable {
  private static let first: Nanoseconds = 300 * .millisecond
  private static let longest: Nanoseconds = 5 * .second
  /// From here on a person is told: 2.1 s after Stop, for Status alone takes the car a second, and 4.5 s after other words, for
  /// its camera takes two.
  private static let (suspicious, hopeless) = (4, 5)
  /// So many answers can be under way; questions beyond that were lost.
  private static let maxOpen = 4

  /// What an answer means.
  enum Meaning { case nothing, stopAgain, stopConfirmed }

  /// How many answers are older than the one which shows that the car hears; nil: it does.
  private var hearing: Int?
  /// The same of the one that confirms Stop; nil: none is to be confirmed.
  private var stop: Int?
  /// When the car is asked again.
  private(set) var due: Instant?
  /// Answers that the car may still give.
  private var open: Int
  private var interval = Self.first
  private var repeats = 0

  /// A new session, in which the car tells its modes so many times unasked.
  init(unasked: Int = 0) { open = unasked }

  /// All that was said was heard.
  var isSettled: Bool { hearing == nil }
  /// A Stop was said that the car has not confirmed.
  var owesStop: Bool { stop != nil }
  private var isWaiting: Bool { !isSettled || owesStop }

  /// The car may forget what follows.
  mutating func unsettle() {
    hearing = open
    rest()
  }

  /// A Stop goes out.
  mutating func stopped() {
    if isWaiting { due = nil } else { rest() }
    stop = open
  }

  /// Continue goes out: no Stop before it matters any more.
  mutating func proceeds() {
    stop = nil
    if isSettled { rest() }
  }

  /// The link took the question.
  mutating func asked(at now: Instant) {
    open = min(open + 1, Self.maxOpen)
    hearing = hearing.map { min($0, open - 1) }
    stop = stop.map { min($0, open - 1) }
    guard isWaiting, due == nil else { return }
    due = now &+ interval
    interval = min(interval &* 2, Self.longest)
    repeats &+= 1
  }

  /// The car is asked again now.
  mutating func again() { due = nil }

  /// The car has told its modes.
  mutating func answered(at now: Instant) -> Meaning {
    guard open > 0 else { return .nothing }
    open -= 1
    let (hears, confirms) = (Self.reach(&hearing), Self.reach(&stop))
    if hears {
      rest()
      // Said before the answer: it may not have been heard.
      if owesStop || confirms { stop = open }
      return owesStop ? .stopAgain : .nothing
    }
    if confirms {
      if isSettled { rest() }
      return .stopConfirmed
    }
    // It speaks: the next question is not put off.
    if due != nil { (due, interval) = (now &+ Self.first, Self.first) }
    return .nothing
  }

  /// Whether this answer is the one; it is awaited no more then.
  private static func reach(_ older: inout Int?) -> Bool {
    guard let count = older else { return false }
    older = count > 0 ? count - 1 : nil
    return count == 0
  }

  private mutating func rest() { (due, interval, repeats) = (nil, Self.first, 0) }

  /// What a person should know of a car that stands, or may not.
  func trouble(stands: Bool) -> String? {
    if owesStop, !stands, repeats >= Self.suspicious { return "the car has not confirmed Stop: it may still be driving" }
    if isWaiting, repeats >= Self.hopeless { return "the car has not answered since it was told what to do: its program may hang" }
    return nil
  }
}
