// The buzzer, which the board latches: whoever switched it on, it must become silent when its time is over, when its caller
// goes, and when the link is lost. This knows what the board is to be told and who waits for it; it never sends anything.
// Facts: ProjectTORQ.ino (a control byte is kept until the next; 900 Hz while it is 55 and the board is connected).

/// What the buzzer is to do, and the command that wanted it.
struct ELCommBuzzer: Sendable {
  /// A person's command.
  struct Order: Sendable {
    enum Wish: Sendable, Equatable {
      case on, off
      /// For this long from when the board has heard of it.
      case sound(Nanoseconds)
      /// As long as the caller stays.
      case hold
    }

    let id: CommandID
    let wish: Wish
    /// When the board was to be told of what it has not confirmed yet; nil while it sounds.
    var waiting: Instant?
    var began: Instant = 0
    var told: Instant = 0
  }

  static let timeout: Nanoseconds = 3 * .second
  private static let replaced = CommandError.refused(code: "replaced", "another command has taken over the buzzer")

  let limit: Nanoseconds
  private(set) var isOn = false
  /// Counts what the board is to be told: what was sent before a change does not confirm it.
  private(set) var wish = 0
  /// The board knows what it is to do.
  private(set) var isHeard = false
  /// What the board was last known to do.
  private(set) var known: Bool?
  private var ends: Instant?
  private var order: Order?

  init(limit: Nanoseconds) { self.limit = limit }

  /// When something ends or is to be told.
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

  /// The last command wins.
  mutating func take(_ id: CommandID, _ wish: Order.Wish, at now: Instant, _ effects: inout Effects) {
    fail(Self.replaced, &effects)
    order = Order(id: id, wish: wish, waiting: now)
    // The time of a sound begins when the board has heard of it.
    turn(wish != .off, until: wish == .on ? now &+ limit : nil)
  }

  /// The board has confirmed what was sent of this wish.
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

  /// Ends what is over at this moment.
  mutating func expire(at now: Instant, _ effects: inout Effects) {
    if let ends, now >= ends {
      // Its whole time was over before the board had heard of it.
      if order?.wish == .on { fail(.timeout(milliseconds: Int(limit / .millisecond)), &effects) }
      turn(false)
      if order?.waiting == nil { order?.waiting = now }
    }
    guard var order else { return }
    if let waiting = order.waiting {
      guard now >= waiting &+ Self.timeout else { return }
      fail(.timeout(milliseconds: Int(Self.timeout / .millisecond)), &effects)
      // Nobody expects it to sound any more.
      if isOn { turn(false) }
    } else if now >= order.told &+ .second {
      // A command that says nothing for ten seconds would be given up.
      order.told = now
      self.order = order
      effects.append(.progress(order.id, Report(progress: progress(of: order, at: now))))
    }
  }

  private func progress(of order: Order, at now: Instant) -> Double? {
    guard case .sound(let time) = order.wish else { return nil }
    return min(1, Double(now &- order.began) / Double(time))
  }

  /// The caller is gone. What was set stays set; a sound ends with whoever wanted to hear it.
  mutating func cancel(_ id: CommandID) {
    guard let order, order.id == id else { return }
    self.order = nil
    if isOn, order.wish != .on { turn(false) }
  }

  /// The link is gone, or new: off is what the board must hear first.
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
