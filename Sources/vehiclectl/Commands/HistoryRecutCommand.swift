// history recut: determines again where trips, charges and parked periods start and end, from the recorded values.

import ArgumentParser
import Protocols
import Varlink

struct HistoryRecutCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "recut", abstract: "Recompute where trips, charges and parked periods start and end.",
    discussion: """
      Use this after changing the rules in the configuration of vehicled-history. Periods whose values have since been deleted are \
      not changed. With --json: {"periods":N}.
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions
  @OptionGroup var range: RangeOptions
  @Option(help: "Recompute only those of this device.", completion: .recordedDevices)
  var device: String?

  func perform(_ output: Output) throws {
    try range.check()
    let client = try history.connect(common, output)
    let parameters = HistoryContract.RecutMethod.Parameters(device: device, start: range.since, end: range.until)
    let result = try client.callShowingProgress(
      HistoryContract.RecutMethod.self, parameters, "computing", common, output, progress: \.progress)
    let count = result.periods ?? 0
    output.json ? output.json(["periods": .int(count)]) : output.line("\(count) trips, charges and parked periods")
  }
}
