// monitors: readiness monitors and test results of one car, or of each, by ECU.

import ArgumentParser
import Protocols
import Varlink

struct MonitorsCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "monitors", abstract: "Show the readiness monitors and test results of cars.",
    discussion: """
      Shows for each ECU the malfunction indicator lamp (MIL), and which readiness monitors have completed since the codes were cleared \
      and in this driving cycle. On CAN, also shows the results of the on-board tests (SAE J1979 service 06) with their limits.
      Without a device, shows the monitors of each car, except cars that are asleep or parked, because a query may wake them.
      With --json: {"device", "ecus": [{"ecu", "mil", "storedCodes", "readiness": [{"name", "sinceClearing", "thisDrivingCycle"}], \
      "tests": [{"monitor", "test", "result", "value", "min", "max", "unit"}]}], "note"}; without a device one such line per car.
      """)

  @OptionGroup var common: CommonOptions
  @Argument(
    help: "The device (default: each device with readiness monitors).", completion: .devices(doing: Monitors.action))
  var device: String?

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    try Cars(device, doing: Monitors.action, client).forEach(output) { try show($0.device, client, output) }
  }

  private func show(_ device: String, _ client: Client, _ output: Output) throws {
    let parameters = Contract.Call.Parameters(device: device, action: Monitors.action, arguments: nil)
    let monitors = Monitors(TroubleReport(try client.follow(parameters, within: common.replyTimeout, output)))
    guard output.json else { return output.lines(monitors.lines(width: Output.width, paint: output.paint)) }
    output.json(.members(["device": .string(device), "ecus": monitors.json, "note": monitors.text.map(JSON.string)]))
  }
}
