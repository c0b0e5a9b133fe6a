// Hold-to-run throttle for keys. No I/O: time is an argument. A terminal reports presses and repeats but no releases. A single press
// therefore does not open the throttle: it opens when the key repeats, and closes `hold` after the last repeat. The setpoint zero follows
// at most `sending` later. Keys that arrive together, as in pasted text or after a network delay, count as one press. If a keyboard reports
// that the key is down, the throttle opens at once, stays open without repeats, and closes with the release. Reopening always takes another
// key event of the terminal.

struct Throttle {
  /// The time in seconds from the last key event to zero; longer than the interval of slow key repeats.
  static let hold = 0.2
  /// The time in seconds that the brake acts after a first press; longer, because keyboards start to repeat after about half a second.
  static let brakePressHold = 0.6
  /// The maximum time in seconds until the next setpoint is sent, if the device replies to the previous one within this time.
  static let sending = 0.05
  /// The documented maximum time in seconds from the last key event to the setpoint zero.
  static let releaseTime = hold + sending
  /// The maximum time in seconds between a press and its first repeat.
  static let repeatDelay = 1.0
  /// Seconds from zero to full throttle.
  static let rise = 1.0

  /// 1 for throttle; -1 for the brake, or for backwards.
  private var direction = 0.0
  private var lastEvent = -Double.infinity
  /// When the throttle opened.
  private var openedAt: Double?
  /// When the throttle closes without another event; infinite while a keyboard reports that the key is down.
  private var until = -Double.infinity
  /// Whether a held key must be released first. Keys other than the brake then have no effect until no key event has arrived for `hold`
  /// seconds.
  private var isBlocked = false
  /// Whether a keyboard reported the release. Late events of the terminal then have no effect.
  private var wasReleased = false

  /// Handles a key that is pressed or repeats. `isDown` is whether a keyboard reports the key as down. `brakes` is whether it is the brake,
  /// which acts at once.
  mutating func press(_ direction: Double, isDown: Bool, brakes: Bool, at now: Double) {
    let sinceLast = now - lastEvent
    lastEvent = now
    if sinceLast <= Self.hold, isBlocked && !brakes || wasReleased && !isDown { return }
    (isBlocked, wasReleased) = (false, false)
    let isSame = direction == self.direction && sinceLast <= Self.repeatDelay
    if !isSame || now >= until { (openedAt, until) = (nil, now) }
    self.direction = direction
    let repeats = isSame && sinceLast > 0
    guard repeats || openedAt != nil || isDown || brakes else { return }
    openedAt = openedAt ?? now
    let hold = brakes && !repeats ? Self.brakePressHold : Self.hold
    until = isDown ? .infinity : max(until == .infinity ? now : until, now + hold)
  }

  /// Handles what a keyboard reports: `isDown` returns whether a key of a direction, 1 or -1, is down.
  mutating func update(isDown: (Double) -> Bool) {
    guard until == .infinity, !isDown(direction) else { return }
    close()
    wasReleased = true
  }

  /// Closes at once. A key that is still held has no effect until it is released and pressed again.
  mutating func release() {
    close()
    isBlocked = true
  }

  private mutating func close() { (direction, openedAt, until) = (0, nil, -.infinity) }

  /// The throttle at this time: -1 to 1.
  func value(at now: Double) -> Double {
    guard let openedAt, now < until else { return 0 }
    return direction * min(1, max(0, now - openedAt) / Self.rise)
  }
}
