// A time without values from the vehicle, during which it may have been used. The odometer shows this, but is read only once a minute, and
// the first reading may be a cached one from before the gap.

struct Gap: Sendable {
  /// The totals before the gap.
  let before: Totals
  /// The totals before the latest of several gaps.
  let beforeLatest: Totals
  /// The totals when values arrived again.
  var resumed: Totals
  var hasComparedCharge = false
  /// Whether the vehicle was parked when values arrived again.
  private let endsParked: Bool
  private var odometerReadings = 0

  /// What the odometer shows.
  enum Finding {
    case unknown, unchanged
    /// The vehicle was driven through the gap.
    case driven
    /// It was driven, and parked.
    case drivenAndParked
  }

  /// Creates a gap, which may follow another one that is not resolved yet.
  init(after other: Gap?, before: Totals, resumed: Totals, endsParked: Bool) {
    self.before = other?.before ?? before
    (beforeLatest, self.resumed, self.endsParked) = (before, resumed, endsParked)
  }

  /// Compares a new reading of the odometer with the one before the gap.
  mutating func compareOdometer(_ meter: Meter, _ rules: PeriodRules) -> Finding {
    let minDistance = max(2 * meter.odometer.resolution, 0.5)
    guard let distance = meter.totals.unexplainedDistance(since: before), distance >= minDistance, var reading = meter.totals.odometer
    else {
      odometerReadings += 1
      return odometerReadings < 2 ? .unknown : .unchanged
    }
    // Compute the odometer at the time when values resumed, by subtracting the distance driven since then.
    let since = reading.distance - resumed.distance
    (reading.total, reading.reported) = (reading.total - since, reading.reported - since)
    (reading.distance, reading.unknownTime) = (resumed.distance, resumed.unknownTime)
    resumed.odometer = reading
    let elapsed = resumed.time - before.time
    let isDriven = elapsed <= rules.dataTimeout || distance / (Double(elapsed) / 3.6e9) >= Limits.minGapSpeed
    return isDriven && !endsParked ? .driven : .drivenAndParked
  }
}
