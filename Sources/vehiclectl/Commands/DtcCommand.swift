// dtc: the trouble codes of one car, or of each, by ECU, with their freeze frames. A car that sleeps is queried only if it is named.

import ArgumentParser
import Protocols

struct DtcCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "dtc", abstract: "List or clear the trouble codes (DTCs) of a car.",
    usage: "vehiclectl dtc [<options>] [--ecu <id> ...] [<device>]\nvehiclectl dtc clear [<options>] [<device>]",
    discussion: """
      Lists the stored, pending and permanent codes of all OBD-II ECUs (SAE J1979), with the meaning of standardised codes, and the \
      freeze frame of each code that has one. Also lists the codes of other ECUs, which are read with UDS and include a failure type \
      (U0100-87). UDS queries go to the ECUs that the daemon polls, to the addresses 7E0-7E7, and to each --ecu.
      "vehiclectl status" shows only the number of codes stored in the ECU that is polled for SAE J1979 values.
      Without a device, lists the codes of each car, except cars that are asleep or parked, because a query may wake them.
      With --json: {"device", "codes": [{"ecu", "code", "states", "meaning"}], "frames": [{"ecu", "frame", "code", "values": [{"name", \
      "value", "unit"}]}], "note"}; without a device one such line per car.
      """,
    subcommands: [DtcClearCommand.self])

  @OptionGroup var common: CommonOptions
  @Option(help: ArgumentHelp("Also query the ECU with this CAN identifier, such as 7B0, with UDS. Repeatable.", valueName: "id"))
  var ecu: [String] = []
  @Argument(
    help: "The device (default: each device with trouble codes).", completion: .devices(doing: TroubleCodes.readAction))
  var device: String?

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    let cars = try Cars(device, doing: TroubleCodes.readAction, client)
    guard ecu.isEmpty || cars.all.count == 1 else {
      throw Failure.usage("--ecu applies to one device: \(cars.all.map(\.device).joined(separator: ", ")); add the device name")
    }
    try cars.forEach(output) { try list(TroubleCodes($0, client), output) }
  }

  private func list(_ codes: TroubleCodes, _ output: Output) throws {
    let emissions: Result<TroubleReport, any Error> = Result { try codes.read() }
    // If the vehicle cannot be reached, the other queries would fail as well.
    if case .failure(let failure) = emissions, !Self.affectsOnlyOneQuery(failure) { throw failure }
    let others: Result<TroubleReport?, any Error> = Result { try codes.readOtherECUs(ecu, within: common.replyTimeout, output) }
    if case .failure(let failure) = others, !Self.affectsOnlyOneQuery(failure) || !ecu.isEmpty { throw failure }
    let report = try merged(emissions, others)
    var remarks: [String] = []
    for case .failure(let failure as Failure) in [emissions.map { $0 as TroubleReport? }, others] { remarks.append(Self.cause(failure)) }
    let frames = try self.frames(codes, output, &remarks)
    if output.json {
      let notes = [report.text, frames?.text].compactMap(\.self) + remarks
      return output.json(
        .members([
          "device": .string(codes.device), "codes": report.codes, "frames": frames?.json,
          "note": notes.isEmpty ? nil : .string(notes.joined(separator: "\n")),
        ]))
    }
    output.lines(report.codeLines(width: Output.width, paint: output.paint))
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

  /// The cause of a failed query, without its remedy, because the other query has succeeded.
  private static func cause(_ failure: Failure) -> String {
    guard case .rejected(.deviceError(_, _, let message)) = failure else { return failure.message }
    return String(message.prefix { $0 != ";" })
  }

  /// Whether the device rejected the query or did not respond in time, so that other queries may still work.
  private static func affectsOnlyOneQuery(_ error: any Error) -> Bool {
    switch error as? Failure {
    case .rejected(.deviceError), .rejected(.timeout): true
    default: false
    }
  }
}
