// What waits to be said, and when it may be. A Stop goes before everything else and at once; every other word travels alone,
// a pause behind the last tilt and before the next, for what the car reads at once with a tilt that it cannot use is lost.
// Tilts are not kept here: of them only the newest is worth anything.
// Facts: autott.md §8 and §9; TCP.py drops the rest of what it read whenever a handler fails.

/// Something that is to be said in one or more words, for somebody or for the machine itself.
struct CarErrand: Sendable, Equatable {
  enum Purpose: Sendable, Equatable {
    case greeting, pulse, proceed, status, message, shutDown, connectionTest
    case mode(Int)
    case button(CarSide, Bool)
    case modeInfo(Int)
    case video(Bool)
  }

  var id: CommandID?
  var purpose: Purpose
  /// Those that were not said yet.
  var words: [CarWord]

  init(_ purpose: Purpose, _ words: [CarWord], for id: CommandID? = nil) {
    (self.purpose, self.words, self.id) = (purpose, words, id)
  }
}

/// Words that wait.
struct CarOutbox: Sendable {
  /// Between a word and the tilts before and behind it.
  static let pause: Nanoseconds = 50 * .millisecond
  static let stopInterval: Nanoseconds = 60 * .millisecond
  /// Between two words while tilts are streaming, so that words cannot drown them.
  private static let spacing: Nanoseconds = 200 * .millisecond
  static let most = 16

  /// The words that stop the car, still to be said.
  private(set) var stops: [CarWord] = []
  private(set) var stopDue: Instant = .min
  /// The first of them is with the link.
  private var isSayingStop = false
  private(set) var errands: [CarErrand] = []
  /// Nothing follows the last word before then.
  private(set) var quietUntil: Instant = .min
  /// When the last word and the last tilt went out.
  private var spokenAt: Instant = .min
  private var tiltedAt: Instant = .min
  private var lastWasStop = false
  /// The first word of the first errand is with the link.
  private var isCarrying = false

  // MARK: Stopping

  /// The car is to stop: these words come next. The first one at once, unless a Stop has just been said and nothing since.
  mutating func stop(_ words: [CarWord], at now: Instant) {
    stops = words
    isSayingStop = false
    stopDue = lastWasStop ? max(now, quietUntil) : now
  }

  /// The first of them goes to the link.
  mutating func sayStop() -> CarWord? {
    isSayingStop = !stops.isEmpty
    return stops.first
  }

  /// The link took a word that stops the car, or it has to be said again. One that was said before the car was to stop anew
  /// does not count.
  mutating func stopSaid(_ failure: String?, at now: Instant) {
    if failure == nil, isSayingStop { stops.removeFirst() }
    isSayingStop = false
    stopDue = now &+ Self.stopInterval
  }

  // MARK: Errands

  var hasRoom: Bool { errands.count < Self.most }

  /// False where too many wait.
  mutating func add(_ errand: CarErrand) -> Bool {
    guard hasRoom else { return false }
    errands.append(errand)
    return true
  }

  /// One that must not be left out: there are never more of them than buttons.
  mutating func insist(_ errand: CarErrand) { errands.append(errand) }

  /// The car is asked for its modes, before all else that waits.
  mutating func ask() { errands.insert(CarErrand(.greeting, [.modes]), at: isCarrying ? 1 : 0) }

  /// The first word of the first errand goes to the link.
  mutating func carry() -> CarWord? {
    guard let word = errands.first?.words.first else { return nil }
    isCarrying = true
    return word
  }

  /// The link took it: the errand, where it was its last word. nil also where the errand was removed meanwhile.
  mutating func errandSaid() -> CarErrand? {
    guard isCarrying, !errands.isEmpty else { return nil }
    isCarrying = false
    errands[0].words.removeFirst()
    return errands[0].words.isEmpty ? errands.removeFirst() : nil
  }

  /// The link did not take it: the errand.
  mutating func errandFailed() -> CarErrand? {
    guard isCarrying, !errands.isEmpty else { return nil }
    isCarrying = false
    return errands.removeFirst()
  }

  /// Those that are not to be said any more; what the link holds already is said nevertheless.
  mutating func remove(where isGone: (CarErrand) -> Bool) -> [CarErrand] {
    let gone = errands.filter(isGone)
    if let first = errands.first, isGone(first) { isCarrying = false }
    errands.removeAll(where: isGone)
    return gone
  }

  /// The same, but for the one whose word is with the link.
  mutating func removeWaiting(where isGone: (CarErrand) -> Bool) -> [CarErrand] {
    guard isCarrying else { return remove(where: isGone) }
    let carried = errands.removeFirst()
    let gone = errands.filter(isGone)
    errands.removeAll(where: isGone)
    errands.insert(carried, at: 0)
    return gone
  }

  mutating func forget(_ id: CommandID) {
    for index in errands.indices where errands[index].id == id { errands[index].id = nil }
  }

  /// When the first errand's next word has its turn, but for the pause behind the last tilt: from then on no tilt goes out.
  func turn(isStreaming: Bool) -> Instant? {
    if errands.isEmpty { return nil }
    return isStreaming && spokenAt != .min ? max(quietUntil, spokenAt &+ Self.spacing) : quietUntil
  }

  /// When the last tilt is long enough ago for a word.
  var tiltsAreThrough: Instant { tiltedAt == .min ? .min : tiltedAt &+ Self.pause }

  // MARK: What went out

  /// A word went to the link, or the link took it.
  mutating func spoke(isStop: Bool, at now: Instant) {
    (spokenAt, lastWasStop) = (now, isStop)
    quietUntil = now &+ (isStop ? Self.stopInterval : Self.pause)
  }

  mutating func tilted(at now: Instant) { (tiltedAt, lastWasStop) = (now, false) }

  /// The link is another one: gives those that wait for something.
  mutating func reset() -> [CarErrand] {
    defer { self = CarOutbox() }
    return errands
  }
}
