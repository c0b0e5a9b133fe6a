// Decides when to leave the vehicle alone: when the voltage is measured, how long a pause is, whether the adapter sleeps meanwhile, and which
// state is shown. A probe is a measurement and, if the voltage allows, one request; a response resumes polling.

struct SleepPolicy: Sendable {
  private static let pauseSeconds: [Int64] = [1, 2, 5, 10, 30, 60]
  private static let measureTakes: Nanoseconds = 15 * .millisecond
  /// The maximum age of a measurement before it is forced.
  private static let measureLatest: Nanoseconds = 5 * .second

  /// When to pause polling; nil: never.
  private var care: CarCare?
  /// Polling is paused, except for probes.
  private(set) var isProbing = false
  /// Consecutive pauses without a response.
  private(set) var pauses = 0

  /// A pause of polling.
  struct Pause {
    let length: Nanoseconds
    let status: ValueTable.StatusWord
    /// What happens meanwhile; nil: a short pause.
    let message: String?
  }

  init(_ care: CarCare?) { self.care = care }

  /// Polling pauses for a parked vehicle or a low battery.
  var isActive: Bool { care != nil }

  mutating func linkCameUp() {
    (isProbing, pauses) = (false, 0)
    care?.begin()
  }

  /// The vehicle responds.
  mutating func answered() { pauses = 0 }
  mutating func endProbing() { isProbing = false }
  mutating func vehicleUsed(at now: Instant) { care?.isUsed(at: now) }

  // MARK: Voltage

  /// Whether a measurement is due and fits into the time before the next poll.
  func wantsVoltage(at now: Instant, room: Nanoseconds) -> Bool {
    guard let care, now >= care.due else { return false }
    return room >= Self.measureTakes || care.due == .min || now &- care.due >= Self.measureLatest
  }

  /// Takes a measured voltage; nil: there is none.
  mutating func measured(_ volts: Double?, at now: Instant) { care?.measured(volts, at: now) }

  /// The pause while the battery is low.
  mutating func pauseIfLow(at now: Instant, _ traits: AdapterTraits) -> Pause? {
    guard care?.isLow(at: now) ?? false, let care else { return nil }
    return Pause(length: care.pause, status: pausedStatus(.carAsleep, traits), message: care.lowWords)
  }

  // MARK: Pauses

  /// The pause for an unused vehicle, so that it can fall asleep.
  mutating func pauseIfIdle(at now: Instant, _ traits: AdapterTraits) -> Pause? {
    guard care?.isIdle(at: now) ?? false, let care else { return nil }
    return Pause(length: care.pause, status: pausedStatus(.parked, traits), message: care.idleWords)
  }

  /// The pause for a vehicle that does not respond. Pauses grow.
  mutating func pauseIfSilent(_ traits: AdapterTraits) -> Pause {
    guard let care else { return Pause(length: nextLength(), status: .carSilent, message: nil) }
    guard pauses >= Self.pauseSeconds.prefix(while: { $0 * .second < care.pause }).count else {
      return Pause(length: nextLength(), status: silentStatus, message: nil)
    }
    pauses += 1
    return Pause(length: care.pause, status: pausedStatus(silentStatus, traits), message: care.pauseWords)
  }

  mutating func nextLength() -> Nanoseconds {
    let seconds = Self.pauseSeconds[min(pauses, Self.pauseSeconds.count - 1)]
    pauses += 1
    return seconds * .second
  }

  /// Polling pauses for this long. Returns whether the adapter may sleep meanwhile.
  mutating func beginPause(_ length: Nanoseconds, _ traits: AdapterTraits) -> Bool {
    isProbing = true
    return sleepsAdapter(length, traits)
  }

  private func sleepsAdapter(_ length: Nanoseconds, _ traits: AdapterTraits) -> Bool {
    care.map { $0.sleepsAdapter && traits.canSleep && length >= $0.pause } ?? false
  }

  /// The state of a vehicle that does not respond, by its voltage.
  var silentStatus: ValueTable.StatusWord {
    guard let care, care.volts != nil else { return .carSilent }
    return !care.isInVehicle ? .noCar : care.isCharging ? .carSilent : .carAsleep
  }

  /// The state while polling is paused.
  private func pausedStatus(_ word: ValueTable.StatusWord, _ traits: AdapterTraits) -> ValueTable.StatusWord {
    sleepsAdapter(care?.pause ?? 0, traits) ? .adapterAsleep : word
  }
}
