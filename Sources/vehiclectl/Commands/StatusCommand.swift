// status: all devices, one line each, or one device on a screen. With --json, the devices as the daemon reports them.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct StatusCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show all devices, or one device with its values.",
    discussion: """
      Without a device, shows one line per device, devices with problems first. With a device, shows its links, its most important \
      values and its last log records.
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Show every property with its age, or why it has no value.")
  var all = false
  @Flag(help: "Do not use a pager, even if the output is longer than the terminal.")
  var noPager = false
  @Argument(help: "Show only this device.", completion: .devices)
  var device: String?

  func perform(_ output: Output) throws { try Self.show(device, common, output, all: all, usePager: !noPager) }

  /// Shows the device with this name, or all devices if it is nil.
  static func show(_ name: String?, _ common: CommonOptions, _ output: Output, all: Bool = false, usePager: Bool = true) throws {
    let units = try common.unitSystem()
    let client = try common.connect(output)
    let devices = try client.call(Contract.Status.self, .init(device: name)).devices.map(units.converted)
    if output.json { return output.json(["devices": .array(devices.map { JSON($0) })]) }
    if devices.isEmpty { output.note("no devices are configured; add one: vehiclectl setup") }
    let schemas = try client.call(Contract.Describe.self, .init(device: name)).schemas
    let now = Clock.wall
    let statuses = devices.map { device in DeviceStatus(device, schemas.first { $0.device == device.name }, now: now) }
    let width = Output.width
    var lines: [String] = []
    if all || output.verbose {
      lines = Array(statuses.map { StatusTable.lines($0, width: width, paint: output.paint) }.joined(separator: [""]))
    } else if name == nil {
      lines = StatusSummary.lines(statuses, width: width, paint: output.paint)
    } else if let status = statuses.first {
      let rows = width == nil ? nil : Terminal.window.rows - 1
      let log =
        output.quiet
        ? []
        : StatusLog.lines(
          status.device, count: StatusLog.count(rows: rows), now: now, client: client, socket: common.socketPath, paint: output.paint)
      var detail = StatusDetail(status, width: width, paint: output.paint)
      lines = detail.lines(rows: rows, log: log)
    }
    usePager ? Pager.show(lines, output) : output.lines(lines)
  }
}
