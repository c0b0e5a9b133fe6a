// The open periods, as snapshots of the totals at their start and end, and their conversion to reported periods.

struct OpenTrip: Sendable {
  let id: Int
  var start: Totals
  /// The snapshot when the vehicle last moved.
  var lastMotion: Totals
  var marks: Period.Marks = []
  var journey: Int64
  var pauses: [Period.Pause] = []
  var maxSpeed: Double?
  var hasMovedWithIgnition = false
  /// Whether there has been a gap since the last motion; the stop then does not count as a pause. A trip that goes on after the gap is
  /// interrupted; one that ended at its last motion is not.
  var hasGap = false

  /// Handles a sample that shows motion.
  @inline(__always)
  mutating func move(_ totals: Totals, speed: Double?, ignition: Bool?, _ minPause: Int64) {
    if totals.time - lastMotion.time >= minPause, !hasGap, pauses.count < Limits.pauses {
      pauses.append(Period.Pause(start: lastMotion.time, end: totals.time))
    }
    if hasGap { marks.insert(.interrupted) }
    hasGap = false
    lastMotion = totals
    if let speed { maxSpeed = max(maxSpeed ?? 0, speed) }
    if ignition != false { hasMovedWithIgnition = true }
  }

  /// Appends a later trip that turned out to be part of this one.
  mutating func append(_ other: OpenTrip) {
    lastMotion = other.lastMotion
    marks.formUnion(other.marks)
    pauses += other.pauses.prefix(Limits.pauses - pauses.count)
    if let speed = other.maxSpeed { maxSpeed = max(maxSpeed ?? 0, speed) }
    hasMovedWithIgnition = hasMovedWithIgnition || other.hasMovedWithIgnition
  }

  /// The trip as reported. If it `isClosed`, it ended with the last motion.
  func period(isClosed: Bool, _ meter: Meter, _ rules: PeriodRules) -> Period {
    var end = isClosed ? lastMotion : meter.totals
    // The odometer is read only once a minute: a reading after the last motion also applies to the end of the trip.
    if let odometer = meter.totals.odometer, odometer.total >= end.odometer?.total ?? 0 { end.odometer = odometer }
    var period = Period(id: id, kind: .trip, start: start.time, end: isClosed ? end.time : nil)
    period.marks = marks
    if hasGap, !isClosed { period.marks.insert(.interrupted) }
    if !hasMovedWithIgnition, !marks.contains(.unrecorded) { period.marks.insert(.towed) }
    period.journey = journey
    period.pauses = pauses
    period.statistics = Summary(start, end, meter, rules).trip(maxSpeed: maxSpeed)
    return period
  }
}

struct OpenParking: Sendable {
  let id: Int
  var start: Totals
  var marks: Period.Marks = []

  func period(end: Totals?, _ meter: Meter, _ rules: PeriodRules) -> Period {
    var period = Period(id: id, kind: .parking, start: start.time, end: end?.time)
    period.marks = marks
    period.statistics = Summary(start, end ?? meter.totals, meter, rules).common()
    return period
  }
}

struct OpenCharge: Sendable {
  let id: Int
  var start: Totals
  /// The snapshot when the vehicle was last charging.
  var last: Totals
  var marks: Period.Marks = []
  var pauses: [Period.Pause] = []
  var type: Statistics.ChargeType?
  private var power = ChargingPower()
  private var curve: [Segment] = []
  private var segment: Totals

  /// The time and the charged energy at one percent of the state of charge.
  private struct Segment {
    var stateOfCharge: Int
    var time: Int64
    var energy: Double
  }

  init(id: Int, start: Totals, marks: Period.Marks) {
    (self.id, self.start, self.marks) = (id, start, marks)
    (last, segment) = (start, start)
  }

  /// Handles the onset of the charge, or of its continuation after a pause, once it is certain.
  mutating func start(_ onset: ChargeOnset, _ meter: Meter, _ rules: PeriodRules) {
    addPause(until: onset.start.time, rules)
    power.add(onset.power)
    last = meter.totals
  }

  /// Handles samples that show charging, with the highest power into the battery in kW.
  @inline(__always)
  mutating func charge(_ meter: Meter, peakPower: Double?, _ rules: PeriodRules) {
    let now = meter.totals.time
    addPause(until: now, rules)
    power.add(now - last.time, energy: meter.totals.energyIn - last.energyIn, peak: peakPower)
    last = meter.totals
    let soc = last.displayedStateOfCharge ?? last.stateOfCharge
    if let soc, let before = segment.displayedStateOfCharge ?? segment.stateOfCharge, Int(soc) == Int(before) { return }
    closeSegment()
  }

  /// Adds the time since the vehicle was last charging to the pauses if it is long enough.
  @inline(__always)
  private mutating func addPause(until time: Int64, _ rules: PeriodRules) {
    guard time - last.time > Limits.sampleAge, time - last.time >= rules.minPause, pauses.count < Limits.pauses else { return }
    pauses.append(Period.Pause(start: last.time, end: time))
  }

  private mutating func closeSegment() {
    if let new = segment(until: last) { Self.add(new, to: &curve) }
    segment = last
  }

  private func segment(until totals: Totals) -> Segment? {
    guard let soc = segment.displayedStateOfCharge ?? segment.stateOfCharge, totals.powerTime > segment.powerTime else { return nil }
    return Segment(stateOfCharge: Int(soc), time: totals.powerTime - segment.powerTime, energy: totals.energyIn - segment.energyIn)
  }

  private static func add(_ segment: Segment, to curve: inout [Segment]) {
    if let at = curve.firstIndex(where: { $0.stateOfCharge == segment.stateOfCharge }) {
      curve[at].time += segment.time
      curve[at].energy += segment.energy
    } else {
      curve.append(segment)
    }
  }

  /// The charge as reported. If it `isClosed`, it ended when the vehicle was last charging.
  func period(isClosed: Bool, _ meter: Meter, _ rules: PeriodRules) -> Period {
    var period = Period(id: id, kind: .charge, start: start.time, end: isClosed ? last.time : nil)
    period.marks = marks
    period.pauses = pauses
    let summary = Summary(start, last, meter, rules)
    var figures = summary.common()
    figures.charged = summary.energyIn
    figures.maxChargePower = power.max
    figures.chargingTime = power.time
    if last.powerTime > start.powerTime { figures.meanChargePower = power.mean }
    figures.chargeType = type ?? (power.max.map { $0 > Limits.maxACPower } == true ? .dc : nil)
    var curve = curve
    if let open = segment(until: last) { Self.add(open, to: &curve) }
    figures.chargeCurve = curve.sorted { $0.stateOfCharge < $1.stateOfCharge }.map {
      .init(stateOfCharge: $0.stateOfCharge, power: $0.energy / (Double($0.time) / 3.6e9))
    }
    period.statistics = figures
    return period
  }
}
