// dtc: the trouble codes of a car, by controller.

import ArgumentParser
import Protocols

struct DtcCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "dtc", abstract: "List the trouble codes of a car, or clear them.",
    usage: "vehiclectl dtc [<options>] [<device>]\nvehiclectl dtc clear [<options>] [<device>]",
    discussion: """
      Stored, pending and permanent codes of all controllers, with their meaning where the code is standard.
      With --json: {"device","codes":[{"ecu","code","states","meaning"}],"note"}.
      """,
    subcommands: [DtcClearCommand.self])

  @OptionGroup var common: CommonOptions
  @Argument(help: "The device, where several have codes.", completion: .devices(doing: TroubleCodes.reading))
  var device: String?

  func perform(_ output: Output) throws {
    let codes = try TroubleCodes(of: device, try common.connect(output))
    let report = try codes.read()
    if output.json { return output.json(.members(["device": .string(codes.device), "codes": report.codes, "note": report.note])) }
    output.lines(report.lines(width: Output.width, paint: output.paint))
  }
}
