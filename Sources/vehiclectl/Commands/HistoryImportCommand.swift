// history import: imports a file written by `history export`, block by block. Importing a file again adds nothing.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct HistoryImportCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Import values from a file written by \"history export\".",
    discussion: """
      The format of the file is blocks, csv or ndjson. The whole file is checked first: if it contains a mistake, nothing is imported. \
      An interrupted import can be repeated: values that are already imported are skipped. CSV has no types: a column has the type of the \
      recorded series, or else the narrowest type that fits all its values. With --json: {"samples","blocks"}.
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions
  @Argument(help: "The file to import.", completion: .file())
  var file: String

  func perform(_ output: Output) throws {
    let client = try history.connectForLongCalls(common, output)
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
    output.note(samples == 0 && blocks > 0 ? "nothing to import: the file was imported before" : "imported \(samples) samples")
  }
}
