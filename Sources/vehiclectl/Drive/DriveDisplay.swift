// The display while driving: lease, sent tilt and the car's readings. Pure: times are arguments. Shows the age of data, and only a tilt that
// was sent. At most 60 columns.

import Protocols
import Varlink

struct DriveDisplay {
  enum Lease: Equatable {
    case requested
    case held
    case lost(String)
  }

  /// Properties shown if the device has them, in addition to mode and running.
  private static let extraProperties = [
    "left-button", "right-button", "motor-battery-voltage", "pi-battery-voltage", "temperature", "video",
  ]
  /// Properties that the daemon itself sets, so that a new value does not mean that the car responds.
  private static let setByDaemon = ["roll", "pitch", "yaw", "running", "connected", "left-button", "right-button"]

  private struct Row {
    var reading: Contract.Reading
    var receivedAt: Double
  }

  let device: String
  /// Key bindings, one to three lines.
  let help: [String]
  var lease = Lease.requested
  /// The tilt of a pressed key as a fraction of the maximum, 0 to 1.
  var limit = 0.4
  /// The tilt that was sent last, in rad; nil before the first set-point.
  var sentTilt: (roll: Double, pitch: Double)?
  /// Seconds without a reply to a set-point, if that is too long.
  var stall: Double?
  /// An error, or a note such as that the stick is not at rest.
  var remark: String?
  private var rows: [String: Row] = [:]
  private var event: String?

  init(device: String, help: [String]) {
    self.device = device
    self.help = help
  }

  /// Applies a reply of Watch.
  mutating func apply(_ result: Contract.Watch.Result, at now: Double) {
    let readings = (result.snapshot ?? []).flatMap(\.readings) + (result.changes ?? [])
    for reading in readings where reading.device == device { apply(reading, at: now) }
    if let last = result.events?.last(where: { $0.device == device }) { event = last.text }
  }

  mutating func apply(_ reading: Contract.Reading, at now: Double) { rows[reading.property] = Row(reading: reading, receivedAt: now) }

  /// The numeric value of a property.
  func number(_ property: String) -> Double? { rows[property]?.reading.value?.number }

  /// Whether a boolean property was last reported as on.
  func isOn(_ property: String) -> Bool { rows[property]?.reading.value == .bool(true) }

  /// Seconds since the last message of the car.
  func silence(at now: Double) -> Double? {
    let messages = rows["messages"].map { [$0] } ?? rows.filter { !Self.setByDaemon.contains($0.key) }.map(\.value)
    return messages.compactMap { row in row.reading.age.map { $0 + now - row.receivedAt } }.min()
  }

  /// The lines of the display.
  func lines(at now: Double, paint: (String, Style) -> String) -> [String] {
    var lines = [paint(Output.oneLine(device), .bold) + "  " + text(of: lease, paint) + "  " + running(paint)]
    if let mode = rows["mode"] { lines.append("  mode   " + text(of: mode.reading, paint)) }
    lines.append(bar("roll", sentTilt?.roll, full: .pi / 4, directions: ("backward", "forward"), paint))
    lines.append(bar("pitch", sentTilt?.pitch, full: 80 * .pi / 180, directions: ("left", "right"), paint))
    lines.append("  limit  \(Int((limit * 100).rounded())) %")
    lines.append("  last message  " + (silence(at: now).map { "\(Format.duration($0)) ago" } ?? paint("none yet", .dim)))
    for name in Self.extraProperties {
      if let row = rows[name] { lines.append("  " + Output.oneLine(name) + "  " + text(of: row.reading, paint)) }
    }
    if let event { lines.append("  " + Output.oneLine(event)) }
    if let stall { lines.append(paint("  stalled: no reply to a set-point for \(Format.tenths(stall)) s", .bad)) }
    if let remark { lines.append(paint(Output.oneLine("  \(remark)"), .bad)) }
    return lines + [""] + help.map { paint($0, .dim) }
  }

  private func text(of lease: Lease, _ paint: (String, Style) -> String) -> String {
    switch lease {
    case .requested: paint("requesting the lease", .dim)
    case .held: paint("lease held", .good)
    case .lost(let why): paint(Output.oneLine("lease lost: \(why)"), .bad)
    }
  }

  private func running(_ paint: (String, Style) -> String) -> String {
    guard let reading = rows["running"]?.reading else { return "" }
    switch reading.value {
    case .bool(true): return paint("running", .good)
    case .bool(false): return paint("stopped", .bold)
    // The state is unknown: the car may be moving.
    default: return paint(Output.oneLine(reading.reason ?? ""), .bad)
    }
  }

  private func text(of reading: Contract.Reading, _ paint: (String, Style) -> String) -> String {
    guard reading.value != nil else { return paint(Output.oneLine("- \(reading.reason ?? "")"), .dim) }
    return Output.oneLine(Format.value(reading))
  }

  /// A line such as `  roll    0.31 rad  ----------|####------  forward`. `full` is the angle of a full bar in rad.
  private func bar(
    _ name: String, _ angle: Double?, full: Double, directions: (String, String), _ paint: (String, Style) -> String
  ) -> String {
    let title = "  " + name + String(repeating: " ", count: 7 - name.count)
    guard let angle else { return title + paint("not sent yet", .dim) }
    let half = 10
    let filled = min(half, Int((abs(angle) / full * Double(half)).rounded(.up)))
    let (some, none) = (String(repeating: "#", count: filled), String(repeating: "-", count: half - filled))
    let empty = String(repeating: "-", count: half)
    let hundredths = Int((min(abs(angle), 9.99) * 100).rounded())
    let number =
      "\(angle < 0 && hundredths > 0 ? "-" : " ")\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100) rad  "
    let picture = angle < 0 ? none + some + "|" + empty : empty + "|" + some + none
    return title + number + picture + "  " + (hundredths == 0 ? "level" : angle < 0 ? directions.0 : directions.1)
  }
}
