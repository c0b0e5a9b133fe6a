// log: the log records of the daemon, or of one device. They come from the journal if it can be read, because the journal also has the
// records of earlier runs; otherwise from the daemon's memory. New records (--follow) always come from the daemon.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct LogCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "log", abstract: "Show the log of the daemon or of a device.",
    discussion: """
      Reads the journal of systemd if permitted, otherwise the daemon's latest records in memory. With --json, prints one record per line.
      """)

  @OptionGroup var common: CommonOptions
  @Flag(name: .shortAndLong, help: "Print new records as they occur.")
  var follow = false
  @Option(
    name: [.customShort("n"), .long], help: ArgumentHelp("Print at most this many earlier records.", valueName: "n"),
    transform: WatchCommand.positive)
  var lines = 100
  @Option(help: ArgumentHelp("Print records since this time: \(TimeArgument.grammar).", valueName: "time"), transform: TimeArgument.option)
  var since: Int?
  @Option(
    help: ArgumentHelp("Print records of this level and more severe ones.", valueName: "level"), completion: .list(LogFormat.levels),
    transform: LogLevelCommand.level)
  var level = "info"
  @Argument(help: "Only records about this device.", completion: .devices)
  var device: String?

  func perform(_ output: Output) throws {
    var width = 0
    let journal = common.socketPath == Client.defaultSocket ? JournalRecords.latest(lines, of: device, level: level, since: since) : nil
    if let journal, !follow { return show(journal, output, &width) }
    let client: Client
    do throws(Failure) { client = try common.connect(output) } catch {
      guard let journal else { throw error }
      show(journal, output, &width)
      throw error
    }
    let parameters = Contract.Log.Parameters(device: device, level: level)
    guard follow else { return show(latest(try client.call(Contract.Log.self, parameters).records), output, &width) }
    Interrupt.catchSignals()
    var earlier = journal
    var isFirst = true
    try client.stream(Contract.Log.self, parameters, firstReply: common.replyTimeout, tick: 1, laterReplies: nil) { result in
      if Interrupt.received { return false }
      guard let result else { return true }
      if let omitted = result.omitted { output.note("\(omitted) records were omitted: this program read too slowly") }
      if isFirst {
        // The journal may already have these records, but with the time at which it received them.
        let last = earlier?.last.map { $0.time + 1_000_000 }
        let isNew = { (record: Contract.LogRecord) in
          guard let last, record.time <= last else { return true }
          return record.time > last - 2_000_000 && !(earlier ?? []).suffix(20).contains { $0.message == record.message }
        }
        show(earlier.map { $0 + result.records.filter(isNew) } ?? latest(result.records), output, &width)
        (earlier, isFirst) = (nil, false)
      } else {
        show(result.records, output, &width)
      }
      return true
    }
  }

  /// The records from the daemon's memory that `--since` and `--lines` select.
  private func latest(_ records: [Contract.LogRecord]) -> [Contract.LogRecord] {
    records.filter { $0.time >= since ?? .min }.suffix(lines)
  }

  /// Prints the records. `width` is the width of the subject column; it grows to fit the records.
  private func show(_ records: [Contract.LogRecord], _ output: Output, _ width: inout Int) {
    let now = Clock.wall
    width = max(width, LogFormat.subjectWidth(records))
    output.lines(
      records.map { record in
        output.json ? JSON(record).text : LogFormat.line(record, now: now, subjectWidth: width, paint: output.paint)
      })
  }
}

extension JSON {
  /// A log record.
  fileprivate init(_ record: Contract.LogRecord) {
    self = .members([
      "time": .int(record.time), "level": .string(record.level), "device": record.device.map(JSON.string),
      "link": record.link.map(JSON.string), "message": .string(record.message), "details": record.details.map(JSON.texts),
    ])
  }
}
