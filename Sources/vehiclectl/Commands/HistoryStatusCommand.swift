// history status: shows whether values are being recorded, since when, and how much space they use.

import ArgumentParser
import Protocols
import Varlink

struct HistoryStatusCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show whether values are being recorded, and how much space they use.",
    discussion: "With --json: the reply to the method Status of vehicled-history(8).")

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions

  func perform(_ output: Output) throws { try Self.show(history, common, output) }

  static func show(_ history: HistoryOptions, _ common: CommonOptions, _ output: Output) throws {
    let client = try history.connect(common, output)
    if output.json { return output.json(try client.json(HistoryContract.StatusMethod.self, .init())) }
    let status = try client.call(HistoryContract.StatusMethod.self, .init())
    output.lines(lines(status, zone: .local(), paint: output.paint))
  }

  private static func lines(_ status: HistoryContract.StatusMethod.Result, zone: Zone, paint: (String, Style) -> String) -> [String] {
    let day = { (time: Int) in
      let civil = CivilTime(time, in: zone)
      return "\(civil.weekdayAndDay) \(civil.year) \(civil.clock)"
    }
    let share =
      status.limit > 0 ? ", \(Format.fixed(Double(status.size) / Double(status.limit) * 100, 1)) % of \(Format.size(status.limit))" : ""
    let values = status.first.flatMap { first in status.last.map { "\(day(first)) – \(day($0))" } }
    var rows: [[Cell]] = [
      [
        Cell("recording", .dim),
        status.recording ? Cell("yes", .good) : Cell("no" + (status.reason.map { ": \($0)" } ?? ""), .bad),
      ],
      [Cell("devices", .dim), Cell(status.devices.isEmpty ? "none" : status.devices.joined(separator: ", "))],
      [Cell("values", .dim), Cell(values ?? "none")], [Cell("size", .dim), Cell(Format.size(status.size) + share)],
    ]
    if status.dropped > 0 {
      rows.append([Cell("dropped", .dim), Cell("\(status.dropped) blocks, because the limit or the disk was full", .warning)])
    }
    return Table(titles: [], rows: rows).lines(paint: paint)
  }
}
