// What is known of how far the display has read, so that what is written next comes to the right profile and is not lost.
// The display is told to read at most a second after a value was written. It reads the name first and then each field; a reading takes
// 2.4 s at most, and one that is under way is followed by at most two others: one that finds the value, and an empty one for the
// signal that came during that. With the database and the camera behind them all of it is over within 7 s.
// While it may be reading, another name would file values under the wrong profile, Disconnected would clear what is unread and
// file the rest under no name, and a heart rate may be lost: the display asks for it twice and drops the second answer.
// Facts: ISM-Embedded's main.cpp (1 s loop), nano/subsystems/i2c.py (12 fields of 0.1 to 0.2 s), nano/main.py (one signal is kept).

/// It outlives connections.
struct MirrorReading: Sendable {
  /// The name under which the last value was written.
  private(set) var name: String?
  /// When the last value was written.
  private(set) var lastValue: Instant?
  /// The last heart rate was written while the display may have been reading.
  var mayLackHeart = false

  static let time: Nanoseconds = 7 * .second

  init() {}

  /// What an earlier run wrote under this name may have been written just now.
  init(name: String?, at now: Instant) { (self.name, lastValue) = (name, name == nil ? nil : now) }

  /// When the display has read everything.
  var end: Instant? { lastValue.map { $0 &+ Self.time } }

  func isOver(at now: Instant) -> Bool { end.map { now >= $0 } ?? true }

  /// Whether this name has to wait until the display has read what was written under another.
  func holdsBack(_ other: String) -> Bool { name != nil && name != other }

  /// A value goes out under this name, or has arrived.
  mutating func wrote(_ tag: MirrorMessage.Tag, under name: String?, at now: Instant) {
    if tag == .heart { mayLackHeart = !isOver(at: now) }
    (self.name, lastValue) = (name, now)
  }

  mutating func arrived(at now: Instant) { lastValue = now }
}
