// A recorded plot as a series to draw. No I/O.

import Varlink

extension PlotSeries {
  init(_ name: String, _ recorded: HistoryContract.PlotMethod.Result) {
    self.init(
      name: name, unit: recorded.unit, start: Double(recorded.start) / 1e6, width: Double(recorded.width) / 1e6,
      points: recorded.points.map { PlotPoint(minimum: $0.minimum, maximum: $0.maximum, mean: $0.mean, last: $0.last, index: $0.index) })
  }
}
