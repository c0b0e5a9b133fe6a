// history delete: permanently deletes recorded values, after confirmation.

import ArgumentParser
import Protocols
import Varlink

struct HistoryDeleteCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "delete", abstract: "Permanently delete recorded values of a device.",
    discussion: """
      Deletes all values of the device or those of one property, in a time range or in the entire history. Without --property, trips, \
      charges and parked periods within the range are deleted as well. Asks for confirmation; without a terminal, --yes is required. With \
      --json, which requires --yes: {"damage":[…]}, the damaged blocks that were deleted entirely.
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions
  @OptionGroup var range: RangeOptions
  @Option(help: "Delete only the values of this property.")
  var property: String?
  @Flag(help: "Delete without confirmation.")
  var yes = false
  @Argument(help: "The device.", completion: .recordedDevices)
  var device: String

  func perform(_ output: Output) throws {
    try range.check()
    guard yes || (Prompt.isInteractive && !output.json) else {
      throw Failure.usage(
        "nothing deleted: cannot ask for confirmation without a terminal or with --json; use --yes to delete without confirmation")
    }
    let client = try history.connectForLongCalls(common, output)
    let recorded = RecordedProperties(try client.call(HistoryContract.SeriesMethod.self, .init()).series)
    _ = try recorded.selection(devices: [device], properties: property.map { [$0] } ?? [])
    if !yes {
      let answer = try Prompt.line("Delete \(subject)? [y/N] ") ?? ""
      guard ["y", "yes"].contains(answer.lowercased()) else { throw Failure.other("nothing deleted: not confirmed") }
    }
    let result = try client.call(
      HistoryContract.DeleteMethod.self, .init(device: device, property: property, start: range.since, end: range.until))
    for text in result.damage { output.note("deleted an entire damaged block: \(Output.oneLine(text))") }
    if output.json { output.json(["damage": .array(result.damage.map(JSON.string))]) } else { output.note("deleted \(subject)") }
  }

  /// `all values, trips, charges and parked periods of ev from Mon 23 Nov 2026 08:12 on`
  private var subject: String {
    let zone = Zone.local()
    let dateAndTime = { (time: Int) in
      let civil = CivilTime(time, in: zone)
      return "\(civil.weekdayAndDay) \(civil.year) \(civil.clock)"
    }
    let what = property.map { "the values of \(device).\($0)" } ?? "all values, trips, charges and parked periods of \(device)"
    switch (range.since, range.until) {
    case (let start?, let end?): return "\(what) from \(dateAndTime(start)) to \(dateAndTime(end))"
    case (let start?, nil): return "\(what) from \(dateAndTime(start)) on"
    case (nil, let end?): return "\(what) up to \(dateAndTime(end))"
    case (nil, nil): return "\(what) in the entire history"
    }
  }
}
