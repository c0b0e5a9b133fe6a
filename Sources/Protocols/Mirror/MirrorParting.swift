// The last words. `Disconnected` makes the ESP32 forget everything, the name and what the display has not read yet included. So it
// is said only where the display has read everything by now, or very soon (MirrorReading); otherwise the connection just ends, and
// the mirror shows what it was told. All of it ends before the device's patience does.
// Facts: main.cpp (what Disconnected clears), ISM-App (0.5 s).

/// The end of a connection.
struct MirrorParting: Sendable {
  enum Step: Sendable, Equatable {
    /// A write from before is still out.
    case waiting(SendID)
    case resting
    case saying(SendID)
    /// Said: the mirror is given a moment.
    case leaving(until: Instant)
    case over
  }

  private(set) var step: Step
  /// When `Disconnected` may be said; nil: not at all.
  let says: Instant?
  private let limit: Instant

  private static let timeout: Nanoseconds = 1_200 * .millisecond
  /// What may pass before the word goes out, so that it arrives and there is time behind it.
  private static let delay: Nanoseconds = 400 * .millisecond
  private static let farewell: Nanoseconds = 500 * .millisecond

  /// The end of this session.
  init(of session: MirrorSession, at now: Instant) {
    limit = now &+ Self.timeout
    step = session.writing.map { .waiting($0.id) } ?? .resting
    let isTelling = session.writing?.word.isValue ?? false
    let moment = max(now, session.reading.end ?? now)
    says = isTelling || moment > now &+ Self.delay ? nil : moment
  }

  var nextWake: Instant {
    switch step {
    case .waiting, .saying: limit
    case .resting: min(says ?? limit, limit)
    case .leaving(let until): min(until, limit)
    case .over: limit
    }
  }

  mutating func sent(_ id: SendID, _ failure: String?, at now: Instant) {
    switch step {
    case .waiting(id): step = .resting
    case .saying(id): step = failure == nil ? .leaving(until: now &+ Self.farewell) : .over
    default: break
    }
  }

  /// Whether `Disconnected` is to be said now, as this send.
  mutating func speaks(as id: SendID, at now: Instant) -> Bool {
    guard step == .resting, let says, now >= says, now < limit else { return false }
    step = .saying(id)
    return true
  }

  func isOver(at now: Instant) -> Bool {
    switch step {
    case .over: true
    case .resting where says == nil: true
    case .leaving(let until): now >= until || now >= limit
    default: now >= limit
    }
  }
}

extension MirrorMachine {
  mutating func stop(at now: Instant, _ effects: inout Effects) {
    guard case .up(let session) = state else {
      if case .down = state { effects.append(.stopped) }
      return
    }
    leave("the link is being closed", &effects)
    trouble = nil
    let parting = MirrorParting(of: session, at: now)
    if parting.says == nil { effects.append(.note("left without Disconnected: the display may not have fetched everything yet")) }
    state = .parting(parting)
  }

  mutating func part(at now: Instant, _ effects: inout Effects) {
    guard case .parting(var parting) = state else { return }
    if parting.speaks(as: lastSendID &+ 1, at: now) { write(.disconnected, &effects) }
    state = .parting(parting)
    guard parting.isOver(at: now) else { return }
    state = .down("the link is being closed")
    effects.append(.stopped)
  }
}
