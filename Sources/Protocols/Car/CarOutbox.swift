// The send queue. A Stop is sent before everything else and at once. Every other command is sent alone, with a pause to the tilts
// before and after it, because the car discards what it reads together with a tilt that it cannot use. Tilts are not queued: only
// the newest one matters.
// Source: autott.md §8 and §9; TCP.py drops the rest of what it read whenever a handler fails.

/// A queued command of one or more messages, of a caller or of the machine itself.
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
  /// The messages that are not sent yet.
  var words: [CarWord]

  init(_ purpose: Purpose, _ words: [CarWord], for id: CommandID? = nil) {
    (self.purpose, self.words, self.id) = (purpose, words, id)
  }
}

/// The queued messages.
struct CarOutbox: Sendable {
  /// The pause between a command and the tilts before and after it.
  static let pause: Nanoseconds = 50 * .millisecond
  static let stopInterval: Nanoseconds = 60 * .millisecond
  /// The pause between two commands while tilts are streaming, so that tilts are still sent.
  private static let spacing: Nanoseconds = 200 * .millisecond
  static let most = 16

  /// The remaining messages that stop the car.
  private(set) var stops: [CarWord] = []
  private(set) var stopDue: Instant = .min
  /// The first one is in flight.
  private var isSayingStop = false
  private(set) var errands: [CarErrand] = []
  /// Nothing is sent after the last message before then.
  private(set) var quietUntil: Instant = .min
  /// When the last message and the last tilt were sent.
  private var spokenAt: Instant = .min
  private var tiltedAt: Instant = .min
  private var lastWasStop = false
  /// The first message of the first command is in flight.
  private var isCarrying = false

  // MARK: Stop

  /// Queues the messages that stop the car, the first one for now, unless a Stop was the last message sent.
  mutating func stop(_ words: [CarWord], at now: Instant) {
    stops = words
    isSayingStop = false
    stopDue = lastWasStop ? max(now, quietUntil) : now
  }

  /// The first one is passed to the link.
  mutating func sayStop() -> CarWord? {
    isSayingStop = !stops.isEmpty
    return stops.first
  }

  /// The link has accepted a stop message, or it must be repeated. One that was sent before the latest request to stop does not
  /// count.
  mutating func stopSaid(_ failure: String?, at now: Instant) {
    if failure == nil, isSayingStop { stops.removeFirst() }
    isSayingStop = false
    stopDue = now &+ Self.stopInterval
  }

  // MARK: Queued commands

  var hasRoom: Bool { errands.count < Self.most }

  /// False if the queue is full.
  mutating func add(_ errand: CarErrand) -> Bool {
    guard hasRoom else { return false }
    errands.append(errand)
    return true
  }

  /// Queues a command that must not be dropped: there are never more of them than buttons.
  mutating func insist(_ errand: CarErrand) { errands.append(errand) }

  /// Queues a request for the modes, before all other commands.
  mutating func ask() { errands.insert(CarErrand(.greeting, [.modes]), at: isCarrying ? 1 : 0) }

  /// Passes the first message of the first command to the link.
  mutating func carry() -> CarWord? {
    guard let word = errands.first?.words.first else { return nil }
    isCarrying = true
    return word
  }

  /// The link has accepted it: returns the command if this was its last message; nil also if the command was removed meanwhile.
  mutating func errandSaid() -> CarErrand? {
    guard isCarrying, !errands.isEmpty else { return nil }
    isCarrying = false
    errands[0].words.removeFirst()
    return errands[0].words.isEmpty ? errands.removeFirst() : nil
  }

  /// The link failed: returns the command.
  mutating func errandFailed() -> CarErrand? {
    guard isCarrying, !errands.isEmpty else { return nil }
    isCarrying = false
    return errands.removeFirst()
  }

  /// Removes commands; a message in flight is sent nevertheless.
  mutating func remove(where isGone: (CarErrand) -> Bool) -> [CarErrand] {
    let gone = errands.filter(isGone)
    if let first = errands.first, isGone(first) { isCarrying = false }
    errands.removeAll(where: isGone)
    return gone
  }

  /// The same, except for the command whose message is in flight.
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

  /// When the next message of the first command is due, apart from the pause after the last tilt: from then on no tilt is sent.
  func turn(isStreaming: Bool) -> Instant? {
    if errands.isEmpty { return nil }
    return isStreaming && spokenAt != .min ? max(quietUntil, spokenAt &+ Self.spacing) : quietUntil
  }

  /// When the pause after the last tilt is over.
  var tiltsAreThrough: Instant { tiltedAt == .min ? .min : tiltedAt &+ Self.pause }

  // MARK: Sent messages

  /// A message was passed to the link, or accepted by it.
  mutating func spoke(isStop: Bool, at now: Instant) {
    (spokenAt, lastWasStop) = (now, isStop)
    quietUntil = now &+ (isStop ? Self.stopInterval : Self.pause)
  }

  mutating func tilted(at now: Instant) { (tiltedAt, lastWasStop) = (now, false) }

  /// Resets the queue for a new link: returns the waiting commands.
  mutating func reset() -> [CarErrand] {
    defer { self = CarOutbox() }
    return errands
  }
}
