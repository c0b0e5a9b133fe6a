// history export: streams recorded samples to stdout or a file, in a format that other programs read.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct HistoryExportCommand: Subcommand {
  enum Format: String, EnumerableFlag {
    case csv, ndjson, gpx, influx, blocks

    static func help(for format: Format) -> ArgumentHelp? {
      switch format {
      case .csv: "CSV: one row per time, one column per property."
      case .ndjson: "JSON lines: one sample per line."
      case .gpx: "GPX 1.1: positions as a track, with the values of other properties."
      case .influx: "InfluxDB line protocol, also for VictoriaMetrics and QuestDB."
      case .blocks: "Compressed blocks, the smallest format, for \"history import\"."
      }
    }
  }

  enum Names: String, ExpressibleByArgument, CaseIterable {
    case own, vss
  }

  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Export recorded values as CSV, JSON lines, GPX, Influx lines or blocks.",
    discussion: """
      Values have the units in which they were recorded. In CSV, a cell is empty if there is no sample at this time or the value is \
      absent; --reasons adds a column with the reasons for absent values. With a start time, CSV and JSON lines begin with the values that \
      are valid at this time. With --gpx, the track comes from the device with \
      positions that --device names, or from the only recorded one; other devices, or --property, add values to each point. A file \
      appears under its name only once it is complete. With --json, which requires --output: {"samples","bytes","damage"}.
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions
  @Flag var format: Format
  @Option(help: ArgumentHelp("Export only this device; can be given several times.", valueName: "device"), completion: .recordedDevices)
  var device: [String] = []
  @Option(help: ArgumentHelp("Export only this property or pattern; can be given several times.", valueName: "property"))
  var property: [String] = []
  @OptionGroup var range: RangeOptions
  @Flag(help: "With --csv, add a column with the reasons for absent values.")
  var reasons = false
  @Option(
    help: ArgumentHelp(
      "With --csv, --ndjson or --influx, names and units of values: own, or vss for the signals of COVESA VSS 6.0; values without one are "
        + "omitted.", valueName: "names"))
  var names = Names.own
  @Option(name: .shortAndLong, help: ArgumentHelp("Write to this file (default: stdout).", valueName: "file"), completion: .file())
  var output: String?
  @Flag(help: "Overwrite an existing file.")
  var force = false

  func perform(_ terminal: Output) throws {
    try range.check()
    if names == .vss, format == .gpx || format == .blocks {
      throw Failure.usage("--names vss requires --csv, --ndjson or --influx")
    }
    let path = output == "-" ? nil : output
    if terminal.json, path == nil { throw Failure.usage("--json prints a summary: use --output FILE to write the values to a file") }
    if let path { try AtomicFile.check(path, force: force) }
    Interrupt.catchSignals()
    let recorded = RecordedProperties(
      try history.connect(common, terminal).call(HistoryContract.SeriesMethod.self, .init()).series)
    let (selected, position) = try selection(recorded)
    let streams = try selected.map { device, properties in
      try SampleStream(
        history.connect(common, terminal),
        .init(device: device, properties: properties, start: range.since, end: range.until), earliest: earliest)
    }
    let merge = SampleMerge(streams)
    let file = try ExportFile(path, force: force)
    let signals = names == .vss ? VSSExport(merge.series, recorded: recorded.series) : nil
    if let signals, signals.series.isEmpty { throw Failure.noSuchProperty("none of these values has a signal in VSS") }
    var format = format(signals?.series ?? merge.series, position)
    let count = try Self.copy(merge, signals, &format, to: file, terminal)
    terminal.noteDamage(merge.damage)
    if let gpx = format as? GPXExport, gpx.count == 0 { terminal.note("no position of \(position ?? "") in this range") }
    if terminal.json {
      terminal.json(["samples": .int(count), "bytes": .int(file.size), "damage": .array(merge.damage.map(JSON.string))])
    } else {
      terminal.note("exported \(count) samples, \(vehiclectl.Format.size(file.size))")
    }
  }

  /// The time of the first row, for formats in which a file begins with the values valid at its start. Files of consecutive times do not
  /// overlap then, and can be imported one after the other.
  private var earliest: Int? { format == .csv || format == .ndjson ? range.since : nil }

  /// Copies all rows. Returns the number of samples.
  private static func copy(
    _ merge: SampleMerge, _ signals: VSSExport?, _ format: inout any ExportFormat, to file: ExportFile, _ terminal: Output
  ) throws(Failure) -> Int {
    var count = 0
    var reported = 0.0
    defer { terminal.progress(nil) }
    try file.write(format.start())
    while var row = try merge.next() {
      if let signals {
        row = signals.row(row)
        if row.samples.isEmpty { continue }
      }
      count += row.samples.count
      try file.write(try format.row(row))
      if count & 0xFF < row.samples.count, Clock.monotonic - reported >= 0.2 {
        if Interrupt.received { throw .other("interrupted; no file was written") }
        reported = Clock.monotonic
        terminal.progress("exporting: \(Int(merge.progress * 100)) %, \(vehiclectl.Format.size(file.size))")
      }
    }
    try file.write(try format.end())
    try file.finish()
    return count
  }

  private func format(_ series: [HistoryContract.Series], _ position: String?) -> any ExportFormat {
    switch format {
    case .csv: CSVExport(series, zone: .local(), hasReasons: reasons)
    case .ndjson: NDJSONExport(series)
    case .gpx: GPXExport(series, device: position ?? "")
    case .influx: InfluxExport(series)
    case .blocks: BlockExport(series, from: range.since)
    }
  }

  /// The devices and properties to export, and for GPX the device with the positions.
  private func selection(_ recorded: RecordedProperties) throws(Failure) -> ([(device: String, properties: [String])], position: String?) {
    guard format == .gpx else { return (try recorded.selection(devices: device, properties: property), nil) }
    let candidates = device.filter(recorded.hasPosition) + recorded.devices.filter(recorded.hasPosition)
    guard let position = candidates.first else {
      throw .noSuchProperty(
        "no positions are recorded; add a device of kind position, and list it in the configuration of vehicled-history")
    }
    if device.filter(recorded.hasPosition).isEmpty, candidates.count > 1 {
      throw .usage("more than one device has positions: \(candidates.joined(separator: ", ")); select one with --device NAME")
    }
    // By default only the positions: a car has too many values to add them all to each point.
    let others = device.filter { $0 != position }
    let values =
      device.isEmpty && property.isEmpty
      ? [] : try recorded.selection(devices: others.isEmpty ? device : others, properties: property).filter { $0.device != position }
    let own = ["latitude", "longitude", "altitude", "speed", "track"].filter { name in
      recorded.series.contains { $0.device == position && $0.property == name }
    }
    return ([(position, own)] + values, position)
  }
}
