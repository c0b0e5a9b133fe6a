// monitors: readiness monitors and test results of a car by ECU.

import ArgumentParser
import Protocols
import Varlink

struct MonitorsCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "monitors", abstract: "Show the readiness monitors and test results of a car.",
    discussion: """
      Shows for each ECU the malfunction indicator lamp (MIL), and which readiness monitors have completed since the codes were cleared \
      and in this driving cycle. On CAN, also shows the results of the on-board tests (SAE J1979 service 06) with their limits.
      With --json: {"device", "ecus": [{"ecu", "mil", "storedCodes", "readiness": [{"name", "sinceClearing", "thisDrivingCycle"}], \
      "tests": [{"monitor", "test", "result", "value", "min", "max", "unit"}]}], "note"}.
      """)

  @OptionGroup var common: CommonOptions
  @Argument(
    help: "The device; required if more than one device supports readiness monitors.", completion: .devices(doing: Monitors.action))
  var device: String?

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    let device = try Reference(device: device, name: Monitors.action).action(of: client).device
    let state = try client.call(Contract.Status.self, .init(device: device)).devices.first?.state
    if let note = SleepingVehicle.waking(device, state ?? "") { output.note(note) }
    let parameters = Contract.Call.Parameters(device: device, action: Monitors.action, arguments: nil)
    let monitors = Monitors(TroubleReport(try client.follow(parameters, within: common.replyTimeout, output)))
    guard output.json else { return output.lines(monitors.lines(width: Output.width, paint: output.paint)) }
    output.json(.members(["device": .string(device), "ecus": monitors.json, "note": monitors.text.map(JSON.string)]))
  }
}
