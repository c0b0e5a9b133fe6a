// The latest values of some properties, as a plot that moves with time. No I/O: times are arguments. A value is valid until the next one,
// or until it is withdrawn.

import Protocols
import Varlink

struct LivePlot {
  /// A value, or nil if it was withdrawn, with the time in seconds since the Unix epoch.
  private struct Sample {
    var time: Double
    var value: Double?
  }

  private struct Line {
    var name: String
    var unit: String?
    var samples: [Sample] = []
  }

  /// The time spans to choose from, in seconds.
  static let spans = [10.0, 30, 60, 120, 300, 600, 1800, 3600]

  private var lines: [Line] = []
  private var positions: [String: Int] = [:]
  private var ended = EndedProperties()
  private let references: References
  /// The names in the order of the command line.
  private let order: [String]
  /// The time span that is shown, in seconds.
  private(set) var span: Double
  /// The time at which the plot was frozen.
  private(set) var frozenAt: Double?
  /// The notice to show while the connection to the daemon is lost.
  private var outage: String?
  /// The age in seconds from which values can be dropped.
  private let limit: Double
  /// The maximum number of properties that are shown.
  static let maxLines = 8

  /// A plot of these properties over this many seconds.
  init(_ references: References, in schemas: [Contract.Schema], span: Double) {
    self.references = references
    order = references.expanded(in: schemas)
    self.span = span
    limit = max(span, Self.spans.last ?? span)
  }

  /// Adds the readings of a reply of Watch.
  mutating func apply(_ result: Contract.Watch.Result, at now: Double) {
    if result.snapshot != nil { outage = nil }
    for event in result.events ?? [] where event.name == Contract.Event.removed {
      for index in lines.indices where lines[index].name.hasPrefix("\(event.device).") { end(index, at: now) }
    }
    for reading in ended.readings(result) + (result.snapshot ?? []).flatMap(\.readings) + (result.changes ?? []) { add(reading, at: now) }
    let oldest = now - limit
    for index in lines.indices {
      // The sample that is valid at the oldest time is kept.
      let first = lines[index].samples.lastIndex { $0.time <= oldest } ?? 0
      if first > 1000 { lines[index].samples.removeFirst(first) }
    }
  }

  /// Withdraws all values until the next snapshot; `notice` is the reason.
  mutating func lose(_ notice: String, at now: Double) {
    if outage == nil {
      for index in lines.indices { end(index, at: now) }
    }
    outage = notice
  }

  private mutating func end(_ index: Int, at now: Double) {
    lines[index].samples.append(Sample(time: max(now, lines[index].samples.last?.time ?? now)))
  }

  private mutating func add(_ reading: Contract.Reading, at now: Double) {
    guard references.selects(reading.device, reading.property) else { return }
    let name = reading.reference
    let value = reading.value.flatMap(Self.number)
    // Strings and lists are not plotted.
    if reading.value != nil, value == nil { return }
    guard let position = value == nil ? positions[name] : position(of: name, reading.unit) else { return }
    if value != nil, lines[position].unit != reading.unit { lines[position] = Line(name: name, unit: reading.unit) }
    // A clock that was set back must not put values before earlier ones.
    let time = reading.value == nil ? now : reading.time.map { Double($0) / 1e6 } ?? now
    lines[position].samples.append(Sample(time: max(time, lines[position].samples.last?.time ?? time), value: value))
  }

  /// The position of a line, which is added unless there are too many.
  private mutating func position(of name: String, _ unit: String?) -> Int? {
    if let position = positions[name] { return position }
    guard lines.count < Self.maxLines else { return nil }
    let rank = order.firstIndex(of: name) ?? .max
    let position = lines.firstIndex { order.firstIndex(of: $0.name) ?? .max > rank } ?? lines.count
    lines.insert(Line(name: name, unit: unit), at: position)
    positions = Dictionary(zip(lines.map(\.name), lines.indices), uniquingKeysWith: { first, _ in first })
    return position
  }

  /// The properties whose recorded values to request, and how far back, in seconds.
  var past: (names: ArraySlice<String>, length: Double) { (order.prefix(Self.maxLines), limit) }

