// Plots: scales, ticks, dots, whole pictures, SVG.

import Foundation
import FoundationXML
import Testing

@testable import vehiclectl

@Suite struct PlotTests {
  /// Points with one value each.
  private static func series(_ values: [Double?], name: String = "ev.speed", unit: String? = "km/h", start: Double = 0, width: Double = 1)
    -> PlotSeries
  {
    let points = values.enumerated().compactMap { index, value in
      value.map { PlotPoint(minimum: $0, maximum: $0, mean: $0, last: $0, index: index) }
    }
    return PlotSeries(name: name, unit: unit, start: start, width: width, points: points)
  }

  private static func plot(_ series: [PlotSeries], _ range: ClosedRange<Double>, title: String? = nil) -> Plot {
    Plot(panels: series.map { PlotPanel([$0]) }, axis: .number("s"), range: range, title: title)
  }

  @Test func `scales have round ticks and contain their values`() {
    for (range, count, labels) in [
      (0.0...118.0, 9, ["0", "20", "40", "60", "80", "100", "120"]), (-52.3...118.9, 5, ["-50", "0", "50", "100"]),
      (0.0...1.0, 3, ["0.0", "0.5", "1.0"]), (3.7...3.9, 5, ["3.70", "3.75", "3.80", "3.85", "3.90"]), (76...81, 3, ["76", "78", "80"]),
      (5...5, 3, ["4.8", "5.0", "5.2"]), (0...0, 3, ["-1", "0", "1"]), (-3e9...5e9, 4, ["-5000000000", "0", "5000000000"]),
    ] {
      let scale = PlotScale(range, maxTicks: count)
      #expect(scale.ticks.map(\.label) == labels, "\(range)")
      #expect(scale.range.lowerBound <= range.lowerBound && scale.range.upperBound >= range.upperBound)
    }
    var random = Randomness(seed: 3)
    for _ in 0..<2000 {
      let low = Double(Int(random.next() % 2_000_000) - 1_000_000) / 1000
      let high = low + Double(random.next() % 1_000_000) / 7000
      let count = Int(random.next() % 9) + 2
      let scale = PlotScale(low...high, maxTicks: count)
      #expect(scale.range.contains(low) && scale.range.contains(high))
      #expect((1...count).contains(scale.ticks.count), "\(low) \(high) \(count)")
      #expect(Set(scale.ticks.map(\.label)).count == scale.ticks.count)
    }
  }

