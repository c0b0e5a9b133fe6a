// A time without values of the vehicle, in which it may have been used: the odometer shows that, but is read only once a minute, and the
// first reading can be one that was stored before the gap.

struct Gap: Sendable {
  /// Before the gap.
  let before: Totals
  /// Before the latest of several gaps.
  let latest: Totals
  /// When values arrived again.
  var returned: Totals
  var hasComparedCharge = false
  private var odometerReadings = 0

  /// What the odometer shows.
  enum Finding {
    case unknown, unchanged
    /// The vehicle was driven through the gap.
    case driven
    /// It was driven, and parked.
    case drivenAndParked
  }

  /// A gap after another one that is not explained yet.
  init(after other: Gap?, before: Totals, returned: Totals) {
    self.before = other?.before ?? before
    (latest, self.returned) = (before, returned)
  }

  /// Compares a new reading of the odometer with that before the gap.
  mutating func compareOdometer(_ meter: Meter, _ rules: PeriodRules) -> Finding {
    let minDistance = max(2 * meter.odometer.quantum, 0.5)
    guard let distance = meter.totals.unexplainedDistance(since: before), distance >= minDistance, var mark = meter.totals.odometer else {
      odometerReadings += 1
      return odometerReadings < 2 ? .unknown : .unchanged
    }
    // The odometer when values returned: what was driven since is known.
    let since = mark.distance - returned.distance
    (mark.total, mark.reported) = (mark.total - since, mark.reported - since)
    (mark.distance, mark.unknownTime) = (returned.distance, returned.unknownTime)
    returned.odometer = mark
    let elapsed = returned.time - before.time
    let isDriven = elapsed <= rules.dataTimeout || distance / (Double(elapsed) / 3.6e9) >= Limits.minGapSpeed
    return isDriven ? .driven : .drivenAndParked
  }
}
