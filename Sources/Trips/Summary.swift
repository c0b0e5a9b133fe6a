// Computes the figures of a period from the snapshots at its start and end. Where both a counter and an integral exist, the integral is
// used, limited to the bounds of the counter: the integral has the finer resolution, and the counter has no gaps.

struct Summary {
  private let start: Totals
  private let end: Totals
  private let meter: Meter
  private let rules: PeriodRules

  /// The error of integrals relative to their value, due to sensors and sampling.
  private static let integralError = 0.03
  private static let airFlowError = 0.1
  /// The error of a fuel level relative to the tank, due to resolution and fuel slosh.
  private static let levelError = 0.03

  init(_ start: Totals, _ end: Totals, _ meter: Meter, _ rules: PeriodRules) {
    self.start = start
    self.end = end
    self.meter = meter
    self.rules = rules
  }

  private var duration: Int64 { end.time - start.time }

  /// The figures that every kind of period has.
  func common() -> Statistics {
    var figures = Statistics()
    figures.stateOfCharge = end.stateOfCharge(since: start)
    figures.odometer = .init(start.odometer?.reported, end.odometer?.reported)
    figures.fuelLevel = .init(start.fuelLevel, end.fuelLevel)
    figures.batteryTemperature = .init(start.batteryTemperature, end.batteryTemperature)
    figures.outdoorTemperature = .init(start.outdoorTemperature, end.outdoorTemperature)
    figures.energy = netEnergy
    return figures
  }

  /// The figures of a trip with this maximum speed in km/h.
  func trip(maxSpeed: Double?) -> Statistics {
    var figures = common()
    figures.distance = distance
    figures.unknownTime = min(end.unknownTime - start.unknownTime, duration)
    figures.drivenTime = min(end.drivenTime - start.drivenTime, duration - figures.unknownTime)
    figures.standingTime = duration - figures.unknownTime - figures.drivenTime
    figures.maxSpeed = maxSpeed
    let driven = end.distance - start.distance
    if maxSpeed != nil, figures.drivenTime > 0 { figures.meanSpeed = driven / (Double(figures.drivenTime) / 3.6e9) }
    figures.regenerated = energyIn
    if end.powerTime > start.powerTime { figures.standingEnergy = end.standingEnergy - start.standingEnergy }
    figures.energyPer100Kilometres = figures.energy?.per100Kilometres(figures.distance)
    figures.fuel = fuel
    figures.fuelPer100Kilometres = figures.fuel?.per100Kilometres(figures.distance)
    return figures
  }

  /// The distance of a trip. The odometer is not read exactly at the start and the end.
  var distance: Quantity? {
    let driven = end.distance - start.distance
    let unknown = end.unknownDistance - start.unknownDistance
    guard let from = start.odometer, let to = end.odometer else {
      guard driven > 0 else { return nil }
      return Quantity(driven, bound: driven * Self.integralError + unknown, source: .speed)
    }
    let counted = to.total - from.total
    let resolution = meter.odometer.resolution
    let between = to.distance - from.distance
    // If the speed is missing for part of the way, only the odometer covers that part.
    let hasGap = to.unknownTime > from.unknownTime
    let refined = hasGap ? max(counted, between) : min(max(between, counted - resolution), counted + resolution)
    let outside = (end.distance - to.distance) - (start.distance - from.distance)
    let bound = Self.bound(refined, counted, between, resolution, hasGap: hasGap)
    let outsideBound = abs(outside) * Self.integralError + (to.unknownTime == end.unknownTime ? 0 : unknown)
    return Quantity(max(refined + outside, 0), bound: bound + outsideBound, source: .odometer)
  }

  /// The error of a figure that satisfies both the counter and, without a gap, the integral.
  private static func bound(_ refined: Double, _ counted: Double, _ integral: Double, _ resolution: Double, hasGap: Bool) -> Double {
    let bound = resolution + abs(refined - counted)
    return hasGap || refined != integral ? bound : min(bound, integral * integralError)
  }

  private var netEnergy: Quantity? {
    guard let energyOut else { return nil }
    guard let energyIn else { return energyOut }
    return Quantity(energyOut.value - energyIn.value, bound: energyOut.bound + energyIn.bound, source: energyOut.source)
  }

  private var energyOut: Quantity? {
    energy(end.energyOut - start.energyOut, start.countedOut, end.countedOut, resolution: meter.counterOut.resolution)
  }

  /// The energy into the battery.
  var energyIn: Quantity? {
    energy(end.energyIn - start.energyIn, start.countedIn, end.countedIn, resolution: meter.counterIn.resolution)
  }

  private func energy(_ integral: Double, _ from: Double?, _ to: Double?, resolution: Double) -> Quantity? {
    let covered = end.powerTime - start.powerTime
    let missing = duration - covered
    let hasGap = missing > max(2 * Limits.sampleAge, duration / 20)
    if let from, let to {
      let counted = to - from
      let refined = hasGap ? counted : min(max(integral, counted - resolution), counted + resolution)
      return Quantity(max(refined, 0), bound: Self.bound(refined, counted, integral, resolution, hasGap: hasGap), source: .counters)
    }
    guard covered > 0 else { return nil }
    // The energy of the missing time is unknown; the bound assumes at most the mean power that was measured.
    let bound = integral * (Self.integralError + (hasGap ? Double(missing) / Double(covered) : 0))
    return Quantity(integral, bound: bound, source: .power)
  }

  /// The fuel used, from the best source that covers at least 90 % of the longest time that any source covers. If no source covers any
  /// time, the fuel is computed from the fuel level.
  private var fuel: Quantity? {
    let sums = [
      (end.fuelByRate - start.fuelByRate, Self.integralError, Quantity.Source.fuelRate),
      (end.fuelByMass - start.fuelByMass, Self.integralError, .fuelMassRate),
      (end.fuelByAir - start.fuelByAir, Self.airFlowError, .airFlow),
    ]
    let longest = sums.reduce(0) { max($0, $1.0.time) }
    if longest > 0, let (sum, error, source) = sums.first(where: { $0.0.time >= longest / 10 * 9 }) {
      let missing = max(end.unknownTime - start.unknownTime, 0)
      return Quantity(sum.sum, bound: sum.sum * (error + Double(missing) / Double(sum.time)), source: source)
    }
    guard let tank = rules.tankVolume, let before = start.fuelLevel, let after = end.fuelLevel, before >= after else { return nil }
    return Quantity((before - after) / 100 * tank, bound: tank * Self.levelError, source: .fuelLevel)
  }
}
