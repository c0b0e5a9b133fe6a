// history import: imports a file that `history export` made, block by block. A file that was imported already adds nothing.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct HistoryImportCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Import values from a file of \"history export\".",
    discussion: """
      The file has the format blocks, csv or ndjson. It is read to the end before anything is imported, so that a mistake imports nothing. \
      An interrupted import can be repeated: what is imported already is skipped. CSV has no types: those of recorded series are used, \
      otherwise the narrowest type that fits all values. With --json: {"samples","blocks"}.
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions
  @Argument(help: "The file.", completion: .file())
  var file: String

  func perform(_ output: Output) throws {
    let client = try history.connectForWork(common, output)
    let reader = try ImportReader(file, known: try client.call(HistoryContract.SeriesMethod.self, .init()).series)
    Interrupt.catchSignals()
    var reported = 0.0
    defer { output.progress(nil) }
    func report(_ what: String, _ progress: Double) throws(Failure) {
      if Interrupt.received { throw .other("interrupted; run the command again to import the rest") }
      guard Clock.monotonic - reported >= 0.2 else { return }
      reported = Clock.monotonic
      output.progress("\(what): \(Int(progress * 100)) %")
    }
    let source = try reader.blocks { _, progress in try report("checking \(file)", progress) }
    var (samples, blocks) = (0, 0)
    try reader.blocks { line, progress in
      let parameters = HistoryContract.ImportMethod.Parameters(
        device: line.device, source: source, series: line.series, block: line.block, continues: line.continues)
      samples += try client.call(HistoryContract.ImportMethod.self, parameters).samples
      blocks += 1
      try report("importing \(file)", progress)
    }
    output.progress(nil)
    if output.json { return output.json(["samples": .int(samples), "blocks": .int(blocks)]) }
    output.note(samples == 0 && blocks > 0 ? "nothing new: the file was imported before" : "imported \(samples) samples")
  }
}
