// The state that the screen of a drive shows: the lease, the last setpoint sent, and the device's readings. No I/O: times are arguments.

import Protocols
import Varlink

struct DriveDisplay {
  enum Lease: Equatable {
    case requested
    case held
    case lost(String)
  }

  /// Properties that the daemon itself sets. A new value of such a property is no evidence that the device responds.
  private static let setByDaemon: Swift.Set = ["roll", "pitch", "yaw", "running", "connected", "left-button", "right-button"]
  /// Groups that do not matter while driving.
  private static let otherGroups: Swift.Set<String> = [
    PropertyGroup.statistics.rawValue, PropertyGroup.identity.rawValue, PropertyGroup.settings.rawValue,
  ]

  let device: String
  /// The keys, and how soon a released key takes effect; two to four lines.
  let help: [String]
  /// The name of the limit that the digit keys set.
  let limitName: String
  /// The fraction of the maximum that keys and sticks reach, 0 to 1.
  var limit: Double
  var lease = Lease.requested
  /// The setpoint that was sent last; nil before the first one.
  var sent: DriveRequest?
  /// Seconds without a reply to the setpoint in flight, or nil if the reply is not overdue.
  var stall: Double?
  /// An error, or a note, for example that the stick must be released first.
  var remark: String?
  private(set) var model = WatchModel()
  private let targets: Swift.Set<String>

  /// A display for the device with this schema.
  init(device: String, _ schema: Contract.Schema?, help: [String], limitName: String, limit: Double) {
    self.device = device
    self.help = help
    self.limitName = limitName
    self.limit = limit
    targets = Swift.Set(schema?.properties.filter(\.motion).map(\.name) ?? [])
    if let schema { model.declare(schema) }
  }

  /// Applies a reply of Watch.
  mutating func apply(_ result: Contract.Watch.Result, at now: Double, wall: Double) { model.apply(result, at: now, wall: wall) }

  private var watched: WatchModel.Watched? { model.devices.first { $0.device.name == device } }

  /// The last event of the device.
  var event: String? { model.event.flatMap { $0.event.device == device ? $0.event.text : nil } }

  func row(_ property: String) -> PropertyRow? { watched?.row(property) }

  /// The numeric value of a property.
  func number(_ property: String) -> Double? { row(property)?.value?.number }

  /// Whether a boolean property was last reported as on.
  func isOn(_ property: String) -> Bool { row(property)?.value == .bool(true) }

  /// Seconds since the last message of the device.
  func silence(at now: Double) -> Double? {
    if let messages = row("messages") { return messages.age(at: now) }
    let rows = watched?.rows.filter { $0.value != nil && !Self.setByDaemon.contains($0.name) && !targets.contains($0.name) }
    return rows?.compactMap { $0.age(at: now) }.min()
  }

  /// The headline numbers to draw large, then what else matters while driving: other headlines first, then by group.
  func rows(largest count: Int) -> (large: [PropertyRow], small: [PropertyRow]) {
    let rows = (watched?.rows ?? []).filter(matters)
    let large = Array(rows.filter(isHeadline).prefix(count))
    let names = Swift.Set<String>(large.map { $0.name })
    let small = rows.filter { !names.contains($0.name) }
    return (large, small.filter { $0.rank == 1 } + small.filter { $0.rank > 1 })
  }

  private func matters(_ row: PropertyRow) -> Bool {
    if row.name == "running" || targets.contains(row.name) || Self.otherGroups.contains(row.group) { return false }  // shown elsewhere
    return row.rank <= 2 && !row.isNotReported
  }

  private func isHeadline(_ row: PropertyRow) -> Bool {
    row.rank == 1 && row.unit != nil && (row.value == nil || row.value?.number != nil)
  }
}
