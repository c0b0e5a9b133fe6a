// history recut: computes trips, charges and parkings again from the recorded values.

import ArgumentParser
import Protocols
import Varlink

struct HistoryRecutCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "recut", abstract: "Compute trips, charges and parkings again.",
    discussion: """
      Use it after a change of the rules in the configuration of vehicled-history. What is computed from values that are deleted by now \
      stays as it is. With --json: {"periods":N}.
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions
  @OptionGroup var range: RangeOptions
  @Option(help: "Only those of this device.", completion: .recordedDevices)
  var device: String?

  func perform(_ output: Output) throws {
    try range.check()
    let client = try history.connect(common, output)
    let parameters = HistoryContract.RecutMethod.Parameters(device: device, start: range.since, end: range.until)
    let result = try client.following(HistoryContract.RecutMethod.self, parameters, "computing", common, output, progress: \.progress)
    let count = result.periods ?? 0
    output.json ? output.json(["periods": .int(count)]) : output.line("\(count) trips, charges and parkings")
  }
}
