// The distance since the VESC was switched on, and its total. A VESC since 5.02 has an odometer; for older ones the counters since
// power-on are accumulated and stored, and published once they are stored.

struct VESCWay: Sendable {
  static let storeInterval: Nanoseconds = 5 * .second

  /// Metres; nil if the VESC has an odometer.
  var odometer = Odometer(perSecond: 30)
  /// There is a new value to store.
  var isNews = false
  var storedAt: Instant = .min
  /// The value that is being stored.
  var storing: Int?
  /// The last counters, to detect a restart: a counter has decreased.
  private var uptime: Int?
  private var travelled: Int?

  /// Whether the VESC has restarted since the last poll.
  mutating func beganAnew(_ values: VESCValues) -> Bool {
    var began = false
    if let uptime = values[.uptime] {
      if let last = self.uptime, uptime < last { began = true }
      self.uptime = uptime
    }
    if let travelled = values[.tachometerTravelled] {
      if let last = self.travelled, travelled < last { began = true }
      self.travelled = travelled
    }
    // Both counters reset with one restart, but are not read together.
    if began { (uptime, travelled) = (values[.uptime], values[.tachometerTravelled]) }
    return began
  }

  /// Another VESC may respond next.
  mutating func forgetCounters() { (uptime, travelled) = (nil, nil) }
}

extension VESCMachine {
  mutating func restoreWay(_ stored: [UInt8]?, _ effects: inout Effects) {
    guard let stored else { return }
    if Odometer.isDamaged(stored) { effects.append(.event(name: "total-distance-lost", text: Odometer.lossWords)) }
    way.odometer = Odometer(stored: stored, perSecond: 30)
    publish(.totalDistance, .float(Double(way.odometer.total) / 1000), &effects)
  }

  /// Takes the VESC's counters.
  mutating func publishWay(_ command: VESCCommand, at now: Instant, _ effects: inout Effects) {
    let geometry = geometry
    let turns = geometry.metres.map { $0 / 6 }
    if let distance = values[.distance] {
      publish(.distance, .float(Double(distance) / 1e6), &effects)
    } else if talk.setup == .lacking {
      publish(.distance, turns.flatMap { turn in values[.tachometer].map { .float((Double($0) * turn).rounded() / 1000) } }, &effects)
    }
    if let metres = values[.odometer] {
      publish(.totalDistance, .float(Double(metres) / 1000), &effects)
    } else if let travelled = values[.distanceTravelled], travelled >= 0 {
      count(travelled / 1000, at: now, &effects)
    } else if talk.setup == .lacking, let turns, let steps = values[.tachometerTravelled], steps >= 0 {
      count(Int(Double(steps) * turns), at: now, &effects)
    } else if talk.setup == .lacking, turns == nil, way.odometer.total == 0 {
      withdraw(.totalDistance, unknown: geometry.missing, &effects)
    }
    if way.beganAnew(values) {
      effects.append(.event(name: "vesc-restarted", text: "the VESC has restarted"))
      beginMode(&effects)
    }
  }

  private mutating func count(_ metres: Int, at now: Instant, _ effects: inout Effects) {
    if way.odometer.read(metres, at: now) { way.isNews = true }
    if way.storedAt == .min || now &- way.storedAt >= VESCWay.storeInterval {
      way.storedAt = now
      storeWay(&effects)
    }
  }

  mutating func storeWay(_ effects: inout Effects) {
    guard way.isNews else { return }
    way.isNews = false
    way.storing = way.odometer.total
    effects.append(.store(key: "odometer", way.odometer.stored))
  }

  mutating func wayStored(_ failure: String?, _ effects: inout Effects) {
    guard let metres = way.storing else { return }
    way.storing = nil
    if failure == nil { publish(.totalDistance, .float(Double(metres) / 1000), &effects) } else { way.isNews = true }
  }
}
