// Selects the values to record, by default those of vehicles. No I/O.

import Protocols

/// A name or pattern of devices and properties, such as `ev`, `ev.speed` or `*.odometer`.
public struct ReferencePattern: Equatable {
  private let device: Glob
  private let property: Glob?

  public init(_ text: String) {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    device = Glob(parts[0])
    property = parts.count == 2 ? Glob(parts[1]) : nil
  }

  /// Whether a property matches. A pattern without a property matches all properties of its devices.
  public func matches(_ device: String, _ property: String) -> Bool {
    self.device.matches(device) && (self.property?.matches(property) ?? true)
  }
}

public struct Selection: Equatable {
  /// The kinds whose values are recorded by default: vehicles.
  public static let kinds: Set<String> = ["obd", "longboard", "rc-car"]

  public var record: [ReferencePattern] = []
  public var exclude: [ReferencePattern] = []

  /// Selects the values of vehicles and those that match `record`, except those that match `exclude`.
  public init(record: [ReferencePattern] = [], exclude: [ReferencePattern] = []) { (self.record, self.exclude) = (record, exclude) }

  public func includes(_ device: String, kind: String, _ property: String) -> Bool {
    guard !exclude.contains(where: { $0.matches(device, property) }) else { return false }
    return Self.kinds.contains(kind) || record.contains { $0.matches(device, property) }
  }
}