  @Test func `time ticks are at round local times, also across a change of the offset`() throws {
    let berlin = try #require(Zone(named: "Europe/Berlin"))
    let start = Double(HistoryRig.morning) / 1e6
    func labels(_ seconds: Double, from: Double = start, columns: Int = 72) -> [String] {
      PlotTick.times(in: from...from + seconds, berlin, columns: columns).map(\.label)
    }
    #expect(labels(42 * 60) == ["08:15", "08:20", "08:25", "08:30", "08:35", "08:40", "08:45", "08:50"])
    #expect(labels(10) == ["08:12:00", "08:12:02", "08:12:04", "08:12:06", "08:12:08", "08:12:10"])
    #expect(labels(86_400) == ["09:00", "12:00", "15:00", "18:00", "21:00", "24 Nov", "03:00", "06:00"])
    #expect(labels(30 * 86_400, columns: 40) == ["30 Nov", "7 Dec", "14 Dec", "21 Dec"])
    #expect(labels(400 * 86_400, columns: 60) == ["Jan 2027", "Apr 2027", "Jul 2027", "Oct 2027"])
    // 2026-10-25 00:00 to 08:00 in Berlin: the hour from two to three is there twice.
    #expect(
      labels(9 * 3600, from: 1_792_879_200, columns: 80) == [
        "25 Oct", "01:00", "02:00", "03:00", "04:00", "05:00", "06:00", "07:00", "08:00",
      ])
    #expect(PlotTick.times(in: start...start + 0.5, berlin, columns: 72).count <= 1)
  }

  @Test func `minima and maxima are kept in any number of columns`() {
    var values = (0..<10_000).map { Double($0 % 7) }
    (values[4321], values[8765]) = (999, -999)
    let series = Self.series(values.map { $0 })
    for count in [1, 2, 3, 40, 143, 5000, 10_000, 30_000] {
      let columns = series.columns(count, in: 0...10_000)
      #expect(columns.map(\.maximum).max() == 999 && columns.map(\.minimum).min() == -999, "\(count)")
      #expect(columns.map(\.index) == Array(0..<count), "\(count)")
    }
    #expect(series.columns(10, in: 20_000...30_000).isEmpty && series.columns(10, in: 0...0).isEmpty)
  }

  @Test func `a gap is a gap, in fewer and in more columns`() {
    let series = Self.series((0..<100).map { (40..<60).contains($0) ? nil : 5 })
    for count in [10, 100, 300] {
      let indices = Set(series.columns(count, in: 0...100).map(\.index))
      #expect(!(0..<count).contains { indices.contains($0) == (count * 4 / 10..<count * 6 / 10).contains($0) }, "\(count)")
    }
  }

  @Test func `a panel shows spikes, gaps and the zero line`() {
    let values = (0..<120).map { index -> Double? in
      if (60..<75).contains(index) { return nil }
      return index == 30 ? 90 : (sin(Double(index) / 10) * 40).rounded()
    }
    let grid = Self.plot([Self.series(values)], 0...120, title: "a title").grid(columns: 48, rows: 13)
    #expect(grid.lines() == Self.onePanel, "\(grid.lines().joined(separator: "\n"))")
  }

  @Test func `panels share the axis, and text that does not fit is left out`() {
    let one = Self.series((0..<50).map { Double($0) }, name: "ev.rising")
    let other = Self.series((0..<50).map { $0 < 25 ? 1.0 : 0 }, name: "ev.charging", unit: nil)
    let grid = Self.plot([one, other, Self.series([], name: "ev.nothing")], 0...50).grid(columns: 30, rows: 10)
    #expect(grid.lines() == Self.threePanels, "\(grid.lines().joined(separator: "\n"))")
    for columns in 1...40 {
      for rows in [1, 2, 5, 30] { #expect(Self.plot([one, other], 0...50).grid(columns: columns, rows: rows).columns == columns) }
    }
  }

  @Test func `converted series keep their order, and what cannot be expressed is a gap`() {
    let consumption = Self.series([20, 0, -5, 10], unit: "kWh/100km").converted(to: .imperial)
    #expect(consumption.unit == "mi/kWh" && consumption.points.count == 3 && consumption.points.map(\.index) == [0, 2, 3])
    let temperature = Self.series([0, 100], unit: "°C").converted(to: .imperial)
    #expect(temperature.points.map(\.mean) == [32, 212] && temperature.unit == "°F")
    #expect(Self.series([1]).converted(to: .metric) == Self.series([1]))
  }

  @Test func `an SVG file is valid XML and contains names, gaps and every panel`() throws {
    let nasty = Self.series((0..<2000).map { (800..<900).contains($0) ? nil : Double($0 % 300) }, name: "<ev>&\"x\"\u{1}")
    let spike = Self.series([nil, 5, nil], name: "one", unit: nil, width: 600)
    let plot = Plot(
      panels: [PlotPanel([nasty, spike]), PlotPanel([])], axis: .time(.utc), range: 0...2000, title: "trip 1 of <ev>, 1970")
    let text = SVGPlot(plot).text
    let document = SVGDocument()
    let parser = XMLParser(data: Data(text.utf8))
    parser.delegate = document
    #expect(parser.parse(), "\(String(describing: parser.parserError))")
    #expect(document.elements["svg"] == 1 && document.elements["title"] == 1)
    #expect(document.text.contains("<ev>&\"x\"") && document.text.contains("no values") && document.text.contains("trip 1 of <ev>, 1970"))
    #expect(document.classes.count { $0 == "band s0" } == 2, "one for each part")
    #expect(!text.contains("nan") && !text.contains("href") && !text.contains("script"))
  }
}

/// Counts elements and collects text.
private final class SVGDocument: NSObject, XMLParserDelegate {
  var elements: [String: Int] = [:]
  var classes: [String] = []
  var text = ""

  func parser(
    _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?, attributes: [String: String]
  ) {
    elements[name, default: 0] += 1
    if let value = attributes["class"] { classes.append(value) }
  }

  func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }
}

extension PlotTests {
  fileprivate static let onePanel: [String] = [
    "a title",
    "ev.speed km/h           min -40  mean -1  max 90",
    "100 ┤          ⢠",
    "    │          ⢸",
    "    │          ⢸",
    " 50 ┤   ⢀⡠⠤⠤⣀  ⢸                ⠤⠤⢤⡀",
    "    │ ⢀⠔⠃    ⠑⢄⢸                   ⠘⠢⡀",
    "  0 ┤⡰⠊┈┈┈┈┈┈┈┈⠙⡄┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈⠉⢢┈┈┈┈┈┈┈┈┈",
    "    │           ⠈⢆        ⡀            ⠱⡀",
    "    │             ⠑⢤⡀  ⢀⣠⠊              ⠈⠣⣀   ⣀⠔",
    "-50 ┤               ⠈⠑⠊⠁                   ⠉⠒⠉⠁",
    "    └┬────────────────┬─────────────────┬───────",
    "     0                50              100 s",
  ]
  fileprivate static let threePanels: [String] = [
    "ev.rising km/h",
    "50 ┤                    ⢀⣀⠤⠔⠒⠊",
    "   │             ⣀⣀⠤⠔⠒⠉⠉⠁",
    "   │      ⣀⣀⠤⠤⠒⠊⠉",
    " 0 ┤⣀⠤⠔⠒⠊⠉",
    "ev.charging",
    " 1 ┤⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⡆",
    "   │             ⡇",
    "   │             ⡇",
    " 0 ┤             ⣇⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀",
    "ev.nothing km/h",
    "   │",
    "   │",
    "   │ no values",
    "   │",
    "   └┬────────────────────────┬",
    "    0                     50 s",
  ]
}
