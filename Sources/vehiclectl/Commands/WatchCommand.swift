// watch: shows values as they change. On a terminal, this is the full-screen view of Watch/. Otherwise, and with --json, it prints one JSON
// object per line: a flat reading, or an event {"event","device","text","time"}. The first lines are the current values. Reconnects if the
// daemon restarts. Exits with 0 on SIGINT.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct WatchCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "watch", abstract: "Show values as they change.",
    discussion: """
      On a terminal, shows a full-screen view; ? lists its keys, q quits. With --plot, plots numbers as they change. Otherwise, and with \
      --json, prints one reading per line, as in "get --json", or one event: {"event":NAME, "device":DEVICE, "text":TEXT, \
      "time":MICROSECONDS}. The first lines are the current values. If the daemon restarts, the command reconnects; --timeout limits the \
      time without a connection. A pattern such as 'ev.cell*' selects every property that it matches.

      With --frames, shows the frames of one device with a CAN adapter: for each identifier the count, the rate and the last bytes; bytes \
      that changed are marked. Otherwise, and with --json, prints one frame per line: {"time":MICROSECONDS, "id":HEX, "bytes":HEX, \
      "kind":data|remote|error, "sent":BOOL}.
      """)

  @OptionGroup var common: CommonOptions
  @Option(help: ArgumentHelp("Stop after this many lines or updates.", valueName: "n"), transform: WatchCommand.positive)
  var count: Int?
  @Option(
    help: ArgumentHelp(
      "Minimum interval between updates in ms, 0 (print every change) to \(intervals.upperBound).", valueName: "ms"),
    transform: WatchCommand.milliseconds)
  var interval: Int?
  @Flag(help: "Show the frames of a CAN bus instead of values.")
  var frames = false
  @Flag(help: "On a terminal, plot these properties as they change.")
  var plot = false
  @Option(
    help: ArgumentHelp("With --plot, the time that is shown: 30s, 5min, at most 1h (default: 1min).", valueName: "duration"),
    transform: WatchCommand.span)
  var last = 60.0
  @Argument(
    help: ArgumentHelp("DEVICE, PROPERTY, DEVICE.PROPERTY, or a pattern (default: all).", valueName: "ref"), completion: .properties)
  var references: [String] = []

  func perform(_ output: Output) throws {
    let units = try common.unitSystem()
    if plot, references.isEmpty { throw Failure.usage("--plot needs the properties to plot; use for example watch --plot speed") }
    if frames {
      guard !plot, interval == nil, references.count == 1 else {
        throw Failure.usage("--frames needs one device and neither --plot nor --interval; use for example watch --frames can0")
      }
    }
    let client = try common.connect(output)
    Interrupt.catchSignals()
    let isFullScreen = !output.json && Terminal.isTerminal(STDOUT_FILENO) && Environment["TERM"] != "dumb"
    if frames { return try showFrames(of: references[0], client, isFullScreen: isFullScreen, output) }
    let schemas = isFullScreen || !references.isEmpty ? try client.call(Contract.Describe.self, .init(device: nil)).schemas : []
    let selected = references.isEmpty ? nil : try References(references, in: schemas)
    if isFullScreen, plot, let selected {
      var plot = LivePlot(selected, in: schemas, span: last)
      prefill(&plot, units)
      let parameters = parameters(selected, in: schemas, interval: interval ?? Self.frameInterval)
      try show(PlotScreen(units, plot), client, parameters, output)
    } else if isFullScreen {
      let parameters = parameters(selected, in: schemas, interval: interval ?? Self.frameInterval, withHeader: true)
      let view = WatchScreen(units, schemas, selecting: selected) { device in
        try? common.connect(output).call(Contract.Describe.self, .init(device: device)).schemas.first
      }
      try show(view, client, parameters, output)
    } else {
      try printLines(client, parameters(selected, in: schemas, interval: interval), selected, units, output)
    }
  }

  /// Adds the values that were recorded recently, if the history service is running.
  private func prefill(_ plot: inout LivePlot, _ units: Units) {
    guard let client = try? Client(path: HistoryOptions.defaultSocketPath, timeout: min(2, common.replyTimeout), service: .history) else {
      return
    }
    let (names, length) = plot.past
    let end = Clock.wall
    for name in names {
      let parts = name.split(separator: ".", maxSplits: 1).map(String.init)
      let parameters = HistoryContract.PlotMethod.Parameters(
        device: parts[0], property: parts.last ?? "", start: Int((end - length) * 1e6), end: Int(end * 1e6), points: Self.pastPoints)
      do throws(Failure) {
        plot.prefill(PlotSeries(name, try client.call(HistoryContract.PlotMethod.self, parameters)).converted(to: units))
      } catch {
        // The service rejects a property that it has not recorded; others may follow. After any other error, such as a timeout, stop: a
        // late reply would be taken for the reply to the next call.
        guard case .history = error else { return }
      }
    }
  }

  /// The number of recorded intervals to request: half a second each for an hour, the longest time that can be shown.
  private static let pastPoints = 7200

  /// The parameters for these references. For a device or a pattern, the command watches everything and filters the replies itself, because
  /// a device declares more properties once it has detected its vehicle. `withHeader` adds what the headers of the devices show.
  private func parameters(
    _ references: References?, in schemas: [Contract.Schema], interval: Int?, withHeader: Bool = false
  ) -> Contract.Watch.Parameters {
    var names = references.flatMap { $0.areExact ? $0.expanded(in: schemas) : nil }
    if withHeader, let references, let selected = names {
      let header = schemas.filter { references.selects(device: $0.device) }.flatMap { schema in
        schema.properties.filter { WatchModel.headerProperties.contains($0.name) }.map { "\(schema.device).\($0.name)" }
      }
      names = selected + header.filter { !selected.contains($0) }
    }
    return Contract.Watch.Parameters(references: names, minimumIntervalMilliseconds: interval)
  }

  private func stream<Method: VarlinkMethod>(
    of method: Method.Type, tick: Double, laterReplies: Double?, _ output: Output
  ) -> WatchStream<Method> {
    WatchStream(
      connect: { () throws(Failure) in try common.connect(output) }, firstReply: common.replyTimeout, limit: common.timeout, tick: tick,
      laterReplies: laterReplies)
  }

  private func showFrames(of device: String, _ client: Client, isFullScreen: Bool, _ output: Output) throws {
    let parameters = Contract.Record.Parameters(device: device)
    guard !isFullScreen else { return try show(FrameScreen(device: device), client, parameters, laterReplies: nil, output) }
    var frames = FrameStream()
    var remaining = count ?? .max
    var failure: Failure?
    try stream(of: Contract.Record.self, tick: 1, laterReplies: nil, output).run(client, parameters) { update in
      if Interrupt.received { return false }
      switch update {
      case .nothing: return true
      case .lost(let failure):
        output.note("\(failure.reconnecting); frames are missing")
        frames = FrameStream()
        return true
      case .reply(let result):
        var lines: [String] = []
        do throws(Failure) { try frames.read(result.line, device: device) { lines.append(Self.line($0)) } } catch {
          failure = error
          return false
        }
        output.lines(Array(lines.prefix(remaining)))
        remaining -= min(lines.count, remaining)
        return remaining > 0
      }
    }
    if let failure { throw failure }
  }

  /// A frame as a line of JSON.
  private static func line(_ entry: FrameStream.Entry) -> String {
    let frame = entry.frame
    let kind =
      switch frame.kind {
      case .data: "data"
      case .remote: "remote"
      case .error: "error"
      }
    let bytes = frame.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined()
    let members: JSON = [
      "time": .int(Int(entry.time)), "id": .string(frame.identifier.text), "bytes": .string(bytes),
      "kind": .string(kind), "sent": .bool(entry.isSent),
    ]
    return members.text
  }

  private func printLines(
    _ client: Client, _ parameters: Contract.Watch.Parameters, _ references: References?, _ units: Units, _ output: Output
  ) throws {
    var remaining = count ?? .max
    // Without devices the first reply has no values. An explicit timeout also limits the wait for the first value.
    let deadline = common.timeout.map { Clock.monotonic + $0 }
    var (isLate, isLost, ended) = (false, false, EndedProperties())
    try stream(of: Contract.Watch.self, tick: 1, laterReplies: Client.watchTimeout, output).run(client, parameters) { update in
      if Interrupt.received { return false }
      isLate = remaining == count ?? .max && deadline.map { Clock.monotonic >= $0 } ?? false
      if isLate { return false }
      if case .lost(let failure) = update, !isLost {
        // A daemon that has started again knows the properties of a vehicle only once it has detected it.
        (isLost, ended) = (true, EndedProperties())
        output.note(failure.reconnecting)
      }
      guard case .reply(let result) = update else { return true }
      if isLost { output.note("reconnected") }
      isLost = false
      let readings = (ended.readings(result) + (result.snapshot ?? []).flatMap(\.readings) + (result.changes ?? [])).filter {
        references?.selects($0.device, $0.property) ?? true
      }
      let events = (result.events ?? []).filter { references?.selects(device: $0.device) ?? true }
      let lines = (readings.map { JSON(units.converted($0)) } + events.map { JSON($0) }).prefix(remaining)
      output.lines(lines.map(\.text))
      remaining -= lines.count
      return remaining > 0
    }
    if isLate { throw Failure.timeout(seconds: common.replyTimeout) }
  }

  /// Shows a full-screen view. With --count the last frame is printed at the end, because the terminal then restores its previous content.
  private func show<View: LiveView>(
    _ view: View, _ client: Client, _ parameters: View.Method.Parameters, laterReplies: Double? = Client.watchTimeout, _ output: Output
  ) throws {
    var screen = LiveScreen(view, colour: output.colour)
    let stream = stream(of: View.Method.self, tick: FullScreen.period, laterReplies: laterReplies, output)
    let lines = try screen.run(stream, client, parameters, count: count)
    if count != nil { output.lines(lines.filter { !$0.isEmpty }) }
  }

  /// The time between two frames in ms: the daemon merges changes that no frame would show.
  private static let frameInterval = Int(FullScreen.period * 1000)
  private static let intervals = Contract.Watch.intervals

  private static func span(_ text: String) throws -> Double {
    let seconds = try PlotCommand.duration(text)
    guard (1...3600).contains(seconds) else { throw ValidationError("\"\(text)\" cannot be shown; use 1s to 1h") }
    return seconds
  }

  private static func milliseconds(_ text: String) throws -> Int {
    guard let number = Int(text), intervals.contains(number) else {
      throw ValidationError("\"\(text)\" is not an interval; use milliseconds, \(intervals.lowerBound) to \(intervals.upperBound)")
    }
    return number
  }

  static func positive(_ text: String) throws -> Int {
    guard let number = Int(text), number > 0 else { throw ValidationError("\"\(text)\" is not a positive integer") }
    return number
  }
}
