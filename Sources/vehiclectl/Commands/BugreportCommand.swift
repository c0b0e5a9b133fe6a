// bugreport: all that helps to understand what went wrong, in one file that a person can read before sending it.

import ArgumentParser
import Protocols

struct BugreportCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "bugreport", abstract: "Collect what helps to find a fault: versions, configuration, counters, recent frames, journal.",
    discussion: """
      Writes one text file that only you can read, or standard output ("-"). Numbers of vehicles, addresses, names and places are left out; read it before you send
      it. Works without the daemon as well, and then tells what there is.
      """)

  @OptionGroup var common: CommonOptions
  @Option(help: "Listen to each device's links for this long.", transform: WatchCommand.positive)
  var seconds: Int?
  @Flag(help: "Overwrite the file.")
  var force = false
  @Argument(help: "The file to write; - is standard output.", completion: .file())
  var file: String

  func perform(_ output: Output) throws {
    if file != "-" { try AtomicFile.check(file, force: force) }
    Interrupt.catchSignals()
    var report = BugReport()
    var trouble: Failure?
    do {
      try report.addDaemonSections(common.connect(output), seconds: Double(seconds ?? 5)) { () throws(Failure) in try common.connect(output)
      }
    } catch let failure as Failure {
      trouble = failure
    }
    report.addLocalSections(socket: common.socketPath)
    let lines = report.lines + (trouble.map { ["", "== not asked ==", $0.message] } ?? [])
    let bytes = Array((lines.joined(separator: "\n") + "\n").utf8)
    if file == "-" { output.bytes(bytes) } else { try AtomicFile.write(bytes, to: file, force: force, mode: 0o600) }
    if let trouble { output.remark(trouble) }
    if file == "-" { return }
    if output.json {
      output.json(["file": .string(file), "bytes": .int(bytes.count)])
    } else {
      output.note("\(file): \(bytes.count) bytes; read it before you send it")
    }
  }
}
