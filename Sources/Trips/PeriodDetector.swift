// Detects trips, charges and parked periods from the values of one device. The same code handles live values and a recorded year: it reads
// no clock, and its memory use is bounded. Filters and sums are in Meter, the periods in PeriodBook.

/// Detects the periods of one device.
///
/// Pass all samples in chronological order, and call `advance(to:)` regularly while none arrive. The end of a period depends only on the
/// times that are passed, not on when these calls are made. To continue after a restart, pass the samples since the start of the earliest
/// open period.
public struct PeriodDetector: Sendable {
  public let rules: PeriodRules
  private var now: Int64?
  private var meter = Meter(time: 0)
  private var motion: Motion
  private var charging = ChargeDetection()
  private var book: PeriodBook
  private var gap: Gap?
  private var rest = Rest()
  /// The time of the last value from the vehicle itself, rather than a device state.
  private var lastDataAt: Int64?
  /// The totals when the vehicle was switched on, or began to respond: a trip starts here if the vehicle moves soon after.
  private var readyAt: Totals?
  private var reportedAt = Int64.min

  public init(rules: PeriodRules = PeriodRules()) {
    self.rules = rules
    motion = Motion(movingSpeed: rules.movingSpeed)
    book = PeriodBook(rules)
  }

  /// The open periods as of now.
  public var openPeriods: [Period] { book.openPeriods(meter) }

  /// Handles a sample. A sample earlier than the last one is a clock step, which ends all periods.
  public mutating func add(_ sample: Sample) -> [Change] {
    let time = sample.time
    // Accept only finite values, and times that cannot overflow a calculation.
    guard time.magnitude < 1 << 61, sample.value?.isFinite ?? true else { return [] }
    if time != now { start(time) }
    if sample.role == .state {
      noteState(sample, time)
    } else {
      if sample.value != nil { noteData(time) }
      handle(sample, time)
    }
    return book.takeChanges()
  }

  /// Advances to a time. This can end periods, and reports open ones when they are due.
  public mutating func advance(to time: Int64) -> [Change] {
    if let now, time > now, time - now <= Limits.clockStep { start(time) }
    return book.takeChanges()
  }

  /// Returns the open periods, which stay open.
  public mutating func finish() -> [Change] {
    book.storeOpen(meter)
    return book.takeChanges()
  }

  // MARK: Time

  private mutating func start(_ time: Int64) {
    guard let now else {
      meter.advance(to: time)
      (now, reportedAt) = (time, time)
      return book.startParking(meter.totals, marks: .startUnknown, meter)
    }
    if time < now || time - now > Limits.clockStep { return stepClock(to: time) }
    self.now = time
    meter.advance(to: time)
    endPeriods(time)
    if time - reportedAt >= rules.updateInterval {
      reportedAt = time
      book.storeOpen(meter)
    }
  }

  private mutating func endPeriods(_ time: Int64) {
    if let lastMotion = book.lastMotionAt {
      let isLost = motion.isLost(at: time)
      let hasTimedOut = isLost && time - max(motion.knownAt, lastMotion) >= rules.dataTimeout
      if hasTimedOut || time - lastMotion > rules.tripPause && motion.userHasLeft(at: time, lastMotion: lastMotion, rules) {
        book.endTrip(isSuspended: isLost, meter)
      }
    }
    if let lastCharging = book.lastChargingAt, time - lastCharging > rules.chargePause {
      let hasData = lastDataAt.map { time - $0 <= Limits.gap } ?? false
      if !hasData || !charging.isPlugged { book.endCharge(isSuspended: !hasData, meter) }
    }
  }

  private mutating func stepClock(to time: Int64) {
    book.endAll(meter.totals, meter)
    motion.restart()
    charging.interrupt()
    (gap, readyAt, lastDataAt) = (nil, nil, nil)
    rest.forget()
    meter.forgetReadings()
    meter.advance(to: time)
    (now, reportedAt) = (time, time)
    book.startParking(meter.totals, marks: .startUnknown, meter)
  }

