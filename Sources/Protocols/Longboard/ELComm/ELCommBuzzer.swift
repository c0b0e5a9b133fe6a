// The buzzer. The board latches it, so it must be switched off when its time is over, when its caller disconnects, and when the link
// is lost. This type decides what the board should do and which commands wait; it sends nothing itself.
// Source: ProjectTORQ.ino (a control byte is kept until the next; 900 Hz while it is 55 and the board is connected).

/// The requested state of the buzzer, and the command that requested it.
struct ELCommBuzzer: Sendable {
  /// Set by a command.
  struct Order: Sendable {
    enum Wish: Sendable, Equatable {
      case on, off
      /// For this long after the board has confirmed it.
      case sound(Nanoseconds)
      /// As long as the caller stays connected.
      case hold
    }

    let id: CommandID
    let wish: Wish
    /// When a state was requested that the board has not confirmed yet; nil while it sounds.
    var waiting: Instant?
    var began: Instant = 0
    var told: Instant = 0
  }

  static let timeout: Nanoseconds = 3 * .second
  private static let replaced = CommandError.refused(code: "replaced", "replaced by another buzzer command")

  let limit: Nanoseconds
  private(set) var isOn = false
  /// Counts changes: a message that was sent before a change does not confirm it.
  private(set) var wish = 0
  /// The board has confirmed the requested state.
  private(set) var isHeard = false
  /// The last confirmed state.
  private(set) var known: Bool?
  private var ends: Instant?
  private var order: Order?

  init(limit: Nanoseconds) { self.limit = limit }

  /// When something ends or must be sent.
  var nextWake: Instant? {
    let timeout = order?.waiting.map { $0 &+ Self.timeout }
    let progress = order.flatMap { $0.waiting == nil ? $0.told &+ .second : nil }
    return [ends, timeout, progress].compactMap(\.self).min()
  }

  private mutating func turn(_ on: Bool, until: Instant? = nil) {
    isOn = on
    ends = until
    isHeard = false
    wish &+= 1
  }

  /// Replaces the requested state.
  mutating func take(_ id: CommandID, _ wish: Order.Wish, at now: Instant, _ effects: inout Effects) {
    fail(Self.replaced, &effects)
    order = Order(id: id, wish: wish, waiting: now)
    // The duration starts when the board has confirmed the state.
    turn(wish != .off, until: wish == .on ? now &+ limit : nil)
  }

  /// The board has confirmed what was sent for this change.
  mutating func heard(_ wish: Int, at now: Instant, _ effects: inout Effects) {
    guard wish == self.wish else { return }
    known = isOn
    guard !isHeard else { return }
    isHeard = true
    guard var order, order.waiting != nil else { return }
    switch order.wish {
    case .sound(let time) where isOn: ends = now &+ time
    case .hold where isOn: break
    case .on, .off, .sound, .hold:
      self.order = nil
      return effects.append(.complete(order.id, .success(Report())))
    }
    (order.waiting, order.began, order.told) = (nil, now, now)
    self.order = order
  }

  /// Ends everything whose time is over.
  mutating func expire(at now: Instant, _ effects: inout Effects) {
    if let ends, now >= ends {
      // The whole duration has passed before a confirmation.
      if order?.wish == .on { fail(.timeout(milliseconds: Int(limit / .millisecond)), &effects) }
      turn(false)
      if order?.waiting == nil { order?.waiting = now }
    }
    guard var order else { return }
    if let waiting = order.waiting {
      guard now >= waiting &+ Self.timeout else { return }
      fail(.timeout(milliseconds: Int(Self.timeout / .millisecond)), &effects)
      // It is no longer expected to sound.
      if isOn { turn(false) }
    } else if now >= order.told &+ .second {
      // A command without progress for ten seconds would time out.
      order.told = now
      self.order = order
      effects.append(.progress(order.id, Report(progress: progress(of: order, at: now))))
    }
  }

  private func progress(of order: Order, at now: Instant) -> Double? {
    guard case .sound(let time) = order.wish else { return nil }
    return min(1, Double(now &- order.began) / Double(time))
  }

  /// The caller has disconnected. A set state stays; a sound ends.
  mutating func cancel(_ id: CommandID) {
    guard let order, order.id == id else { return }
    self.order = nil
    if isOn, order.wish != .on { turn(false) }
  }

  /// The link is lost, or new: the first message must be off.
  mutating func reset(_ error: CommandError, _ effects: inout Effects) {
    fail(error, &effects)
    known = nil
    turn(false)
  }

  private mutating func fail(_ error: CommandError, _ effects: inout Effects) {
    if let order { effects.append(.complete(order.id, .failure(error))) }
    order = nil
  }
}
