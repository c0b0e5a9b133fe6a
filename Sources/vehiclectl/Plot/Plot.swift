// A plot: values over time or another quantity, in panels one above the other that share an axis. Pure values, which TextPlot and SVGPlot
// draw.

/// The values of one interval.
struct PlotPoint: Equatable {
  var minimum: Double
  var maximum: Double
  /// Weighted by time.
  var mean: Double
  var last: Double
  /// The number of the interval, from 0.
  var index: Int
}

/// The values of a property in intervals of equal width. Intervals without values are gaps.
struct PlotSeries: Equatable {
  var name: String
  var unit: String?
  /// The start of interval 0, and the width of all; seconds, or the unit of the axis.
  var start: Double
  var width: Double
  /// In the order of their intervals.
  var points: [PlotPoint]

  /// The lowest and the highest value; nil without values.
  var extent: ClosedRange<Double>? {
    guard let low = points.map(\.minimum).min(), let high = points.map(\.maximum).max(), low <= high else { return nil }
    return low...high
  }

  /// Minimum, mean and maximum in words; nil without values.
  var summary: [(name: String, value: String)]? {
    guard let extent else { return nil }
    let mean = points.reduce(0) { $0 + $1.mean } / Double(points.count)
    let places = Self.places(extent)
    let texts = [extent.lowerBound, mean, extent.upperBound].map { Format.fixed($0, places) }
    return zip(["min", "mean", "max"], texts).map { ($0, $1) }
  }

  /// The decimal places that tell values within this extent apart.
  private static func places(_ extent: ClosedRange<Double>) -> Int {
    let size = max(extent.upperBound - extent.lowerBound, abs(extent.upperBound) / 1000)
    return size >= 100 ? 0 : size >= 2 ? 1 : size >= 0.2 ? 2 : 3
  }
}

/// Series with one scale.
struct PlotPanel: Equatable {
  var series: [PlotSeries]
  /// Whether the scale starts or ends at 0 at the latest.
  var includesZero = false
  /// Whether minimum, mean and maximum are shown.
  var hasSummary = true

  init(_ series: [PlotSeries], includesZero: Bool = false, hasSummary: Bool = true) {
    (self.series, self.includesZero, self.hasSummary) = (series, includesZero, hasSummary)
  }

  /// The scale for at most this many ticks; nil without values.
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
  /// One line above the panels.
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
  /// The series in the chosen units. A point that cannot be expressed in them becomes a gap.
  func converted(_ units: Units) -> PlotSeries {
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
