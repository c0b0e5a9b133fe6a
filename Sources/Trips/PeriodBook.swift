// The open periods of a device and their transitions. A trip or a parked period is always open; a charge lies within a parked period.
// PeriodDetector decides when they start and end.

struct PeriodBook: Sendable {
  private var trip: OpenTrip?
  private var parking: OpenParking?
  private var charge: OpenCharge?
  /// A trip or charge that ended for lack of data. It resumes if later data shows that it continued.
  private var suspendedTrip: OpenTrip?
  private var suspendedCharge: OpenCharge?
  /// The parked period before the trip; restored if the trip turns out to be too short.
  private var previousParking: OpenParking?
  /// The end and the journey of the last trip.
  private var lastTrip: (end: Int64, journey: Int64)?
  private var changes: [Change] = []
  private var nextID = 1
  private let rules: PeriodRules

  init(_ rules: PeriodRules) { self.rules = rules }

  /// When the vehicle last moved; nil if there is no open trip.
  var lastMotionAt: Int64? { trip?.lastMotion.time }
  /// When the vehicle was last charging; nil if there is no open charge.
  var lastChargingAt: Int64? { charge?.last.time }

  /// Returns the changes since the last call.
  mutating func takeChanges() -> [Change] {
    guard !changes.isEmpty else { return [] }
    defer { changes.removeAll(keepingCapacity: true) }
    return changes
  }

  private mutating func newID() -> Int {
    defer { nextID += 1 }
    return nextID
  }

  private mutating func store(_ period: Period) { changes.append(.stored(period)) }

  /// The open periods as of now.
  func openPeriods(_ meter: Meter) -> [Period] {
    [
      trip?.period(isClosed: false, meter, rules), parking?.period(end: nil, meter, rules),
      charge?.period(isClosed: false, meter, rules),
    ].compactMap { $0 }
  }

  mutating func storeOpen(_ meter: Meter) { for period in openPeriods(meter) { store(period) } }

  /// Fills in readings that were missing at the start of the open periods.
  mutating func fill(from totals: Totals) {
    trip?.start.fill(from: totals)
    parking?.start.fill(from: totals)
    charge?.start.fill(from: totals)
  }

  // MARK: Parked periods

  mutating func startParking(_ start: Totals, marks: Period.Marks = [], _ meter: Meter) {
    let new = OpenParking(id: newID(), start: start, marks: marks)
    parking = new
    store(new.period(end: nil, meter, rules))
  }

  private mutating func endParking(_ end: Totals, marks: Period.Marks = [], _ meter: Meter) {
    guard var old = parking else { return }
    parking = nil
    old.marks.formUnion(marks)
    if end.time > old.start.time {
      var end = end
      end.fill(from: meter.known)
      previousParking = old
      store(old.period(end: end, meter, rules))
    } else {
      previousParking = nil
      changes.append(.removed(old.id))
    }
  }

  // MARK: Trips

  /// Starts a trip, but not before the end of the previous trip or of the open charge.
  mutating func startTrip(_ start: Totals, motion: Totals, _ meter: Meter) {
    var start = start
    if let charge, start.time < charge.last.time { start = charge.last }
    endCharge(isSuspended: false, meter)
    suspendedCharge = nil
    if let parking, start.time < parking.start.time { start = parking.start }
    endParking(start, meter)
    let journey = lastTrip.flatMap { start.time - $0.end <= rules.journeyBreak ? $0.journey : nil } ?? start.time
    let new = OpenTrip(id: newID(), start: start, lastMotion: motion, journey: journey)
    trip = new
    store(new.period(isClosed: false, meter, rules))
  }

  /// Handles a sample that shows motion with this speed in km/h.
  @inline(__always)
  mutating func move(_ totals: Totals, speed: Double?, ignition: Bool?) {
    trip?.move(totals, speed: speed, ignition: ignition, rules.minPause)
  }

  mutating func noteGap() { trip?.hasGap = true }

  /// Ends the trip at its last motion, where a parked period starts.
  mutating func endTrip(isSuspended: Bool, _ meter: Meter) {
    guard let old = trip else { return }
    trip = nil
    let period = old.period(isClosed: true, meter, rules)
    if isTooShort(period) {
      changes.append(.removed(old.id))
      if let parking = previousParking {
        self.parking = parking
        store(parking.period(end: nil, meter, rules))
      } else {
        startParking(old.start, meter)
      }
    } else {
      store(period)
      lastTrip = (old.lastMotion.time, old.journey)
      suspendedTrip = isSuspended ? old : nil
      var start = old.lastMotion
      if let end = period.statistics.odometer.end, meter.totals.odometer?.reported == end { start.odometer = meter.totals.odometer }
      startParking(start, meter)
    }
    previousParking = nil
  }

  private func isTooShort(_ period: Period) -> Bool {
    guard let distance = period.statistics.distance else { return period.statistics.drivenTime < rules.minPause }
    return distance.value < rules.minTripDistance
  }

  /// Adds a drive that lasted throughout the gap between two snapshots.
  mutating func addDrive(from start: Totals, to end: Totals, _ meter: Meter) {
    if suspendedTrip != nil {
      resumeTrip(until: end, meter)
    } else if trip != nil {
      extendTrip(backTo: start, meter)
    } else {
      insertTrip(from: start, to: end, meter)
    }
  }

