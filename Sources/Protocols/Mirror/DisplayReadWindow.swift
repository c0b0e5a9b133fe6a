// Estimates when the display has read all written values, so that the next write is filed under the right profile and is not lost. The
// display starts to read at most 1 s after a value was written. It reads the name first and then each field. A pass takes at most 2.4 s. At
// most two more passes follow a running pass: one that finds the value, and one without a value, for a signal that arrived during the
// former. Including the database and the camera, everything ends within 7 s. In the meantime, another name would file values under the
// wrong profile, Disconnected would discard unread values and file the rest under no name, and a heart rate may be lost, because the
// display requests it twice and drops the second response.
// Source: ISM-Embedded's main.cpp (1 s loop), nano/subsystems/i2c.py (12 fields of 0.1 to 0.2 s), nano/main.py (one signal is latched).

/// The period in which the display may still read written values. It can outlast the connection.
struct DisplayReadWindow: Sendable {
  /// The name under which the last value was written.
  private(set) var name: String?
  /// When the last value was written.
  private(set) var lastValue: Instant?
  /// Whether the last heart rate was written while the display may have been reading, so the display may have missed it.
  var hasPossiblyMissedHeartRate = false

  static let duration: Nanoseconds = 7 * .second

  init() {}

  /// The state after the daemon has started: an earlier run may have just written values under this name.
  init(name: String?, at now: Instant) { (self.name, lastValue) = (name, name == nil ? nil : now) }

  /// When the display has read everything.
  var end: Instant? { lastValue.map { $0 &+ Self.duration } }

  func hasEnded(at now: Instant) -> Bool { end.map { now >= $0 } ?? true }

  /// Whether the name `other` must wait until the display has read the values under the last name.
  func holdsBack(_ other: String) -> Bool { name != nil && name != other }

  /// Notes that a value under this name is being written.
  mutating func valueWritten(_ tag: MirrorMessage.Tag, under name: String?, at now: Instant) {
    if tag == .heart { hasPossiblyMissedHeartRate = !hasEnded(at: now) }
    (self.name, lastValue) = (name, now)
  }

  /// Notes that the mirror has acknowledged the value.
  mutating func valueAcknowledged(at now: Instant) { lastValue = now }
}
