// history series: lists the recorded properties. A property whose type or unit has changed has one line per combination.

import ArgumentParser
import Protocols
import Varlink

struct HistorySeriesCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "series", abstract: "List the recorded properties.",
    discussion: "With --json: {\"series\":[{\"id\",\"device\",\"property\",\"type\",\"unit\"}]}.")

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions
  @Argument(help: "List only those of this device.", completion: .recordedDevices)
  var device: String?

  func perform(_ output: Output) throws {
    let client = try history.connect(common, output)
    if output.json { return output.json(try client.json(HistoryContract.SeriesMethod.self, .init(device: device))) }
    let series = try client.call(HistoryContract.SeriesMethod.self, .init(device: device)).series
    guard !series.isEmpty else { return output.note("nothing is recorded yet; see: vehiclectl history status") }
    var table = Table("property", "type", "unit")
    table.rows = series.map { [Cell($0.reference), Cell($0.type), Cell($0.unit ?? "")] }
    Pager.show(table.lines(paint: output.paint), output)
  }
}