  /// Adds recorded values; call this before `apply`. Each interval adds three samples: the minimum, the maximum and the last value.
  mutating func prefill(_ recorded: PlotSeries) {
    guard !recorded.points.isEmpty, let position = position(of: recorded.name, recorded.unit) else { return }
    for (index, point) in recorded.points.enumerated() {
      let start = recorded.start + Double(point.index) * recorded.width
      for (part, value) in [point.minimum, point.maximum, point.last].enumerated() {
        lines[position].samples.append(Sample(time: start + recorded.width * Double(part) / 3, value: value))
      }
      let next = index + 1 < recorded.points.count ? recorded.points[index + 1].index : .max
      if next > point.index + 1 { lines[position].samples.append(Sample(time: start + recorded.width, value: nil)) }
    }
  }

  private static func number(_ value: Value) -> Double? {
    if case .bool(let flag) = value { flag ? 1 : 0 } else { value.number }
  }

  /// Changes the time span by this many steps.
  mutating func zoom(_ steps: Int) {
    let nearest = Self.spans.indices.min { abs(Self.spans[$0] - span) < abs(Self.spans[$1] - span) } ?? 0
    span = Self.spans[min(max(0, nearest + steps), Self.spans.count - 1)]
  }

  mutating func toggleFrozen(at now: Double) { frozenAt = frozenAt == nil ? now : nil }

  /// The plot that ends at this time, in at most this many intervals.
  func plot(at now: Double, zone: Zone, columns: Int) -> Plot {
    let end = frozenAt ?? now
    let width = span / Double(max(1, columns))
    // Intervals begin at multiples of their width, so that their values do not change while the plot moves.
    let last = (end / width).rounded(.up)
    let start = (last - Double(columns)) * width
    let panels = lines.map { line in
      PlotPanel([
        PlotSeries(
          name: line.name, unit: line.unit, start: start, width: width,
          points: Self.points(line.samples, start: start, width: width, count: columns, until: end))
      ])
    }
    return Plot(panels: panels, axis: .time(zone), range: start...start + Double(columns) * width, title: nil)
  }

  private static func points(_ samples: [Sample], start: Double, width: Double, count: Int, until end: Double) -> [PlotPoint] {
    var points: [PlotPoint] = []
    var next = samples.firstIndex { $0.time > start } ?? samples.count
    var current = next > 0 ? samples[next - 1].value : nil
    for index in 0..<count where start + Double(index) * width < end {
      let (from, to) = (start + Double(index) * width, min(start + Double(index + 1) * width, end))
      var (low, high) = (current ?? .infinity, current ?? -.infinity)
      var (sum, time, at) = (0.0, 0.0, from)
      while next < samples.count, samples[next].time <= to {
        if let current { (sum, time) = (sum + current * (samples[next].time - at), time + samples[next].time - at) }
        (current, at) = (samples[next].value, samples[next].time)
        if let current { (low, high) = (min(low, current), max(high, current)) }
        next += 1
      }
      if let current { (sum, time) = (sum + current * (to - at), time + to - at) }
      guard low <= high else { continue }
      let mean = time > 0 ? min(high, max(low, sum / time)) : current ?? low
      points.append(PlotPoint(minimum: low, maximum: high, mean: mean, last: current ?? mean, index: index))
    }
    return points
  }

  // MARK: Frame

  private static let keys = [("q", "quit"), ("+ -", "shorter or longer time"), ("space", "freeze")]

  /// Draws the plot in a window of this size.
  func frame(columns: Int, rows: Int, now: Double, zone: Zone) -> Grid {
    var grid = Grid(columns: columns, rows: rows)
    let (top, footer) = (outage == nil ? 0 : 1, rows - 1)
    if let outage { grid.put(outage, 1, 0, .warn) }
    if lines.isEmpty {
      grid.put("no values yet", 1, top, .dim)
    } else {
      plot(at: now, zone: zone, columns: columns * 2).draw(on: &grid, y: top, rows: footer - top)
    }
    let state = (frozenAt == nil ? "" : "FROZEN  ") + Format.span(span)
    var x = 0
    for (key, meaning) in Self.keys where x + key.count + meaning.count + 3 < columns - state.displayWidth {
      x = grid.put(key, x, footer, .bold)
      x = grid.put(" \(meaning)  ", x, footer, .dim)
    }
    grid.putRight(state, before: columns, footer, frozenAt == nil ? .dim : .warn, width: max(0, columns - x))
    return grid
  }
}
