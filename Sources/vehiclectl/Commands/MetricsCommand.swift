// metrics: everything that is a number, for Prometheus and what reads its formats.

import ArgumentParser
import Protocols

struct MetricsCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "metrics", abstract: "Print every number that is known, and the daemon's own counters, as OpenMetrics text.",
    discussion: """
      vehicle_PROPERTY_UNIT{device="NAME"} for what vehicles report, vehicled_… for the daemon. A value that is not known is left out.
      For node_exporter: systemctl enable --now vehicled-metrics.timer writes the file that its textfile collector reads.
      """)

  @OptionGroup var common: CommonOptions

  @Option(name: .shortAndLong, help: "Write to this file, at once or not at all.", completion: .file())
  var output: String?

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    let devices = try client.call(Contract.Status.self, .init()).devices
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
    // Read by other users: node_exporter's own.
    try AtomicFile.write(Array(lines.joined(separator: "\n").utf8) + [0x0A], to: file, force: true, mode: 0o644)
  }
}