  // MARK: Values

  private mutating func noteState(_ sample: Sample, _ time: Int64) {
    let (wasResponding, old) = (motion.isResponding, motion.device)
    _ = motion.update(sample.role, sample.value, at: time)
    rest.update(old, motion.device, at: time, lastDataAt: lastDataAt)
    if !wasResponding, motion.isResponding, isReadyOutdated(at: time) { readyAt = meter.totals }
  }

  private func isReadyOutdated(at time: Int64) -> Bool { readyAt.map { time - $0.time > rules.tripPause } ?? true }

  /// Handles the arrival of data, which can end a gap.
  @inline(__always)
  private mutating func noteData(_ time: Int64) {
    if let lastDataAt, time - lastDataAt > Limits.gap { endGap(since: lastDataAt) }
    lastDataAt = time
  }

  private mutating func endGap(since lastDataAt: Int64) {
    charging.interrupt()
    if book.lastMotionAt != nil { return book.noteGap() }
    var before = meter.known
    let restEnd = rest.end(after: lastDataAt)
    before.time = restEnd ?? lastDataAt
    meter.forgetReadings()
    // The vehicle may have begun to respond shortly before its first value.
    if let ready = readyAt, ready.time <= lastDataAt { readyAt = nil }
    readyAt?.forgetReadings()
    var resumed = meter.totals
    if restEnd != nil {
      book.forgetSuspendedTrip()
      resumed.time = rest.resumption ?? resumed.time
    }
    gap = Gap(after: gap, before: before, resumed: resumed, endsParked: restEnd != nil && rest.resumption != nil)
  }

  @inline(__always)
  private mutating func handle(_ sample: Sample, _ time: Int64) {
    let (knownAt, wasMoving, ignition, speed) = (motion.knownAt, motion.state == .moving, motion.ignition, motion.currentSpeed)
    if motion.update(sample.role, sample.value, at: time) {
      measureMotion(since: knownAt, wasMoving, speed, time)
      move(time)
    } else if sample.role == .ignition, motion.ignition == true, ignition != true {
      readyAt = meter.totals
    }
    meter.update(sample.role, sample.value, isStationary: motion.state == .stationary, at: time)
    if meter.hasNewReading { noteReading(sample.role) }
    if charging.update(sample.role, sample.value, hasCurrent: meter.usesCurrent(at: time)) { noteCharging(time) }
  }

  private mutating func measureMotion(since knownAt: Int64, _ wasMoving: Bool, _ speedBefore: Double?, _ time: Int64) {
    if knownAt > .min {
      let elapsed = time - knownAt
      if elapsed <= Limits.sampleAge {
        if wasMoving { meter.addDriven(elapsed) }
      } else {
        meter.addUnknown(elapsed, speed: max(speedBefore ?? 0, motion.currentSpeed ?? 0))
        // The unknown time precedes the moment when the vehicle began to respond.
        readyAt?.addUnknown(of: meter.totals)
      }
    }
    if let speed = motion.currentSpeed { meter.addSpeed(speed, at: time) }
  }

  private mutating func move(_ time: Int64) {
    guard let since = motion.movingSince else { return }
    if book.lastMotionAt == nil {
      if since == time, isReadyOutdated(at: time) { readyAt = meter.totals }
      guard time - since >= rules.movingTime else { return }
      if gap == nil { book.forgetSuspendedTrip() }
      book.startTrip(readyAt ?? meter.totals, motion: meter.totals, meter)
      charging.interrupt()
    }
    book.move(meter.totals, speed: motion.currentSpeed, ignition: motion.ignition)
    readyAt = nil
  }

