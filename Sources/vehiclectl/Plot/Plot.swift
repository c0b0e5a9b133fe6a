// A plot: values against time or another quantity, in stacked panels that share the horizontal axis. TextPlot and SVGPlot draw it. No I/O.

/// The values in one interval.
struct PlotPoint: Equatable {
  var minimum: Double
  var maximum: Double
  /// The mean, weighted by time.
  var mean: Double
  var last: Double
  /// The number of the interval, from 0.
  var index: Int
}

/// The values of a property in intervals of equal width. Intervals without values are gaps.
struct PlotSeries: Equatable {
  var name: String
  var unit: String?
  /// The start of interval 0, in seconds or in the unit of the axis.
  var start: Double
  /// The width of each interval, in the same unit as `start`.
  var width: Double
  /// The points in the order of their intervals.
  var points: [PlotPoint]

  /// The lowest and highest value; nil if there are none.
  var extent: ClosedRange<Double>? {
    guard let low = points.map(\.minimum).min(), let high = points.map(\.maximum).max(), low <= high else { return nil }
    return low...high
  }

  /// The minimum, mean and maximum as text; nil if there are no values.
  var summary: [(name: String, value: String)]? {
    guard let extent else { return nil }
    let mean = points.reduce(0) { $0 + $1.mean } / Double(points.count)
    let places = Self.places(extent)
    let texts = [extent.lowerBound, mean, extent.upperBound].map { Format.fixed($0, places) }
    return zip(["min", "mean", "max"], texts).map { ($0, $1) }
  }

  /// The number of decimal places that distinguishes values within this extent.
  private static func places(_ extent: ClosedRange<Double>) -> Int {
    let size = max(extent.upperBound - extent.lowerBound, abs(extent.upperBound) / 1000)
    return size >= 100 ? 0 : size >= 2 ? 1 : size >= 0.2 ? 2 : 3
  }
}

/// Series that share a vertical scale.
struct PlotPanel: Equatable {
  var series: [PlotSeries]
  /// Whether the scale always includes 0.
  var includesZero = false
  /// Whether to show the minimum, mean and maximum.
  var hasSummary = true

  init(_ series: [PlotSeries], includesZero: Bool = false, hasSummary: Bool = true) {
    (self.series, self.includesZero, self.hasSummary) = (series, includesZero, hasSummary)
  }

  /// A scale with at most this many ticks; nil if there are no values.
  func scale(maxTicks: Int) -> PlotScale? {
    let extents = series.compactMap(\.extent)
    guard var low = extents.map(\.lowerBound).min(), var high = extents.map(\.upperBound).max() else { return nil }
    if includesZero { (low, high) = (min(0, low), max(0, high)) }
    return PlotScale(low...high, maxTicks: maxTicks)
  }
}

struct Plot: Equatable {
  enum Axis: Equatable {
    /// Seconds since the Unix epoch, shown in this zone.
    case time(Zone)
    /// Numbers with this unit.
    case number(String)
  }

  var panels: [PlotPanel]
  var axis: Axis
  var range: ClosedRange<Double>
  /// A line above the panels.
  var title: String?

  /// The ticks of the axis for this many columns of text.
  func ticks(columns: Int) -> [PlotTick] {
    switch axis {
    case .time(let zone): PlotTick.times(in: range, zone, columns: columns)
    case .number(let unit): PlotTick.numbers(in: range, unit, columns: columns)
    }
  }
}

extension PlotSeries {
  /// The series in the chosen units. A point that they cannot express becomes a gap.
  func converted(to units: Units) -> PlotSeries {
    guard let conversion = units.conversion(of: unit) else { return self }
    var series = self
    series.unit = conversion.unit
    series.points = points.compactMap { point in
      let ends = [point.minimum, point.maximum].map(conversion.exact).sorted()
      let (mean, last) = (conversion.exact(point.mean), conversion.exact(point.last))
      guard ends.allSatisfy(\.isFinite), mean.isFinite, last.isFinite else { return nil }
      return PlotPoint(minimum: ends[0], maximum: ends[1], mean: mean, last: last, index: point.index)
    }
    return series
  }
}
