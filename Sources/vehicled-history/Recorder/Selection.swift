// Selects the values to record, by default those of vehicles. No I/O.

import Protocols

/// A name or pattern of devices and properties, such as `ev`, `ev.speed` or `*.odometer`.
struct ReferencePattern: Equatable {
  private let device: Glob
  private let property: Glob?

  init(_ text: String) {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    device = Glob(parts[0])
    property = parts.count == 2 ? Glob(parts[1]) : nil
  }

  /// Whether a property matches. A pattern without a property matches all properties of its devices.
  func matches(_ device: String, _ property: String) -> Bool {
    self.device.matches(device) && (self.property?.matches(property) ?? true)
  }
}

struct Selection: Equatable {
  /// The kinds whose values are recorded by default: vehicles.
  static let kinds: Set<String> = ["obd", "longboard", "rc-car"]

  var record: [ReferencePattern] = []
  var exclude: [ReferencePattern] = []

  func includes(_ device: String, kind: String, _ property: String) -> Bool {
    guard !exclude.contains(where: { $0.matches(device, property) }) else { return false }
    return Self.kinds.contains(kind) || record.contains { $0.matches(device, property) }
  }
}