  private mutating func noteReading(_ role: Role) {
    meter.hasNewReading = false
    let totals = meter.totals
    book.fill(from: totals)
    charging.fill(from: totals)
    readyAt?.fill(from: totals)
    guard gap != nil else { return }
    gap?.resumed.fill(from: totals)
    switch role {
    case .odometer: compareOdometer()
    case .stateOfCharge, .displayedStateOfCharge: compareCharge()
    default: break
    }
  }

  private mutating func noteCharging(_ time: Int64) {
    let isStationary = motion.state == .stationary && !motion.isLost(at: time) && !motion.isEngineOrMotorTurning(at: time)
    guard charging.indicatesCharge(current: meter.current, isStationary: isStationary, rules.chargingCurrentThreshold) else {
      return charging.stop()
    }
    // An open charge continues without confirmation.
    let isCertain = charging.confirm(meter, stationaryTime: motion.stationaryTime(at: time), at: time, rules)
    if book.lastChargingAt == nil {
      guard isCertain, let onset = charging.onset else { return }
      book.startCharge(onset, charging, meter)
    }
    book.charge(charging, meter, peakPower: meter.power.map { -$0 })
  }

  // MARK: Runs

  /// The run of current and voltage that begins with a sample at this time; nil if this sample does more than to add energy. `current` is
  /// its current in A, nil if it is a voltage.
  func powerRun(from time: Int64, current: Double?) -> PowerRun? {
    // The sample must neither end a gap nor be a clock step.
    guard let now, let lastDataAt, time >= now, time - lastDataAt <= Limits.gap, motion.state != .unknown,
      let current = current ?? meter.current
    else { return nil }
    let isStationary = motion.state == .stationary
    let threshold = charging.isReported.map { $0 ? .infinity : -.infinity } ?? (isStationary ? rules.chargingCurrentThreshold : -.infinity)
    var activity = isStationary ? PowerRun.Activity.idle : .moving
    if PowerRun.indicatesCharge(current, threshold) {
      guard isStationary, book.lastChargingAt != nil, charging.onset != nil, !motion.isEngineOrMotorTurning(at: now) else { return nil }
      activity = .charging
    }
    return PowerRun(activity: activity, isStationary: isStationary, end: motion.knownAt + Limits.sampleAge, threshold: threshold)
  }

  /// Adds a sample of a run.
  @inline(__always)
  mutating func addPower(_ role: Role, _ number: Double, at time: Int64, _ run: inout PowerRun) {
    if role == .batteryCurrent {
      meter.updateCurrent(number, isStationary: run.isStationary, at: time)
    } else {
      meter.updateVoltage(number, isStationary: run.isStationary, at: time)
    }
    if run.activity == .charging, let power = meter.power { run.peakPower = max(run.peakPower ?? -power, -power) }
  }

  /// Ends a run with its last sample.
  mutating func finish(_ run: PowerRun, at time: Int64) -> [Change] {
    lastDataAt = time
    if time != now { start(time) }
    if run.activity == .charging {
      book.charge(charging, meter, peakPower: run.peakPower)
    } else {
      charging.stop()
    }
    return book.takeChanges()
  }

  // MARK: Gaps

  private mutating func compareOdometer() {
    guard var found = gap else { return }
    switch found.compareOdometer(meter, rules) {
    case .unknown: gap = found
    case .unchanged:
      gap = nil
      book.forgetSuspendedTrip()
    case .driven:
      gap = nil
      book.addDrive(from: found.before, to: found.resumed, meter)
    case .drivenAndParked:
      gap = nil
      book.insertTrip(from: found.before, to: found.resumed, meter)
    }
  }

  /// Compares the state of charge before and after a gap, unless the vehicle has been driven since.
  private mutating func compareCharge() {
    guard let found = gap, !found.hasComparedCharge, book.lastMotionAt == nil else { return }
    guard let rise = meter.totals.chargeRise(since: found.beforeLatest) else { return }
    gap?.hasComparedCharge = true
    book.addCharge(rise: rise, since: found.beforeLatest, meter)
  }
}
