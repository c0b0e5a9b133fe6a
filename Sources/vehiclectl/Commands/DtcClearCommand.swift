// dtc clear: shows what clearing the trouble codes takes away, asks, and has the daemon clear them. Must never clear anything that
// nobody has said yes to.

import ArgumentParser
import Protocols

struct DtcClearCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "clear", abstract: "Clear the trouble codes, once what is lost is kept.",
    discussion: """
      Shows what will be lost: codes, frozen frames, and self-tests that are complete. Asks on a terminal; elsewhere --yes says it. \
      What is lost is kept in the journal and in the state directory first. Refused while the vehicle moves or its engine runs: leave \
      the ignition on and the engine off. Exit status 1 where a controller has not cleared.
      With --json (and --yes): {"device","lost":{"codes","frames","tests","note"},"results":[{"ecu","result","reason"}],"left","note"}; \
      codes and left as in dtc.
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Clear without asking.")
  var yes = false
  @Argument(help: "The device, where several have codes.", completion: .devices(doing: TroubleCodes.clearing))
  var device: String?

  func perform(_ output: Output) throws {
    guard yes || (Prompt.isInteractive && !output.json) else {
      throw Failure.usage("nobody is here to be asked, so nothing is cleared; say --yes, or ask on a terminal")
    }
    let codes = try TroubleCodes(of: device, try common.connect(output))
    let loss = try codes.loss()
    if !output.json, !(output.quiet && yes) { output.remarks(["will be lost:"] + loss.lines(width: Output.width, paint: output.paint)) }
    if !yes {
      let answer = try Prompt.shown("Clear the trouble codes of \(codes.device)? [y/N] ") ?? ""
      guard ["y", "yes"].contains(answer.lowercased()) else { throw Failure.other("nothing was cleared") }
    }
    let result = try codes.clear(within: common.replyTimeout)
    if output.json {
      output.json(
        .members([
          "device": .string(codes.device),
          "lost": .members(["codes": loss.codes, "frames": loss.frames, "tests": loss.tests, "note": loss.note]),
          "results": result.results, "left": result.codes, "note": result.note,
        ]))
    } else {
      output.lines(result.lines(width: Output.width, paint: output.paint))
    }
    guard result.isComplete else {
      output.remark(.other("not every controller has cleared its codes"))
      throw ExitCode(1)
    }
  }
}
