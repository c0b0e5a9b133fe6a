// get: bare values for scripts, one per line. For an unavailable value the reason goes to stderr, and the exit status is 5 if the device is
// not connected, else 1.

import ArgumentParser
import Protocols
import Varlink

struct GetCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Print values, one per line.",
    discussion: """
      If a value is unavailable, the command prints nothing for it on stdout and the reason on stderr. The exit status is then 5 if the \
      device is not connected, and 1 otherwise. With --json, the value is null, and "reason" gives the reason.
      """)

  @OptionGroup var common: CommonOptions
  @Argument(help: ArgumentHelp("PROPERTY or DEVICE.PROPERTY.", valueName: "ref"), completion: .properties)
  var references: [String]

  func perform(_ output: Output) throws {
    let units = try common.unitSystem()
    let client = try common.connect(output)
    let readings = try client.call(Contract.Get.self, .init(references: references)).readings.map(units.converted)
    if output.json {
      output.json(["readings": .array(readings.map { JSON($0) })])
    } else {
      output.lines(readings.compactMap { $0.value.map { Output.oneLine(Format.text($0)) } })
    }
    let failures = try readings.filter { $0.value == nil }.map { reading in
      let links = try client.call(Contract.Status.self, .init(device: reading.device)).devices.flatMap(\.links)
      return Failure.noValue(
        "\(reading.reference) has no value: \(reading.reason ?? "none received yet"); see: vehiclectl status \(reading.device)",
        notConnected: links.contains { $0.name == "main" && $0.state != "up" })
    }
    guard !failures.isEmpty else { return }
    for failure in failures { output.printError(failure) }
    throw ExitCode(failures.map(\.exitCode).max() ?? 1)
  }
}
