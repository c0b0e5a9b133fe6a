// The shared part of the commands that list trips, charges or parked periods, or show one of them.

import ArgumentParser
import Protocols
import Varlink

struct PeriodListOptions: ParsableArguments {
  @OptionGroup var range: RangeOptions
  @Option(
    name: [.customShort("n"), .long], help: ArgumentHelp("List at most this many of the latest ones.", valueName: "n"),
    transform: WatchCommand.positive)
  var count = 20
  @Option(help: "List only those of this device.", completion: .recordedDevices)
  var device: String?
  @Flag(help: "Do not use a pager for output that is longer than the terminal.")
  var noPager = false
}

/// A command that lists periods of one kind.
protocol PeriodListCommand: Subcommand {
  static var kind: PeriodTable.Kind { get }
  var history: HistoryOptions { get }
  var list: PeriodListOptions { get }
}

extension PeriodListCommand {
  func perform(_ output: Output) throws {
    let units = try common.unitSystem()
    try list.range.check()
    let client = try history.connect(common, output)
    let parameters = HistoryContract.PeriodsMethod.Parameters(
      device: list.device, kind: Self.kind.rawValue, start: list.range.since, end: list.range.until, limit: list.count)
    if output.json {
      let replies = try client.callAll(HistoryContract.PeriodsMethod.self, parameters, as: JSON.self)
      return output.json(["periods": .array(replies.flatMap(Self.periods).reversed())])
    }
    let periods = try client.callAll(HistoryContract.PeriodsMethod.self, parameters, as: HistoryContract.PeriodsMethod.Result.self)
      .flatMap(\.periods)
    guard !periods.isEmpty else {
      return output.note("no \(Self.kind.noun)s\(parameters.start == nil && parameters.end == nil ? " yet" : " in this range")")
    }
    let table = PeriodTable(Self.kind, periods.reversed(), units, now: Clock.wall, local: .local())
    let width = Help.width
    var lines = table.lines(width: width, paint: output.paint)
    if !output.quiet { lines += [""] + table.legend(width: width, paint: output.paint) }
    list.noPager ? output.lines(lines) : Pager.show(lines, output)
  }

  private static func periods(of reply: JSON) -> [JSON] {
    if case .array(let periods)? = reply["periods"] { periods } else { [] }
  }
}

/// A command that shows one period of one kind.
protocol PeriodCommand: Subcommand {
  static var kind: PeriodTable.Kind { get }
  var history: HistoryOptions { get }
  var number: Int? { get }
}

extension PeriodCommand {
  func perform(_ output: Output) throws {
    let units = try common.unitSystem()
    let client = try history.connect(common, output)
    let number = try number ?? latest(client)
    if output.json { return output.json(try client.json(HistoryContract.PeriodMethod.self, .init(number: number))) }
    let result = try client.call(HistoryContract.PeriodMethod.self, .init(number: number))
    output.lines(PeriodDetail(result, units).lines(width: Help.width, paint: output.paint))
  }

  private func latest(_ client: Client) throws(Failure) -> Int {
    let parameters = HistoryContract.PeriodsMethod.Parameters(kind: Self.kind.rawValue, limit: 1)
    guard let last = try client.call(HistoryContract.PeriodsMethod.self, parameters).periods.last else {
      throw .noSuchProperty("no \(Self.kind.rawValue) yet; see: vehiclectl history status")
    }
    return last.number
  }
}
