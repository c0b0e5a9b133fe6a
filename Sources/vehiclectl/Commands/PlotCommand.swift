// plot: draws recorded numbers over time in the terminal or as an SVG file. Requests finer intervals than it can draw. Each column shows
// the minimum and maximum of its intervals, so that no spike is lost.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct PlotCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "plot", abstract: "Plot recorded values.",
    discussion: """
      Draws one panel per property, with the range of its values in each column; times without values are gaps. The default is the \
      last hour. Times are in the local time zone, or with --trip in the time zone in which the trip started.
      With --json: {"start": MICROSECONDS, "width": MICROSECONDS, "plots": [{"device", "property", "unit", "points": [{"index", \
      "minimum", "maximum", "mean", "last"}]}]}; intervals without values are omitted.
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions
  @Option(help: ArgumentHelp("Plot the time range of this trip, charge or parked period.", valueName: "n"))
  var trip: Int?
  @Option(help: ArgumentHelp("Plot this much time up to now: 10min, 2h, 3d.", valueName: "duration"), transform: PlotCommand.duration)
  var last: Double?
  @OptionGroup var range: RangeOptions
  @Flag(help: "Draw properties with the same unit in one panel.")
  var overlay = false
  @Option(help: ArgumentHelp("Write an SVG file; - is stdout.", valueName: "file"), completion: .file(extensions: ["svg"]))
  var svg: String?
  @Flag(help: "Overwrite an existing file.")
  var force = false
  @Option(
    help: ArgumentHelp("The number of intervals with --json, 1 to 100000 (default: 1000).", valueName: "n"),
    transform: PlotCommand.intervals)
  var points: Int?
  @Argument(
    help: ArgumentHelp("PROPERTY, DEVICE.PROPERTY, DEVICE, or a pattern.", valueName: "ref"), completion: .recordedNumbers)
  var references: [String]

  /// The maximum number of properties: more would be unreadable, and each takes a call.
  private static let maxProperties = 16
  /// The number of intervals to request per column of dots; a cell has two columns.
  private static let intervalsPerDot = 4

  func perform(_ output: Output) throws {
    let units = try common.unitSystem()
    try range.check()
    guard [trip != nil, last != nil, range.since != nil || range.until != nil].count(where: { $0 }) <= 1 else {
      throw Failure.usage("more than one range given; use only one of --trip, --last, and --since with --until")
    }
    if let svg, svg != "-" { try AtomicFile.check(svg, force: force) }
    let client = try history.connect(common, output)
    let recorded = RecordedProperties(try client.call(HistoryContract.SeriesMethod.self, .init()).series)
    let names = try recorded.numbers(references)
    guard names.count <= Self.maxProperties else {
      throw Failure.usage("too many properties: \(names.count); plot at most \(Self.maxProperties)")
    }
    let (start, end, zone, subject) = try timeRange(client)
    let columns = Help.width
    let count = points ?? (output.json ? 1000 : svg != nil ? 2000 : columns * 2 * Self.intervalsPerDot)
    let replies = try names.map { device, property in
      try client.call(
        HistoryContract.PlotMethod.self, .init(device: device, property: property, start: start, end: end, points: count))
    }
    for damage in Set(replies.flatMap(\.damage)).sorted() { output.note("skipped a damaged block: \(Output.oneLine(damage))") }
    let series = zip(names, replies).map { name, reply in
      PlotSeries("\(name.device).\(name.property)", reply).converted(to: units)
    }
    if output.json { return output.json(Self.json(names, series, replies)) }
    let plot = Plot(
      panels: Self.panels(series, overlay: overlay), axis: .time(zone), range: Double(start) / 1e6...Double(end) / 1e6,
      title: Self.title(start, end, zone, subject))
    if let svg { return try write(SVGPlot(plot).text, to: svg, output) }
    let isTerminal = Terminal.isTerminal(STDOUT_FILENO)
    let grid = plot.grid(columns: columns, rows: (isTerminal ? Terminal.window.rows : 24) - 1)
    output.lines(grid.lines { text, role in output.colour && role != .plain ? "\(role.sequence)\(text)\(StyleRole.plain.sequence)" : text })
  }

  /// The time range to plot in µs, the zone in which to show its times, and the period to which it belongs, if any.
  private func timeRange(_ client: Client) throws(Failure) -> (start: Int, end: Int, Zone, subject: String?) {
    let now = Int(Clock.wall * 1e6)
    if let trip {
      let period = try client.call(HistoryContract.PeriodMethod.self, .init(number: trip)).period
      return (
        period.start, max(period.end, period.start + 1_000_000), Zone(named: period.zone) ?? .utc,
        "\(period.noun) \(trip) of \(period.device)"
      )
    }
    let end = range.until ?? now
    let start = range.since ?? end - Int((last ?? 3600) * 1e6)
    guard start < end else { throw .usage("invalid range: it starts in the future; use an earlier --since") }
    return (start, end, .local(), nil)
  }

  static func panels(_ series: [PlotSeries], overlay: Bool) -> [PlotPanel] {
    guard overlay else { return series.map { PlotPanel([$0]) } }
    var panels: [PlotPanel] = []
    for curve in series {
      if let index = panels.firstIndex(where: { $0.series.first?.unit == curve.unit }) {
        panels[index].series.append(curve)
      } else {
        panels.append(PlotPanel([curve]))
      }
    }
    return panels
  }

  /// `trip 12 of ev, Mon 23 Nov 2026 08:12 – 08:54 CET`
  static func title(_ start: Int, _ end: Int, _ zone: Zone, _ subject: String?) -> String {
    let (from, to) = (CivilTime(start, in: zone), CivilTime(end, in: zone))
    let hasSeconds = end - start < 600_000_000
    let clock = { (time: CivilTime) in hasSeconds ? time.clockWithSeconds : time.clock }
    let isOneDay = (from.year, from.month, from.day) == (to.year, to.month, to.day)
    let last = isOneDay ? clock(to) : "\(to.weekdayAndDay) \(to.year) \(clock(to))"
    return (subject.map { "\($0), " } ?? "") + "\(from.weekdayAndDay) \(from.year) \(clock(from)) – \(last) \(to.abbreviation)"
  }

  private static func json(
    _ names: [(device: String, property: String)], _ series: [PlotSeries], _ replies: [HistoryContract.PlotMethod.Result]
  ) -> JSON {
    let plots = zip(names, series).map { name, series in
      JSON.members([
        "device": .string(name.device), "property": .string(name.property), "unit": series.unit.map(JSON.string),
        "points": .array(
          series.points.map {
            [
              "index": .int($0.index), "minimum": .float($0.minimum), "maximum": .float($0.maximum), "mean": .float($0.mean),
              "last": .float($0.last),
            ]
          }),
      ])
    }
    return ["start": .int(replies.first?.start ?? 0), "width": .int(replies.first?.width ?? 0), "plots": .array(plots)]
  }

  private func write(_ text: String, to path: String, _ output: Output) throws(Failure) {
    guard path != "-" else { return output.bytes(Array(text.utf8)) }
    try AtomicFile.write(Array(text.utf8), to: path, force: force)
    output.note("wrote \(path)")
  }

  static func duration(_ text: String) throws -> Double {
    guard let seconds = TimeArgument.duration(text), seconds > 0 else {
      throw ValidationError("\"\(text)\" is not a duration; use for example 10min, 2h or 3d")
    }
    return seconds
  }

  private static func intervals(_ text: String) throws -> Int {
    guard let number = Int(text), (1...100_000).contains(number) else {
      throw ValidationError("\"\(text)\" is not a number of intervals; use 1 to 100000")
    }
    return number
  }
}
