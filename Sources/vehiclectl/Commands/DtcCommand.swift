// dtc: the trouble codes of a car by ECU, with their freeze frames.

import ArgumentParser
import Protocols

struct DtcCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "dtc", abstract: "List or clear the trouble codes (DTCs) of a car.",
    usage: "vehiclectl dtc [<options>] [--ecu <id> ...] [<device>]\nvehiclectl dtc clear [<options>] [<device>]",
    discussion: """
      Lists the stored, pending and permanent codes of all OBD-II ECUs (SAE J1979), with the meaning of standardised codes, and the \
      freeze frame of each code that has one. Also lists the codes of other ECUs, which are read with UDS and include a failure type \
      (U0100-87). UDS queries go to the ECUs that the daemon polls, to 7E0 to 7E7, and to each --ecu.
      With --json: {"device","codes":[{"ecu","code","states","meaning"}],"frames":[{"ecu","frame","code","values":[{"name","value",\
      "unit"}]}],"note"}.
      """,
    subcommands: [DtcClearCommand.self])

  @OptionGroup var common: CommonOptions
  @Option(help: ArgumentHelp("Also query the ECU with this CAN identifier, such as 7B0, with UDS. Repeatable.", valueName: "id"))
  var ecu: [String] = []
  @Argument(
    help: "The device; required if more than one device supports trouble codes.", completion: .devices(doing: TroubleCodes.readAction))
  var device: String?

  func perform(_ output: Output) throws {
    let codes = try TroubleCodes(of: device, try common.connect(output))
    let emissions: Result<TroubleReport, any Error> = Result { try codes.read() }
    // If the vehicle cannot be reached, the other queries would fail as well.
    if case .failure(let failure) = emissions, !Self.affectsOnlyOneQuery(failure) { throw failure }
    let others: Result<TroubleReport?, any Error> = Result { try codes.readOtherECUs(ecu, within: common.replyTimeout, output) }
    if case .failure(let failure) = others, !Self.affectsOnlyOneQuery(failure) || !ecu.isEmpty { throw failure }
    let report = try merged(emissions, others)
    var remarks: [String] = []
    for case .failure(let failure as Failure) in [emissions.map { $0 as TroubleReport? }, others] { remarks.append(failure.message) }
    let frames = try self.frames(codes, output, &remarks)
    if output.json {
      let notes = [report.text, frames?.text].compactMap(\.self) + remarks
      return output.json(
        .members([
          "device": .string(codes.device), "codes": report.codes, "frames": frames?.json,
          "note": notes.isEmpty ? nil : .string(notes.joined(separator: "\n")),
        ]))
    }
    output.lines(report.lines(width: Output.width, paint: output.paint))
    if let frames { output.lines(frames.lines(width: Output.width, paint: output.paint)) }
    for remark in remarks { output.note(Output.oneLine(remark)) }
  }

  /// Merges the reports of both queries. Throws only if neither has one.
  private func merged(_ emissions: Result<TroubleReport, any Error>, _ others: Result<TroubleReport?, any Error>) throws -> TroubleReport {
    switch (emissions, others) {
    case (.success(let report), .success(let further?)): report.merged(with: further)
    case (.success(let report), _): report
    case (.failure, .success(let further?)): further
    case (.failure(let failure), _): throw failure
    }
  }

  /// Reads the freeze frames; adds a remark if the device rejects that.
  private func frames(_ codes: TroubleCodes, _ output: Output, _ remarks: inout [String]) throws -> FreezeFrames? {
    do {
      return try codes.readFreezeFrames(within: common.replyTimeout, output).map(FreezeFrames.init)
    } catch let failure as Failure where Self.affectsOnlyOneQuery(failure) {
      remarks.append(failure.message)
      return nil
    }
  }

  /// Whether the device rejected the query or did not respond in time, so that other queries may still work.
  private static func affectsOnlyOneQuery(_ error: any Error) -> Bool {
    switch error as? Failure {
    case .rejected(.deviceError), .rejected(.timeout): true
    default: false
    }
  }
}
