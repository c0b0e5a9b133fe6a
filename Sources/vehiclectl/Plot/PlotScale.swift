// Scales and ticks at round numbers and times. No I/O.

import Glibc

/// A scale that contains a range, with ticks at round numbers. It starts and ends at a tick, unless that leaves too much of it unused.
struct PlotScale: Equatable {
  let range: ClosedRange<Double>
  /// The ticks are the multiples of this step within the range.
  private let step: Step

  /// 1, 2 or 5 times a power of ten.
  private struct Step: Equatable {
    var factor: Double
    var exponent: Int

    /// A multiple of the step. Divides by powers of ten rather than multiplying by fractions: in binary, 0.1 * 3 is not 0.3, but 3 / 10 is.
    func multiple(_ count: Double) -> Double {
      let power = (0..<abs(exponent)).reduce(1.0) { power, _ in power * 10 }
      return exponent >= 0 ? count * factor * power : count * factor / power
    }

    var size: Double { multiple(1) }
  }

  /// The maximum fraction of the scale that may be left unused.
  private static let maxWaste = 0.25

  /// Creates a scale with at most `maxTicks` ticks; a value below 2 counts as 2.
  init(_ values: ClosedRange<Double>, maxTicks: Int) {
    var (low, high) = (values.lowerBound, values.upperBound)
    if high - low <= max(abs(low), abs(high)) * 1e-6 {
      // Draw a constant value in the middle.
      let margin = low == 0 ? 1 : abs(low) * 0.05
      (low, high) = (low - margin, high + margin)
    }
    let magnitude = Int(log10(high - low).rounded(.down))
    let steps = (magnitude - 2...magnitude + 1).flatMap { exponent in [1.0, 2, 5].map { Step(factor: $0, exponent: exponent) } }
    let maxTicks = max(2, maxTicks)
    // From fine to coarse: a coarser step is used only if the unused fraction becomes smaller by more than 0.1.
    var best: (waste: Double, range: ClosedRange<Double>, step: Step)?
    for step in steps {
      let (first, last) = ((low / step.size + 1e-9).rounded(.down), (high / step.size - 1e-9).rounded(.up))
      let waste = 1 - (high - low) / (step.multiple(last) - step.multiple(first))
      if (2...maxTicks).contains(Int(last - first) + 1), waste < (best?.waste ?? 2) - 0.1 {
        best = (waste, step.multiple(first)...step.multiple(last), step)
      }
    }
    if let best, best.waste <= Self.maxWaste {
      (range, step) = (best.range, best.step)
    } else {
      range = low...high
      step = steps.first { (1...maxTicks).contains(Self.multiples($0, in: low...high).count) } ?? Step(factor: 5, exponent: magnitude)
    }
  }

  var ticks: [(value: Double, label: String)] {
    let places = max(0, -step.exponent)
    return Self.multiples(step, in: range).map { ($0, Format.fixed($0, places)) }
  }

  private static func multiples(_ step: Step, in range: ClosedRange<Double>) -> [Double] {
    let (first, last) = ((range.lowerBound / step.size - 1e-9).rounded(.up), (range.upperBound / step.size + 1e-9).rounded(.down))
    return first <= last ? (0...Int(last - first)).map { step.multiple(first + Double($0)) } : []
  }

  /// The position of a value on the scale, 0 (lower end) to 1 (upper end).
  func position(_ value: Double) -> Double {
    min(1, max(0, (value - range.lowerBound) / (range.upperBound - range.lowerBound)))
  }
}

/// A tick of the horizontal axis.
struct PlotTick: Equatable {
  var position: Double
  var label: String

  /// The steps of times in seconds, up to two weeks.
  private static let timeSteps = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600,
  ]
  private static let monthSteps = [1, 2, 3, 6, 12, 24, 60, 120]
  /// The minimum number of columns between two labels.
  private static let labelGap = 3

  /// The ticks at round numbers. The label of the last one includes the unit.
  static func numbers(in range: ClosedRange<Double>, _ unit: String, columns: Int) -> [PlotTick] {
    let scale = PlotScale(range, maxTicks: max(2, columns / 8))
    var ticks = scale.ticks.filter { range.contains($0.value) }.map { PlotTick(position: $0.value, label: $0.label) }
    if let last = ticks.indices.last { ticks[last].label += " \(unit)" }
    return ticks
  }

  /// The ticks at round local times. The range is in seconds since the Unix epoch.
  static func times(in range: ClosedRange<Double>, _ zone: Zone, columns: Int) -> [PlotTick] {
    let span = range.upperBound - range.lowerBound
    let fits = { (step: Double, label: Int) in span / step * Double(label + labelGap) <= Double(columns) }
    if let step = timeSteps.first(where: { fits(Double($0), $0 < 60 ? 8 : $0 < 86_400 ? 5 : 6) }) {
      return times(in: range, zone, step: step)
    }
    let months = monthSteps.first { fits(Double($0) * 30 * 86_400, 8) } ?? 120
    return self.months(in: range, zone, step: months)
  }

  private static func times(in range: ClosedRange<Double>, _ zone: Zone, step: Int) -> [PlotTick] {
    let start = Int(range.lowerBound.rounded(.down))
    // Multiples of the step in local time; weeks start on Monday.
    let origin = step % 604_800 == 0 ? 4 * 86_400 : 0
    var local = CivilTime.floorDivide(start + zone.offset(at: start).seconds - origin, by: step) * step + origin
    var ticks: [PlotTick] = []
    while ticks.count < 1000 {
      defer { local += step }
      // Use the offset at the tick itself, which can be after a change to or from daylight saving time.
      let guess = local - zone.offset(at: local).seconds
      let time = local - zone.offset(at: guess).seconds
      if Double(time) > range.upperBound { break }
      guard Double(time) >= range.lowerBound, time > ticks.last.map({ Int($0.position) }) ?? .min else { continue }
      let civil = CivilTime(time * 1_000_000, in: zone)
      let isDay = civil.hour == 0 && civil.minute == 0 && civil.second == 0
      let label = step >= 86_400 || isDay ? civil.dayAndMonth : step < 60 ? civil.clockWithSeconds : civil.clock
      ticks.append(PlotTick(position: Double(time), label: label))
    }
    return ticks
  }

  private static func months(in range: ClosedRange<Double>, _ zone: Zone, step: Int) -> [PlotTick] {
    let first = CivilTime(Int(range.lowerBound) * 1_000_000, in: zone)
    var month = CivilTime.floorDivide(first.year * 12 + first.month - 1, by: step) * step
    var ticks: [PlotTick] = []
    while ticks.count < 1000 {
      defer { month += step }
      var civil = CivilTime(month / 12, month % 12 + 1, 1)
      civil.offset = zone.offset(at: civil.seconds).seconds
      let time = Double(civil.seconds)
      if time > range.upperBound { break }
      if time >= range.lowerBound { ticks.append(PlotTick(position: time, label: civil.monthAndYear)) }
    }
    return ticks
  }
}
