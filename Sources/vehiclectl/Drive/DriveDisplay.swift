// What a driver sees: the lease, the tilt as it was sent, and what the car says. Pure: instants are arguments. Owns the latest
// readings of one device; must never show an old one as new, nor a tilt that was not sent. Fits 60 columns.

import Protocols

struct DriveDisplay {
  enum Lease: Equatable {
    case awaited
    case held
    case lost(String)
  }

  /// What of the car's own words is shown where it has them, beside mode and running.
  private static let shown = ["left-button", "right-button", "motor-battery-voltage", "pi-battery-voltage", "temperature", "video"]
  /// What the daemon itself sets: no sign of life from the car.
  private static let ours = ["roll", "pitch", "yaw", "running", "connected", "left-button", "right-button"]

  private struct Row {
    var reading: Contract.Reading
    var came: Double
  }

  let device: String
  /// How it is driven, a line or two.
  let help: [String]
  var lease = Lease.awaited
  /// What full keys ask for, 0 to 1.
  var top = 0.4
  /// rad; nil before the first set-point.
  var sent: (roll: Double, pitch: Double)?
  /// Seconds that a set-point has been waiting for its answer, when it is too long.
  var stall: Double?
  /// What else the driver has to know: a refusal, a stick that is not at rest.
  var remark: String?
  private var rows: [String: Row] = [:]
  private var event: String?

  init(device: String, help: [String]) {
    self.device = device
    self.help = help
  }

  /// Takes a reply of Watch.
  mutating func take(_ result: Contract.Watch.Result, at now: Double) {
    let readings = (result.snapshot ?? []).flatMap(\.readings) + (result.changes ?? [])
    for reading in readings where reading.device == device { take(reading, at: now) }
    if let last = result.events?.last(where: { $0.device == device }) { event = last.text }
  }

  mutating func take(_ reading: Contract.Reading, at now: Double) { rows[reading.property] = Row(reading: reading, came: now) }

  /// The number that a property has.
  func number(_ property: String) -> Double? { rows[property]?.reading.value?.number }

  /// Whether a switch is on, as the device said last.
  func isOn(_ property: String) -> Bool { rows[property]?.reading.value == .bool(true) }

  /// Seconds since the car said anything.
  func silence(at now: Double) -> Double? {
    let heard = rows["messages"].map { [$0] } ?? rows.filter { !Self.ours.contains($0.key) }.map(\.value)
    return heard.compactMap { row in row.reading.age.map { $0 + now - row.came } }.min()
  }

  /// The picture.
  func lines(at now: Double, paint: (String, Style) -> String) -> [String] {
    var lines = [paint(Output.oneLine(device), .bold) + "  " + words(of: lease, paint) + "  " + running(paint)]
    if let mode = rows["mode"] { lines.append("  mode   " + said(mode.reading, paint)) }
    lines.append(bar("roll", sent?.roll, full: .pi / 4, ways: ("backward", "forward"), paint))
    lines.append(bar("pitch", sent?.pitch, full: 80 * .pi / 180, ways: ("left", "right"), paint))
    lines.append("  top    \(Int((top * 100).rounded())) %")
    lines.append("  heard  " + (silence(at: now).map { "\(Format.duration($0)) ago" } ?? paint("nothing yet", .dim)))
    for name in Self.shown {
      if let row = rows[name] { lines.append("  " + Output.oneLine(name) + "  " + said(row.reading, paint)) }
    }
    if let event { lines.append("  " + Output.oneLine(event)) }
    if let stall { lines.append(paint("  stalled: no answer to a set-point for \(Format.tenths(stall)) s", .bad)) }
    if let remark { lines.append(paint(Output.oneLine("  \(remark)"), .bad)) }
    return lines + [""] + help.map { paint($0, .dim) }
  }

  private func words(of lease: Lease, _ paint: (String, Style) -> String) -> String {
    switch lease {
    case .awaited: paint("asking for the lease", .dim)
    case .held: paint("lease held", .good)
    case .lost(let why): paint(Output.oneLine("lease lost: \(why)"), .bad)
    }
  }

  private func running(_ paint: (String, Style) -> String) -> String {
    guard let reading = rows["running"]?.reading else { return "" }
    switch reading.value {
    case .bool(true): return paint("running", .good)
    case .bool(false): return paint("stopped", .bold)
    // Nobody knows whether it stands.
    default: return paint(Output.oneLine(reading.reason ?? ""), .bad)
    }
  }

  private func said(_ reading: Contract.Reading, _ paint: (String, Style) -> String) -> String {
    guard reading.value != nil else { return paint(Output.oneLine("- \(reading.reason ?? "")"), .dim) }
    return Output.oneLine(Format.value(reading))
  }

  /// `  roll    0.31 rad  ----------|####------  forward`.
  private func bar(
    _ name: String, _ angle: Double?, full: Double, ways: (String, String), _ paint: (String, Style) -> String
  ) -> String {
    let title = "  " + name + String(repeating: " ", count: 7 - name.count)
    guard let angle else { return title + paint("none sent yet", .dim) }
    let half = 10
    let filled = min(half, Int((abs(angle) / full * Double(half)).rounded(.up)))
    let (some, none) = (String(repeating: "#", count: filled), String(repeating: "-", count: half - filled))
    let empty = String(repeating: "-", count: half)
    let hundredths = Int((min(abs(angle), 9.99) * 100).rounded())
    let number =
      "\(angle < 0 && hundredths > 0 ? "-" : " ")\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100) rad  "
    let picture = angle < 0 ? none + some + "|" + empty : empty + "|" + some + none
    return title + number + picture + "  " + (hundredths == 0 ? "level" : angle < 0 ? ways.0 : ways.1)
  }
}
