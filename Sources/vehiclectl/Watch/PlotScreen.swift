// The full-screen view of `watch --plot`.

import Protocols
import Varlink

struct PlotScreen: LiveView {
  typealias Method = Contract.Watch

  private let units: Units
  private var plot: LivePlot
  private let zone = Zone.local()
  /// The plot moves all the time.
  let lifetime = FullScreen.period

  init(_ units: Units, _ plot: LivePlot) { (self.units, self.plot) = (units, plot) }

  mutating func apply(_ result: Contract.Watch.Result) -> Bool {
    plot.apply(units.converted(result), at: Clock.wall)
    return result.hasValues
  }

  mutating func lose(_ notice: String) { plot.lose(notice, at: Clock.wall) }

  mutating func handle(_ key: KeyPress) -> Bool {
    switch key {
    case .character("q"), .character("Q"), .control("C"), .control("D"): return false
    case .character("+"), .character("="): plot.zoom(-1)
    case .character("-"): plot.zoom(1)
    case .character(" "): plot.toggleFrozen(at: Clock.wall)
    default: break
    }
    return true
  }

  func frame(columns: Int, rows: Int) -> Grid? { plot.frame(columns: columns, rows: rows, now: Clock.wall, zone: zone) }
}
