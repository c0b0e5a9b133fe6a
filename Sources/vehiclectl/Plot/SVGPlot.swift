// Draws a plot as a self-contained SVG file without scripts, fonts or links, for light and dark colour schemes. No I/O.
// Source: SVG 1.1 (Second Edition).

struct SVGPlot {
  private static let (width, panelHeight, gap) = (960.0, 220.0, 34.0)
  private static let (left, right, top, bottom) = (64.0, 16.0, 44.0, 34.0)
  /// The width in columns of text, which determines the number of ticks.
  private static let columns = 110
  private static let style = """
    svg{font:12px system-ui,sans-serif;fill:#444}.page{fill:#fff}
    .title{font-size:14px;font-weight:600;fill:#111}.name{font-weight:600;fill:#111}.end{text-anchor:end}.middle{text-anchor:middle}
    .grid{stroke:#888;opacity:.25;fill:none}.zero{stroke:#888;fill:none}
    .line{fill:none;stroke-width:1.5;stroke-linejoin:round}.band{stroke:none;opacity:.25}
    .line.s0{stroke:#0072b2}.line.s1{stroke:#d55e00}.line.s2{stroke:#009e73}.line.s3{stroke:#cc79a7}
    .band.s0,.key.s0{fill:#0072b2}.band.s1,.key.s1{fill:#d55e00}.band.s2,.key.s2{fill:#009e73}.band.s3,.key.s3{fill:#cc79a7}
    @media(prefers-color-scheme:dark){svg{fill:#aaa}.page{fill:#16181d}.title,.name{fill:#eee}}
    """
  private static let colours = 4

  private let plot: Plot
  private let height: Double
  private var plotWidth: Double { Self.width - Self.left - Self.right }

  init(_ plot: Plot) {
    self.plot = plot
    height = Self.top + Double(plot.panels.count) * (Self.panelHeight + Self.gap) + Self.bottom - Self.gap / 2
  }

  /// The text of the file.
  var text: String {
    var lines = [
      #"<?xml version="1.0" encoding="UTF-8"?>"#,
      #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \#(Self.number(Self.width)) \#(Self.number(height))" role="img">"#,
      "<title>\(Self.escaped(plot.title ?? "plot"))</title>", "<style>\(Self.style)</style>",
      #"<rect class="page" width="100%" height="100%"/>"#,
    ]
    if let title = plot.title { lines.append(#"<text class="title" x="\#(Self.number(Self.left))" y="20">\#(Self.escaped(title))</text>"#) }
    let ticks = plot.ticks(columns: Self.columns)
    for (index, panel) in plot.panels.enumerated() {
      lines += self.panel(panel, ticks, top: Self.top + Double(index) * (Self.panelHeight + Self.gap))
    }
    lines += ticks.map { tick in
      #"<text class="middle" x="\#(Self.number(x(tick.position)))" y="\#(Self.number(height - 12))">\#(Self.escaped(tick.label))</text>"#
    }
    return (lines + ["</svg>", ""]).joined(separator: "\n")
  }

  private func panel(_ panel: PlotPanel, _ ticks: [PlotTick], top: Double) -> [String] {
    let (upper, lower) = (top + 18, top + Self.panelHeight)
    var lines = legend(panel, top: top + 10)
    guard let scale = panel.scale(maxTicks: 6) else {
      return lines + [
        #"<text class="middle" x="\#(Self.number(Self.width / 2))" y="\#(Self.number((upper + lower) / 2))">no values</text>"#
      ]
    }
    let y = { (value: Double) in lower - scale.position(value) * (lower - upper) }
    let (first, last) = (Self.number(Self.left), Self.number(Self.width - Self.right))
    for tick in scale.ticks {
      let at = Self.number(y(tick.value))
      lines.append(#"<path class="\#(tick.value == 0 ? "zero" : "grid")" d="M\#(first) \#(at)H\#(last)"/>"#)
      lines.append(#"<text class="end" x="\#(Self.number(Self.left - 8))" y="\#(Self.number(y(tick.value) + 4))">\#(tick.label)</text>"#)
    }
    for tick in ticks {
      let at = Self.number(x(tick.position))
      lines.append(#"<path class="grid" d="M\#(at) \#(Self.number(upper))V\#(Self.number(lower))"/>"#)
    }
    for (index, series) in panel.series.enumerated() { lines += curve(series, index, y) }
    return lines
  }

  /// The names of the series, with their colours and summaries.
  private func legend(_ panel: PlotPanel, top: Double) -> [String] {
    let texts = panel.series.enumerated().map { index, series in
      let figures = (series.summary ?? []).map { "\($0.name) \($0.value)" }.joined(separator: ", ")
      return #"<tspan class="key s\#(index % Self.colours)">■</tspan> <tspan class="name">\#(Self.escaped(series.name))</tspan> "#
        + Self.escaped([series.unit.map { "\($0):" } ?? "", figures].filter { !$0.isEmpty }.joined(separator: " "))
    }
    return [
      #"<text x="\#(Self.number(Self.left))" y="\#(Self.number(top))" xml:space="preserve">\#(texts.joined(separator: "   "))</text>"#
    ]
  }

  /// The band from minimum to maximum and the line of the mean, one of each for every part without a gap.
  private func curve(_ series: PlotSeries, _ index: Int, _ y: @escaping (Double) -> Double) -> [String] {
    let columns = series.columns(Int(plotWidth), in: plot.range)
    var parts: [[PlotPoint]] = []
    for column in columns {
      if let last = parts.last?.last, last.index + 1 == column.index {
        parts[parts.count - 1].append(column)
      } else {
        parts.append([column])
      }
    }
    let at = { (point: PlotPoint, value: Double) in "\(Self.number(Self.left + Double(point.index) + 0.5)) \(Self.number(y(value)))" }
    return parts.flatMap { part -> [String] in
      // A band or line of one column would be invisible: draw a vertical stroke.
      guard part.count > 1 else {
        let (low, high) = (y(part[0].minimum), y(part[0].maximum))
        return [
          #"<path class="line s\#(index % Self.colours)" d="M\#(at(part[0], part[0].minimum))v\#(Self.number(min(high - low, -1.5)))"/>"#
        ]
      }
      let upper = part.map { at($0, $0.maximum) }
      let lower = part.reversed().map { at($0, $0.minimum) }
      let means = part.map { at($0, $0.mean) }
      return [
        #"<path class="band s\#(index % Self.colours)" d="M\#((upper + lower).joined(separator: "L"))Z"/>"#,
        #"<path class="line s\#(index % Self.colours)" d="M\#(means.joined(separator: "L"))"/>"#,
      ]
    }
  }

  private func x(_ position: Double) -> Double {
    Self.left + (position - plot.range.lowerBound) / (plot.range.upperBound - plot.range.lowerBound) * plotWidth
  }

  /// A coordinate with at most one decimal place.
  private static func number(_ value: Double) -> String {
    let text = Format.fixed(value, 1)
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }

  static func escaped(_ text: String) -> String { XMLText.escaped(text) }
}
