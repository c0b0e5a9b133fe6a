// Decides when the voltage is measured, how long polling pauses, whether the adapter sleeps meanwhile, and which state is published. During
// a pause the vehicle is probed: the voltage is measured and, if it allows, one request is sent. A response resumes polling.

struct SleepPolicy: Sendable {
  /// The lengths of consecutive pauses, in s; the last length is used for all later pauses.
  private static let pauseSeconds: [Int64] = [1, 2, 5, 10, 30, 60]
  /// The duration of a voltage measurement.
  private static let measurementDuration: Nanoseconds = 15 * .millisecond
  /// A measurement that is overdue by this much is taken even if it delays the next poll.
  private static let maxMeasurementDelay: Nanoseconds = 5 * .second

  /// The conditions under which polling pauses although the vehicle responds, or nil if there are none.
  private var conditions: PauseConditions?
  /// Whether polling is paused, except for probes.
  private(set) var isProbing = false
  /// Whether the signs of use and the voltage have been read since the last pause began.
  private(set) var isReviewed = false
  /// The number of pauses since the last response.
  private(set) var pauses = 0

  /// A pause of polling.
  struct Pause {
    let length: Nanoseconds
    let status: ValueTable.DeviceStatus
    /// Why polling is paused, and until when; nil for a short pause.
    let message: String?
  }

  init(_ conditions: PauseConditions?) { self.conditions = conditions }

  /// Whether polling pauses for a parked vehicle or a low battery.
  var isActive: Bool { conditions != nil }

  mutating func linkCameUp() {
    (isProbing, pauses) = (false, 0)
    conditions?.reset()
  }

  /// Resets the number of pauses, because the vehicle has responded.
  mutating func resetPauses() { pauses = 0 }
  mutating func endProbing() { isProbing = false }
  /// Returns whether the signs of use and the voltage must be read before polling pauses again. An adapter that measures the voltage sees
  /// by it that the vehicle is in use; without one, the response to a probe may contain no sign of it.
  mutating func beginReview(_ traits: AdapterTraits) -> Bool {
    guard isProbing, !isReviewed, !traits.reportsVoltage else { return false }
    isReviewed = true
    return true
  }
  /// Records that the vehicle is driven or charged, or its ignition is on.
  mutating func recordUse(at now: Instant) { conditions?.recordUse(at: now) }

  // MARK: Voltage

  /// Whether a measurement is due and fits into `gap`, the time before the next poll. The first measurement, and one that is long overdue,
  /// need not fit.
  func isMeasurementDue(at now: Instant, gap: Nanoseconds) -> Bool {
    guard let conditions, now >= conditions.measurementDue else { return false }
    let delay = now &- conditions.measurementDue
    return gap >= Self.measurementDuration || conditions.measurementDue == .min || delay >= Self.maxMeasurementDelay
  }

  /// Records a measured voltage in V, or nil if there is none.
  mutating func recordVoltage(_ volts: Double?, at now: Instant) { conditions?.recordVoltage(volts, at: now) }

  /// Returns the pause for a low battery, or nil if the battery is not low.
  mutating func pauseIfLow(at now: Instant, _ traits: AdapterTraits) -> Pause? {
    guard conditions?.checkLow(at: now) ?? false, let conditions else { return nil }
    return Pause(length: conditions.probeInterval, status: pausedStatus(.carAsleep, traits), message: conditions.lowMessage)
  }

  // MARK: Pauses

  /// Returns the pause for a vehicle that is not in use, so that it can fall asleep, or nil if it is in use.
  mutating func pauseIfIdle(at now: Instant, _ traits: AdapterTraits) -> Pause? {
    guard conditions?.checkIdle(at: now) ?? false, let conditions else { return nil }
    return Pause(length: conditions.probeInterval, status: pausedStatus(.parked, traits), message: conditions.idleMessage)
  }

  /// Returns the pause for a vehicle that does not respond, and counts it. Each pause is longer than the previous one, up to
  /// `probeInterval`, or up to 60 s without `conditions`.
  mutating func pauseForSilence(_ traits: AdapterTraits) -> Pause {
    guard let conditions else { return Pause(length: countPause(), status: .carSilent, message: nil) }
    guard pauses >= Self.pauseSeconds.prefix(while: { $0 * .second < conditions.probeInterval }).count else {
      return Pause(length: countPause(), status: silentStatus, message: nil)
    }
    pauses += 1
    return Pause(length: conditions.probeInterval, status: pausedStatus(silentStatus, traits), message: conditions.probeMessage)
  }

  /// Counts a pause, and returns its length.
  mutating func countPause() -> Nanoseconds {
    let seconds = Self.pauseSeconds[min(pauses, Self.pauseSeconds.count - 1)]
    pauses += 1
    return seconds * .second
  }

  /// Begins a pause of this length. Returns whether the adapter may sleep meanwhile.
  mutating func beginPause(_ length: Nanoseconds, _ traits: AdapterTraits) -> Bool {
    (isProbing, isReviewed) = (true, false)
    return usesLowPower(length, traits)
  }

  /// Whether the adapter enters low power mode during a pause of this length.
  private func usesLowPower(_ length: Nanoseconds, _ traits: AdapterTraits) -> Bool {
    conditions.map { $0.usesLowPower && traits.canSleep && length >= $0.probeInterval } ?? false
  }

  /// The state of a vehicle that does not respond, derived from the voltage.
  var silentStatus: ValueTable.DeviceStatus {
    guard let conditions, conditions.volts != nil else { return .carSilent }
    return !conditions.isInVehicle ? .noCar : conditions.isCharging ? .carSilent : .carAsleep
  }

  /// The state while polling is paused.
  private func pausedStatus(_ status: ValueTable.DeviceStatus, _ traits: AdapterTraits) -> ValueTable.DeviceStatus {
    usesLowPower(conditions?.probeInterval ?? 0, traits) ? .adapterAsleep : status
  }
}
