// A device as `status` shows it: its rows in order, and the parts that the summary and the detail share. No I/O.

import Varlink

struct DeviceStatus {
  let device: Contract.Device
  let rows: [PropertyRow]
  /// Seconds since the Unix epoch.
  let now: Double

  init(_ device: Contract.Device, _ schema: Contract.Schema?, now: Double) {
    self.device = device
    self.now = now
    rows = PropertyRow.rows(of: device, schema, at: now)
  }

  func row(_ name: String) -> PropertyRow? { rows.first { $0.name == name } }

  /// The health of the links and the poll rate: `● 20 Hz`; nil if the device has no links.
  var health: (text: String, style: Style)? {
    guard let worst = device.links.first(where: { $0.state != "up" }) ?? device.links.first else { return nil }
    let style: Style = worst.state == "up" ? .good : worst.state == "down" ? .bad : .warning
    guard let rate = row("poll-rate"), rate.value != nil else { return ("●", style) }
    return ("● \(rate.headline)", style)
  }

  /// What the vehicle itself reports as wrong: `MIL on, 2 DTCs`; nil if it reports nothing.
  var warning: String? { Meaning.warning(row) }

  /// `held by CLIENT` if a client holds the motion lease.
  var holder: String? { device.holder.map { "held by \($0)" } }

  /// The first line has the name, kind and state. The links, the fault and the warning follow, wrapped to the width.
  func header(detailed: Bool, width: Int?, paint: (String, Style) -> String) -> [String] {
    let health = health.map { "  " + paint(Output.oneLine($0.text), $0.style) } ?? ""
    let holder = holder.map { ", " + paint(Output.oneLine($0), .warning) } ?? ""
    let state = Output.oneLine(" (\(device.kind)): \(device.state)")
    var lines = [(paint(Output.oneLine(device.name), .bold) + state + holder + health).truncated(to: width)]
    for link in device.links {
      let url = LinkText.readable(link.url)
      let name = device.links.count > 1 || detailed ? "\(link.name) \(url)" : url
      lines += Self.paragraph(name, Format.link(link, now: now), device.isDisconnected ? .dim : Format.style(of: link), width, paint)
      if let details = Format.details(link) {
        let text = Output.oneLine("    \(details)")
        lines.append(paint(detailed ? text : text.truncated(to: width), .dim))
      }
    }
    if let fault = device.fault {
      let (label, style): (String, Style) = device.isNotInUse ? ("", .dim) : ("fault:", .bad)
      lines += Self.paragraph(label, fault, style, width, paint)
    }
    if let warning = Meaning.warning(state: "stored ", row) {
      lines += Self.paragraph("", "\(warning); see: vehiclectl dtc \(device.name)", .warning, width, paint)
    }
    return lines
  }

  /// A label and a text, which continues on lines of its own if it is too long for the first one.
  private static func paragraph(_ label: String, _ text: String, _ style: Style, _ width: Int?, _ paint: (String, Style) -> String)
    -> [String]
  {
    let start = Output.oneLine(label.isEmpty ? "" : label.hasSuffix(":") ? "\(label) " : "\(label)  ")
    let text = Output.oneLine(text)
    guard let width, 2 + start.displayWidth + text.displayWidth > width else { return ["  \(start)" + paint(text, style)] }
    let parts = text.wrapped(to: width - 4).map { "    " + paint($0, style) }
    return (label.isEmpty ? [] : ["  \(Output.oneLine(label))".truncated(to: width)]) + parts
  }
}
