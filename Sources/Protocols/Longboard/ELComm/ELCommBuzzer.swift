// The buzzer. The board keeps it on until it is switched off, so the daemon must do this when the time is over, when the caller
// disconnects, and when the link is lost. This type holds the requested state and the waiting commands; it sends nothing itself.
// Source: ProjectTORQ.ino (a control byte is kept until the next; 900 Hz while it is 55 and the board is connected).

/// The requested state of the buzzer, and the command that requested it.
struct ELCommBuzzer: Sendable {
  /// What a command requests.
  enum Request: Sendable, Equatable {
    case on, off
    /// Sound for this long after the board has confirmed it.
    case sound(Nanoseconds)
    /// Sound as long as the caller stays connected.
    case hold
  }

  /// The state to send to the board.
  struct Target: Sendable, Equatable {
    let isOn: Bool
    /// The number of the change: a response to a message that was sent before the change does not confirm it.
    let change: Int
    /// Whether the board has confirmed it.
    let isConfirmed: Bool
  }

  private struct Order: Sendable {
    let id: CommandID
    let request: Request
    /// When a state was requested that the board has not confirmed yet; nil while it sounds.
    fileprivate var waiting: Instant?
    fileprivate var began: Instant = 0
    fileprivate var reported: Instant = 0
  }

  static let timeout: Nanoseconds = 3 * .second
  private static let replaced = CommandError.refused(code: .replaced, "replaced by another buzzer command")

  let limit: Nanoseconds
  private(set) var isOn = false
  private var change = 0
  /// Whether the board has confirmed the requested state.
  private var isConfirmed = false
  /// The last confirmed state; nil if it is unknown.
  private(set) var known: Bool?
  /// Whether last-will frames are set for the link.
  private var hasLastWill = false
  private var ends: Instant?
  private var order: Order?

  init(limit: Nanoseconds) { self.limit = limit }

  var target: Target { Target(isOn: isOn, change: change, isConfirmed: isConfirmed) }

  /// When something ends or must be sent.
  var nextWake: Instant? {
    let timeout = order?.waiting.map { $0 &+ Self.timeout }
    let progress = order.flatMap { $0.waiting == nil ? $0.reported &+ .second : nil }
    return [ends, timeout, progress].compactMap(\.self).min()
  }

  private mutating func turn(_ on: Bool, until: Instant? = nil) {
    isOn = on
    ends = until
    isConfirmed = false
    change &+= 1
  }

  /// Replaces the requested state.
  mutating func take(_ id: CommandID, _ request: Request, at now: Instant, _ effects: inout Effects) {
    fail(Self.replaced, &effects)
    order = Order(id: id, request: request, waiting: now)
    // The duration starts when the board has confirmed the state.
    turn(request != .off, until: request == .on ? now &+ limit : nil)
  }

  /// Handles the confirmation of a message that was sent for this change.
  mutating func confirmed(_ change: Int, at now: Instant, _ effects: inout Effects) {
    guard change == self.change else { return }
    known = isOn
    guard !isConfirmed else { return }
    isConfirmed = true
    guard var order, order.waiting != nil else { return }
    switch order.request {
    case .sound(let time) where isOn: ends = now &+ time
    case .hold where isOn: break
    case .on, .off, .sound, .hold:
      self.order = nil
      return effects.append(.complete(order.id, .success(Report())))
    }
    (order.waiting, order.began, order.reported) = (nil, now, now)
    self.order = order
  }

  /// Ends sounds and commands whose time is over.
  mutating func expire(at now: Instant, _ effects: inout Effects) {
    if let ends, now >= ends {
      // The maximum duration is over, and the board has not confirmed the sound.
      if order?.request == .on { fail(.timeout(milliseconds: Int(limit / .millisecond)), &effects) }
      turn(false)
      if order?.waiting == nil { order?.waiting = now }
    }
    guard var order else { return }
    if let waiting = order.waiting {
      guard now >= waiting &+ Self.timeout else { return }
      fail(.timeout(milliseconds: Int(Self.timeout / .millisecond)), &effects)
      // The requested duration is over, so request off.
      if isOn { turn(false) }
    } else if now >= order.reported &+ .second {
      // Clients time out a command that reports no progress for ten seconds.
      order.reported = now
      self.order = order
      effects.append(.progress(order.id, Report(progress: progress(of: order, at: now))))
    }
  }

  private func progress(of order: Order, at now: Instant) -> Double? {
    guard case .sound(let time) = order.request else { return nil }
    return min(1, Double(now &- order.began) / Double(time))
  }

  /// Handles a caller that has disconnected: its timed or held sound ends; a state that was set stays.
  mutating func cancel(_ id: CommandID) {
    guard let order, order.id == id else { return }
    self.order = nil
    if isOn, order.request != .on { turn(false) }
  }

  /// Requests off for a new or lost link, and fails the waiting command.
  mutating func reset(_ error: CommandError, _ effects: inout Effects) {
    fail(error, &effects)
    known = nil
    turn(false)
  }

  /// Publishes the last state that the board has confirmed.
  func publish(_ effects: inout Effects) {
    if let known { effects.publish(ELCommSignal.buzzer.rawValue, .bool(known)) }
  }

  /// Sets last-will frames while the buzzer may sound, because the board has no time limit. A board ignores input while it sends, so the
  /// frames contain `off` twice.
  mutating func updateLastWill(isUp: Bool, off: [UInt8], _ effects: inout Effects) {
    let isWanted = isUp && (isOn || hasLastWill && !(isConfirmed && known == false))
    guard isWanted != hasLastWill else { return }
    hasLastWill = isWanted
    let will = LastWill(dead: [LastWill.Message(off), LastWill.Message(off, after: ELCommDialogue.offPause)], frozen: [])
    effects.append(.lastWill(.main, isWanted ? will : nil))
  }

  private mutating func fail(_ error: CommandError, _ effects: inout Effects) {
    if let order { effects.append(.complete(order.id, .failure(error))) }
    order = nil
  }
}
