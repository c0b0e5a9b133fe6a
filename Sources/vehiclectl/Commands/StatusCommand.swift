// status: all devices with their links and readings, or one device in detail.

import ArgumentParser
import Protocols
import Varlink

struct StatusCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show devices, links, values and their age.")

  @OptionGroup var common: CommonOptions
  @Argument(help: "Only this device, in detail.", completion: .devices)
  var device: String?

  func perform(_ output: Output) throws { try Self.show(device, common, output) }

  /// Shows one device in detail, or all.
  static func show(_ name: String?, _ common: CommonOptions, _ output: Output) throws {
    let units = try common.unitSystem()
    let devices = try common.connect(output).call(Contract.Status.self, .init(device: name)).devices.map(units.converted)
    if output.json { return output.json(["devices": .array(devices.map { JSON($0) })]) }
    if devices.isEmpty { output.note("no devices are configured; add one to /etc/vehicled/vehicled.toml") }
    let now = Clock.wall
    for (position, device) in devices.enumerated() {
      if position > 0 { output.line("") }
      output.lines(lines(device, detailed: name != nil || output.verbose, now: now, width: Output.width, paint: output.paint))
    }
  }

  static func lines(_ device: Contract.Device, detailed: Bool, now: Double, width: Int? = nil, paint: (String, Style) -> String) -> [String]
  {
    var lines = [header(device, paint: paint)]
    for link in device.links {
      let name = device.links.count > 1 || detailed ? "\(link.name) \(link.url)" : link.url
      lines.append(Output.oneLine("  \(name)  ") + paint(Output.oneLine(Format.link(link, now: now)), Format.style(of: link)))
      if detailed, let details = Format.details(link) { lines.append(paint(Output.oneLine("    \(details)"), .dim)) }
    }
    var table = Table("property", ">value", "unit", ">age", "")
    let shown = detailed ? device.readings : device.readings.filter { $0.value != nil }
    for reading in shown {
      let (value, remark) = Format.cells(reading)
      table.rows.append([
        Cell(reading.property), value, Cell(reading.unit ?? ""), Cell(reading.age.map(Format.duration) ?? "", .dim), remark,
      ])
    }
    if !shown.isEmpty { lines += table.lines(indent: 2, width: width, paint: paint) }
    let hidden = device.readings.count - shown.count
    if hidden > 0 {
      lines.append(paint("  \(hidden) without a value; see: vehiclectl status \(Output.oneLine(device.name))", .dim))
    }
    return lines
  }

  /// The first line of a device, such as `ev (obd): polling`, with its fault, if any.
  static func header(_ device: Contract.Device, paint: (String, Style) -> String) -> String {
    let holder = device.holder.map { ", held by \($0)" } ?? ""
    return paint(Output.oneLine(device.name), .bold) + Output.oneLine(" (\(device.kind)): \(device.state)\(holder)")
      + paint(Output.oneLine(device.fault.map { ": \($0)" } ?? ""), .bad)
  }
}
