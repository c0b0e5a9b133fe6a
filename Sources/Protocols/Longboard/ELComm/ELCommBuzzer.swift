// The buzzer. It stays on until it is switched off, so the daemon must switch it off when the time is over, when the caller disconnects,
// and when the link is lost. This type holds the requested state and the waiting commands; it sends nothing itself.
// Source: ProjectTORQ.ino (a control byte applies until the next one; the buzzer sounds at 900 Hz while the control byte is 55 and the
// board is connected).

/// The requested state of the buzzer, and the command that requested it.
struct ELCommBuzzer: Sendable {
  /// What a command requests.
  enum Request: Sendable, Equatable {
    case on, off
    /// Sound for this time, which starts when the board has confirmed the sound.
    case sound(Nanoseconds)
    /// Sound as long as the caller stays connected.
    case hold
  }

  /// The state to send to the board.
  struct Target: Sendable, Equatable {
    let isOn: Bool
    /// The number of the change. A response to a message that was sent before the change does not confirm the change.
    let change: Int
    /// Whether the board has confirmed the state.
    let isConfirmed: Bool
  }

  /// A command that is not complete yet.
  private struct RunningCommand: Sendable {
    let id: CommandID
    let request: Request
    /// When the unconfirmed state was requested; nil if the board has confirmed the state, and the buzzer sounds.
    fileprivate var unconfirmedSince: Instant?
    /// When the buzzer began to sound.
    fileprivate var began: Instant = 0
    /// When progress was last reported.
    fileprivate var reported: Instant = 0
  }

  static let timeout: Nanoseconds = 3 * .second
  private static let replaced = CommandError.refused(code: .replaced, "replaced by another buzzer command")

  /// The maximum time that the buzzer stays on.
  let limit: Nanoseconds
  /// The requested state.
  private(set) var isOn = false
  /// The number of requests so far.
  private var change = 0
  /// Whether the board has confirmed the requested state.
  private var isConfirmed = false
  /// The last confirmed state; nil if it is unknown.
  private(set) var confirmedState: Bool?
  /// Whether last-will frames are set for the link.
  private var hasLastWill = false
  /// When to switch the buzzer off; nil if there is no time limit.
  private var endsAt: Instant?
  private var command: RunningCommand?

  init(limit: Nanoseconds) { self.limit = limit }

  var target: Target { Target(isOn: isOn, change: change, isConfirmed: isConfirmed) }

  /// When a sound or a timeout ends, or progress is due.
  var nextWake: Instant? {
    let timeout = command?.unconfirmedSince.map { $0 &+ Self.timeout }
    let progress = command.flatMap { $0.unconfirmedSince == nil ? $0.reported &+ .second : nil }
    return [endsAt, timeout, progress].compactMap(\.self).min()
  }

  private mutating func setTarget(isOn: Bool, until: Instant? = nil) {
    self.isOn = isOn
    endsAt = until
    isConfirmed = false
    change &+= 1
  }

  /// Performs a command, which replaces an earlier one.
  mutating func perform(_ id: CommandID, _ request: Request, at now: Instant, _ effects: inout Effects) {
    fail(Self.replaced, &effects)
    command = RunningCommand(id: id, request: request, unconfirmedSince: now)
    // The duration starts when the board has confirmed the state.
    setTarget(isOn: request != .off, until: request == .on ? now &+ limit : nil)
  }

  /// Handles the confirmation of a message that was sent for this change.
  mutating func confirmed(_ change: Int, at now: Instant, _ effects: inout Effects) {
    guard change == self.change else { return }
    confirmedState = isOn
    guard !isConfirmed else { return }
    isConfirmed = true
    guard var command, command.unconfirmedSince != nil else { return }
    switch command.request {
    case .sound(let time) where isOn: endsAt = now &+ time
    case .hold where isOn: break
    case .on, .off, .sound, .hold:
      self.command = nil
      return effects.append(.complete(command.id, .success(Report())))
    }
    (command.unconfirmedSince, command.began, command.reported) = (nil, now, now)
    self.command = command
  }

  /// Ends sounds and commands whose time is over.
  mutating func expire(at now: Instant, _ effects: inout Effects) {
    if let endsAt, now >= endsAt {
      // The maximum duration is over, and the board has not confirmed the sound.
      if command?.request == .on { fail(.timeout(milliseconds: Int(limit / .millisecond)), &effects) }
      setTarget(isOn: false)
      if command?.unconfirmedSince == nil { command?.unconfirmedSince = now }
    }
    guard var command else { return }
    if let since = command.unconfirmedSince {
      guard now >= since &+ Self.timeout else { return }
      fail(.timeout(milliseconds: Int(Self.timeout / .millisecond)), &effects)
      // The command has failed, so the buzzer must not sound later.
      if isOn { setTarget(isOn: false) }
    } else if now >= command.reported &+ .second {
      // Clients time out a command that reports no progress for ten seconds.
      command.reported = now
      self.command = command
      effects.append(.progress(command.id, Report(progress: progress(of: command, at: now))))
    }
  }

  private func progress(of command: RunningCommand, at now: Instant) -> Double? {
    guard case .sound(let time) = command.request else { return nil }
    return min(1, Double(now &- command.began) / Double(time))
  }

  /// Handles a caller that has disconnected. Its timed or held sound ends, but a state that was set with the property remains.
  mutating func cancel(_ id: CommandID) {
    guard let command, command.id == id else { return }
    self.command = nil
    if isOn, command.request != .on { setTarget(isOn: false) }
  }

  /// Sets the requested state to off for a new or lost link, and fails the waiting command.
  mutating func reset(_ error: CommandError, _ effects: inout Effects) {
    fail(error, &effects)
    confirmedState = nil
    setTarget(isOn: false)
  }

  /// Publishes the last state that the board has confirmed.
  func publish(_ effects: inout Effects) {
    if let confirmedState { effects.publish(ELCommProperty.buzzer.rawValue, .bool(confirmedState)) }
  }

  /// Sets last-will frames while the buzzer may sound, because the board has no time limit. A board ignores input while it sends, so the
  /// frames contain `off` twice.
  mutating func updateLastWill(isUp: Bool, off: [UInt8], _ effects: inout Effects) {
    let needsLastWill = isUp && (isOn || hasLastWill && !(isConfirmed && confirmedState == false))
    guard needsLastWill != hasLastWill else { return }
    hasLastWill = needsLastWill
    let will = LastWill(dead: [LastWill.Message(off), LastWill.Message(off, after: ELCommDialogue.offPause)], frozen: [])
    effects.append(.lastWill(.main, needsLastWill ? will : nil))
  }

  private mutating func fail(_ error: CommandError, _ effects: inout Effects) {
    if let command { effects.append(.complete(command.id, .failure(error))) }
    command = nil
  }
}
