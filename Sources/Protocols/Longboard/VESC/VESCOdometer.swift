// The distance since the VESC was switched on, and the total distance. Firmware 5.02 and later has an odometer. For older firmware the
// counters since power-on are accumulated and stored; the total is published after it is stored.

struct VESCOdometer: Sendable {
  private static let key = "odometer"
  private static let storeInterval: Nanoseconds = 5 * .second
  /// The maximum speed in m/s.
  private static let maxSpeed = 30.0

  /// The accumulated distance in metres; unused if the VESC has an odometer.
  private var counter = Odometer(maxCountsPerSecond: maxSpeed)
  /// Whether the accumulated distance has changed since it was last stored.
  private var hasUnstoredDistance = false
  private var storedAt: Instant = .min
  /// The value that is being stored.
  private var storing: Int?
  // The last counters: a decrease shows that the VESC has restarted.
  private var uptime: Int?
  private var travelled: Int?

  /// Metres accumulated from the counters of VESCs without an odometer.
  var total: Int { counter.total }

  mutating func restore(_ values: [String: [UInt8]], _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    guard let stored = values[Self.key] else { return }
    if Odometer.isCorrupt(stored) { effects.append(.event(name: "total-distance-lost", text: Odometer.damagedMessage)) }
    counter = Odometer(stored: stored, maxCountsPerSecond: Self.maxSpeed)
    publisher.publish(.totalDistance, .float(Double(total) / 1000), &effects)
  }

  /// Handles the counters of a response. Returns whether the VESC has restarted since the last response. `lacksSetupValues`: the firmware
  /// does not support GET_VALUES_SETUP, so it reports only the counters of one motor.
  mutating func read(
    _ values: VESCValues, _ drivetrain: VESCDrivetrain, lacksSetupValues: Bool, at now: Instant, _ publisher: inout VESCPublisher,
    _ effects: inout Effects
  ) -> Bool {
    // The tachometer counts sixths of an electrical revolution.
    let metresPerStep = drivetrain.metresPerElectricalRevolution.map { $0 / 6 }
    if let distance = values[.distance] {
      publisher.publish(.distance, .float((Double(distance) / 1000).rounded() / 1000), &effects)
    } else if lacksSetupValues {
      let metres = metresPerStep.flatMap { step in values[.tachometer].map { (Double($0) * step).rounded() } }
      publisher.publish(.distance, metres.map { .float($0 / 1000) }, &effects)
    }
    if let metres = values[.odometer] {
      publisher.publish(.totalDistance, .float(Double(metres) / 1000), &effects)
    } else if let travelled = values[.distanceTravelled], travelled >= 0 {
      accumulate(travelled / 1000, at: now, &effects)
    } else if lacksSetupValues, let metresPerStep, let steps = values[.tachometerTravelled], steps >= 0 {
      accumulate(Int(Double(steps) * metresPerStep), at: now, &effects)
    } else if lacksSetupValues, metresPerStep == nil, total == 0 {
      publisher.withdraw(.totalDistance, unconfigured: drivetrain.missing, &effects)
    }
    guard hasRestarted(values) else { return false }
    effects.append(.event(name: "vesc-restarted", text: "the VESC has restarted"))
    return true
  }

  /// Discards the last counters, because another VESC may respond next.
  mutating func forgetCounters() { (uptime, travelled) = (nil, nil) }

  /// Stores a new value immediately.
  mutating func store(_ effects: inout Effects) {
    guard hasUnstoredDistance else { return }
    hasUnstoredDistance = false
    storing = total
    effects.append(.store(key: Self.key, counter.stored))
  }

  mutating func stored(_ key: String, _ failure: String?, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    guard key == Self.key, let metres = storing else { return }
    storing = nil
    if failure == nil { publisher.publish(.totalDistance, .float(Double(metres) / 1000), &effects) } else { hasUnstoredDistance = true }
  }

  private mutating func accumulate(_ metres: Int, at now: Instant, _ effects: inout Effects) {
    if counter.update(metres, at: now) { hasUnstoredDistance = true }
    if storedAt == .min || now &- storedAt >= Self.storeInterval {
      storedAt = now
      store(&effects)
    }
  }

  private mutating func hasRestarted(_ values: VESCValues) -> Bool {
    var hasRestarted = false
    if let uptime = values[.uptime] {
      if let last = self.uptime, uptime < last { hasRestarted = true }
      self.uptime = uptime
    }
    if let travelled = values[.tachometerTravelled] {
      if let last = self.travelled, travelled < last { hasRestarted = true }
      self.travelled = travelled
    }
    // The two counters arrive in different responses. Replace both, so that one restart is not detected twice.
    if hasRestarted { (uptime, travelled) = (values[.uptime], values[.tachometerTravelled]) }
    return hasRestarted
  }
}
