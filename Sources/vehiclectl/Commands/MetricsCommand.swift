// metrics: all numbers, for Prometheus and programs that read its formats.

import ArgumentParser
import OpenMetrics
import Protocols
import Varlink

struct MetricsCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "metrics", abstract: "Print values and statistics as OpenMetrics text.",
    discussion: """
      Values of devices are named vehicle_PROPERTY_UNIT{device="NAME"}; statistics of the daemon start with vehicled_. Unavailable \
      values are omitted, and so are positions, unless --position names their device.
      To write a file every 15 s for the textfile collector of node_exporter: systemctl enable --now vehicled-metrics.timer
      """)

  @OptionGroup var common: CommonOptions

  @Option(
    name: .shortAndLong, help: ArgumentHelp("Write to this file atomically (default: -, stdout).", valueName: "file"), completion: .file())
  var output: String?

  @Option(
    help: ArgumentHelp("Include the position of this device; can be given several times.", valueName: "device"), completion: .devices)
  var position: [String] = []

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    let all = try client.call(Contract.Status.self, .init()).devices
    for name in position {
      let device = all.first { $0.name == name }
      guard device?.readings.contains(where: { PositionPrivacy.isPosition($0.property, kind: device?.kind ?? "") }) == true else {
        throw Failure.usage("no device \(name) with a position for --position; name one, or leave the option out")
      }
    }
    let devices = OpenMetrics.published(all, with: position)
    let schemas = try client.call(Contract.Describe.self, .init()).schemas
    let statistics = try client.call(Contract.Statistics.self, .init()).statistics
    let lines: [String]
    if output.json {
      let readings = devices.flatMap(\.readings).map { JSON($0) }
      lines = [JSON.members(["readings": .array(readings), "statistics": .array(statistics.map { JSON($0) })]).text]
    } else {
      lines = OpenMetrics.text(devices, schemas, statistics)
    }
    guard let file = self.output, file != "-" else { return output.lines(lines) }
    // The user of node_exporter must be able to read the file.
    try AtomicFile.write(Array(lines.joined(separator: "\n").utf8) + [0x0A], to: file, force: true, mode: 0o644)
  }
}
