// What was published of one property, and what is to be published next. No I/O.

import Protocols
import VSS
import Varlink

/// The current reading of a property.
struct CurrentReading: Equatable {
  /// nil if there is none, for this reason.
  var value: Value?
  var reason: String?
  /// When it was measured, in µs since the epoch.
  var time: Int?
}

struct PropertyState {
  /// How often a value is published.
  struct Timing: Equatable, Sendable {
    /// The minimum time between two values of a property.
    var interval: Nanoseconds = 5 * .second
    /// How often a value that does not change is published again, so that it does not expire.
    var refresh: Nanoseconds = 60 * .second
    /// The time after which a value that is not published again expires, in seconds: three refreshes.
    var expiry: UInt32 { UInt32(clamping: refresh * 3 / .second) }
  }

  /// What to publish.
  struct Publication: Equatable {
    var value = false
    var attributes = false
  }

  private(set) var unit: String?
  /// The VSS signals to publish the value as.
  private(set) var signals: [VSSSignal]
  /// Whether a value keeps its meaning: it does not expire.
  private(set) var isRetained: Bool
  private(set) var current: CurrentReading
  /// Whether the broker retains a value of an earlier run, which nothing has replaced yet.
  private var isKnown: Bool
  private var published: (reading: CurrentReading, at: Instant)?
  private var attributes: (reason: String?, time: Int?, at: Instant)?

  init(_ reading: CurrentReading, unit: String?, isRetained: Bool, signals: [VSSSignal] = [], isKnown: Bool = false) {
    (current, self.unit, self.isRetained, self.signals) = (reading, unit, isRetained, signals)
    self.isKnown = isKnown && reading.value == nil
  }

  /// Applies a declaration that arrives after the first value. If it differs, the value is published again.
  mutating func declare(unit: String?, isRetained: Bool, signals: [VSSSignal]) {
    guard (self.unit, self.isRetained, self.signals) != (unit, isRetained, signals) else { return }
    (self.unit, self.isRetained, self.signals) = (unit, isRetained, signals)
    reset()
  }

  mutating func observe(_ reading: CurrentReading) {
    current = reading
    if reading.value != nil { isKnown = false }
  }

  /// Whether the value of an earlier run keeps its meaning, and nothing newer is known.
  private var keepsEarlier: Bool { isRetained && isKnown }

  /// Forgets what was published, so that everything is published again.
  mutating func reset() { (published, attributes) = (nil, nil) }

  /// When something is to be published, if nothing changes.
  func due(_ timing: Timing) -> Instant {
    if keepsEarlier { return .max }
    guard let published else { return 0 }
    if hasChanged { return isUrgent ? 0 : published.at + timing.interval }
    if needsAttributes { return (attributes?.at ?? 0) + timing.refresh }
    // An absence is refreshed like a value: Home Assistant shows what it has not received for long as unavailable, without the reason.
    return isRetained ? .max : published.at + timing.refresh
  }

  /// Returns what to publish now, and counts it as published.
  mutating func publish(_ timing: Timing, at now: Instant) -> Publication {
    guard now >= due(timing) else { return Publication() }
    var publication = Publication()
    if published == nil || hasChanged || !isRetained && now - (published?.at ?? 0) >= timing.refresh {
      publication.value = true
    }
    // The time of a value that does not expire says how old it is.
    if attributes == nil || attributes?.reason != current.reason || needsAttributes && now - (attributes?.at ?? 0) >= timing.refresh
      || publication.value && isRetained
    {
      publication.attributes = true
    }
    if publication.value { published = (current, now) }
    if publication.attributes { attributes = (current.reason, current.time, now) }
    return publication
  }

  /// An absence, and the end of one, is published at once.
  private var isUrgent: Bool { (published?.reading.value == nil) != (current.value == nil) || published?.reading.reason != current.reason }

  private var needsAttributes: Bool { attributes.map { $0.time != current.time || $0.reason != current.reason } ?? true }

  private var hasChanged: Bool {
    guard let old = published?.reading else { return true }
    guard let new = current.value, let before = old.value else { return old.value != current.value || old.reason != current.reason }
    if old.reason != current.reason { return true }
    guard let number = new.number, let last = before.number, new.type != .bool else { return new != before }
    // The comparison allows for numbers that have no exact binary representation.
    return abs(number - last) >= Resolution.deadBand(of: unit) * 0.999_999 && number != last
  }
}
