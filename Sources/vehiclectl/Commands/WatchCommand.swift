// watch: values as they change. On a terminal a table that is redrawn in place; otherwise, and with --json, one JSON object per line: a flat
// reading, or an event {"event","device","text","time"}. The first lines are the current values. Exits with 0 on SIGINT.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct WatchCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "watch", abstract: "Show values as they change.",
    discussion: """
      On a terminal, shows a table. Otherwise, and with --json, each line is a reading, as in "get --json", or an event:
      {"event":NAME,"device":DEVICE,"text":TEXT,"time":MICROSECONDS}. The first lines are the current values.
      """)

  @OptionGroup var common: CommonOptions
  @Option(help: ArgumentHelp("Stop after this many lines or table updates.", valueName: "n"), transform: WatchCommand.positive)
  var count: Int?
  @Option(
    help: ArgumentHelp(
      "Minimum interval between updates in ms, 0 (print every change) to \(intervals.upperBound).", valueName: "ms"),
    transform: WatchCommand.milliseconds)
  var interval: Int?
  @Argument(help: ArgumentHelp("PROPERTY or DEVICE.PROPERTY (default: all).", valueName: "ref"), completion: .properties)
  var references: [String] = []

  func perform(_ output: Output) throws {
    let units = try common.unitSystem()
    let client = try common.connect(output)
    Interrupt.catchSignals()
    let parameters = Contract.Watch.Parameters(
      references: references.isEmpty ? nil : references, minimumIntervalMilliseconds: interval)
    if !output.json, Terminal.isTerminal(STDOUT_FILENO), Environment["TERM"] != "dumb" {
      try table(client, parameters, units, output)
    } else {
      try lines(client, parameters, units, output)
    }
  }

  private func lines(_ client: Client, _ parameters: Contract.Watch.Parameters, _ units: Units, _ output: Output) throws {
    var remaining = count ?? .max
    try client.stream(Contract.Watch.self, parameters, firstReply: common.replyTimeout, tick: 1, laterReplies: Client.watchTimeout) {
      result in
      if Interrupt.received { return false }
      guard let result else { return true }
      let readings = (result.snapshot ?? []).flatMap(\.readings) + (result.changes ?? [])
      let lines = (readings.map { JSON(units.converted($0)) } + (result.events ?? []).map { JSON($0) }).prefix(remaining)
      output.lines(lines.map(\.text))
      remaining -= lines.count
      return remaining > 0
    }
  }

  private func table(_ client: Client, _ parameters: Contract.Watch.Parameters, _ units: Units, _ output: Output) throws {
    var table = WatchTable()
    var screen = Screen(output)
    var updates = 0
    JobControl.catchSignals()
    defer { screen.leave() }
    try client.stream(Contract.Watch.self, parameters, firstReply: common.replyTimeout, tick: 0.25, laterReplies: Client.watchTimeout) {
      result in
      if Interrupt.received { return false }
      JobControl.handlePending { screen.leave() }
      if let result {
        table.apply(units.converted(result), at: Clock.monotonic, wall: Clock.wall)
        if result.snapshot != nil || result.changes != nil { updates += 1 }
      }
      let last = updates >= count ?? .max
      screen.draw(last: last) { table.lines(at: Clock.monotonic, wall: Clock.wall, rows: $0, paint: output.paint) }
      return !last
    }
  }

  private static let intervals = Contract.Watch.intervals

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
