// dtc clear: shows what clearing the trouble codes deletes, asks for confirmation, and has the daemon clear them.

import ArgumentParser
import Protocols

struct DtcClearCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "clear", abstract: "Clear the trouble codes of a car.",
    discussion: """
      The command fails while the vehicle moves or its engine runs: leave the ignition on and the engine off. It shows what will be \
      lost: trouble codes, freeze frames and completed readiness monitors. It then asks for confirmation; without a terminal, --yes is \
      required. The daemon saves the lost data to the journal and the state directory first. The exit status is 1 if an ECU has not \
      cleared its codes.
      With --json, which requires --yes: {"device", "lost": {"codes", "frames", "tests", "note"}, "results": [{"ecu", "result", \
      "reason"}], "remaining", "note"}; codes and remaining as in dtc.
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Clear without confirmation.")
  var yes = false
  @Argument(
    help: "The device; required if more than one device supports trouble codes.", completion: .devices(doing: TroubleCodes.clearAction))
  var device: String?

  func perform(_ output: Output) throws {
    guard yes || !output.json else {
      throw Failure.usage("nothing cleared: --json does not ask for confirmation; use --yes to clear without it")
    }
    guard yes || Prompt.isInteractive else {
      throw Failure.usage("nothing cleared: cannot ask for confirmation without a terminal; use --yes to clear without it")
    }
    let client = try common.connect(output)
    let car = try Cars(device, doing: TroubleCodes.clearAction, for: "dtc clear", client).only()
    let codes = TroubleCodes(car, client)
    if let note = SleepingVehicle.waking(car.device, car.state) { output.note(note) }
    let loss = try codes.previewClearing()
    if !output.json, !(output.quiet && yes) { output.promptText(["will be lost:"] + loss.lines(width: Output.width, paint: output.paint)) }
    if !yes {
      let answer = try Prompt.line("Clear the trouble codes of \(codes.device)? [y/N] ") ?? ""
      guard ["y", "yes"].contains(answer.lowercased()) else { throw Failure.other("nothing cleared: not confirmed") }
    }
    let result = try codes.clear(within: common.replyTimeout)
    if output.json {
      output.json(
        .members([
          "device": .string(codes.device),
          "lost": .members(["codes": loss.codes, "frames": loss.frames, "tests": loss.tests, "note": loss.note]),
          "results": result.results, "remaining": result.codes, "note": result.note,
        ]))
    } else {
      output.lines(result.lines(width: Output.width, paint: output.paint))
    }
    guard result.isComplete else {
      output.printError(.other("not all ECUs have cleared their trouble codes"))
      throw ExitCode(1)
    }
  }
}
