// bugreport: a text file with everything that helps to diagnose a problem, redacted.

import ArgumentParser
import Protocols

struct BugreportCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "bugreport", abstract: "Write a redacted bug report.",
    discussion: """
      The report contains versions, findings of doctor, configuration, statistics, recent traffic on the links, and the journal, in one \
      text file that only you can read. VINs, addresses, names and places are redacted; read the report before you send it. If the daemon \
      is not running, the report contains only what vehiclectl itself can collect.
      """)

  @OptionGroup var common: CommonOptions
  @Option(help: "Record the traffic on the links of all devices for this many seconds (default: 5).", transform: WatchCommand.positive)
  var seconds: Int?
  @Flag(help: "Overwrite an existing file.")
  var force = false
  @Argument(help: "The file to write; - is stdout.", completion: .file())
  var file: String

  func perform(_ output: Output) throws {
    if file != "-" { try AtomicFile.check(file, force: force) }
    Interrupt.catchSignals()
    var report = BugReport()
    var failure: Failure?
    do {
      try report.addDaemonSections(common.connect(output), seconds: Double(seconds ?? 5), progress: output.progress) {
        () throws(Failure) in try common.connect(output)
      }
    } catch let error as Failure {
      failure = error
    }
    output.progress("collecting configuration and journal")
    report.addLocalSections(socket: common.socketPath)
    output.progress(nil)
    let lines = report.lines + (failure.map { ["", "== daemon: no data ==", $0.message] } ?? [])
    let bytes = Array((lines.joined(separator: "\n") + "\n").utf8)
    if file == "-" { output.bytes(bytes) } else { try AtomicFile.write(bytes, to: file, force: force, mode: 0o600) }
    if let failure { output.printError(failure) }
    if file == "-" { return }
    if output.json {
      output.json(["file": .string(file), "bytes": .int(bytes.count)])
    } else {
      output.note("wrote \(file): \(bytes.count) bytes; read it before you send it")
    }
  }
}