  /// Resumes the suspended trip, which continued during the gap. The parked period and any trip since then become part of it.
  private mutating func resumeTrip(until resumed: Totals, _ meter: Meter) {
    guard var old = suspendedTrip else { return }
    old.marks.insert(.interrupted)
    if let parking { changes.append(.removed(parking.id)) } else if let previousParking { changes.append(.removed(previousParking.id)) }
    (parking, previousParking, suspendedTrip) = (nil, nil, nil)
    if let later = trip {
      old.append(later)
      changes.append(.removed(later.id))
    } else {
      old.lastMotion = resumed
      old.hasGap = true
    }
    trip = old
    store(old.period(isClosed: false, meter, rules))
  }

  /// Moves the start of the trip back to `start`, because the trip began in the gap before it.
  private mutating func extendTrip(backTo start: Totals, _ meter: Meter) {
    guard var current = trip else { return }
    if let old = previousParking {
      if start.time > old.start.time { store(old.period(end: start, meter, rules)) } else { changes.append(.removed(old.id)) }
    }
    if current.journey == current.start.time { current.journey = start.time }
    current.start = start
    current.marks.insert(.interrupted)
    trip = current
    store(current.period(isClosed: false, meter, rules))
  }

  /// Inserts a trip between two snapshots without data in between. The parked period ends before it, and another one starts after it.
  mutating func insertTrip(from start: Totals, to end: Totals, _ meter: Meter) {
    if let later = trip {
      // The parked period before the current trip was actually two.
      if let old = previousParking {
        if start.time > old.start.time { store(old.period(end: start, meter, rules)) } else { changes.append(.removed(old.id)) }
      }
      if later.start.time > end.time {
        let between = OpenParking(id: newID(), start: end)
        previousParking = between
        store(between.period(end: later.start, meter, rules))
      } else {
        previousParking = nil
      }
      // The odometer reading from before the gap does not apply to the start of the current trip.
      var current = later
      current.start.odometer = end.odometer
      trip = current
    } else {
      endParking(start, meter)
      previousParking = nil
      startParking(end, meter)
    }
    suspendedTrip = nil
    let journey = lastTrip.flatMap { start.time - $0.end <= rules.journeyBreak ? $0.journey : nil } ?? start.time
    let new = OpenTrip(id: newID(), start: start, lastMotion: end, marks: .unrecorded, journey: journey)
    if trip == nil { lastTrip = (end.time, journey) }
    var period = new.period(isClosed: true, meter, rules)
    period.statistics.unknownTime = end.time - start.time
    (period.statistics.drivenTime, period.statistics.standingTime) = (0, 0)
    store(period)
  }

  mutating func forgetSuspendedTrip() { suspendedTrip = nil }

  // MARK: Charges

  /// Starts a charge, or continues the suspended one. A charge ends the trip.
  mutating func startCharge(_ onset: ChargeOnset, _ detection: ChargeDetection, _ meter: Meter) {
    endTrip(isSuspended: false, meter)
    if var old = suspendedCharge {
      let rise = meter.totals.chargeRise(since: old.last) ?? 0
      if onset.start.time - old.last.time <= rules.chargePause || rise >= Limits.continuedChargeRise {
        old.marks.insert(.interrupted)
        old.start(onset, meter, rules)
        (charge, suspendedCharge) = (old, nil)
        return store(old.period(isClosed: false, meter, rules))
      }
    }
    suspendedCharge = nil
    var new = OpenCharge(id: newID(), start: onset.start, marks: detection.isDerived ? .derived : [])
    new.start(onset, meter, rules)
    charge = new
    store(new.period(isClosed: false, meter, rules))
  }

  /// Handles samples that show charging, with the highest power into the battery in kW.
  @inline(__always)
  mutating func charge(_ detection: ChargeDetection, _ meter: Meter, peakPower: Double?) {
    charge?.charge(meter, peakPower: peakPower, rules)
    if let type = detection.type { charge?.type = type }
  }

  /// Handles a rise of the state of charge during a gap: the charge continued until now, or there was an unrecorded one.
  mutating func addCharge(rise: Double, since before: Totals, _ meter: Meter) {
    if var old = charge ?? suspendedCharge {
      guard rise >= Limits.continuedChargeRise else { return }
      suspendedCharge = nil
      old.last = meter.totals
      old.marks.insert(.interrupted)
      charge = old
      store(old.period(isClosed: false, meter, rules))
    } else if rise >= Limits.unrecordedChargeRise {
      var new = OpenCharge(id: newID(), start: before, marks: [.derived, .unrecorded])
      new.last = meter.totals
      store(new.period(isClosed: true, meter, rules))
    }
  }

  mutating func endCharge(isSuspended: Bool, _ meter: Meter) {
    guard let old = charge else { return }
    charge = nil
    suspendedCharge = isSuspended ? old : nil
    store(old.period(isClosed: true, meter, rules))
  }

  /// Ends all periods at `end` because of a clock step.
  mutating func endAll(_ end: Totals, _ meter: Meter) {
    trip?.marks.insert(.clockStep)
    charge?.marks.insert(.clockStep)
    endCharge(isSuspended: false, meter)
    endTrip(isSuspended: false, meter)
    endParking(end, marks: .clockStep, meter)
    (suspendedTrip, suspendedCharge, previousParking, lastTrip) = (nil, nil, nil, nil)
  }
}
