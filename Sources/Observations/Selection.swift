// Selects values, by default those of vehicles. No I/O.

import Protocols

/// A name or pattern of devices and properties, such as `ev`, `ev.speed` or `*.odometer`.
public struct ReferencePattern: Equatable {
  /// The pattern as it was written.
  public let text: String
  private let device: Glob
  private let property: Glob?

  public init(_ text: String) {
    self.text = text
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    device = Glob(parts[0])
    property = parts.count == 2 ? Glob(parts[1]) : nil
  }

  /// Whether a device matches the part before the dot.
  public func matches(device: String) -> Bool { self.device.matches(device) }

  /// Whether a property matches. A pattern without a property matches all properties of its devices.
  public func matches(_ device: String, _ property: String) -> Bool {
    self.device.matches(device) && (self.property?.matches(property) ?? true)
  }
}

public struct Selection: Equatable {
  /// The kinds of vehicles.
  public static let vehicles: Set<String> = ["obd", "longboard", "rc-car"]

  private let kinds: Set<String>
  /// What is selected besides, and what is not.
  public var included: [ReferencePattern]
  public var excluded: [ReferencePattern]

  /// Selects the values of these kinds and those that match `included`, except those that match `excluded`.
  public init(
    kinds: Set<String> = vehicles, included: [ReferencePattern] = [], excluded: [ReferencePattern] = []
  ) {
    (self.kinds, self.included, self.excluded) = (kinds, included, excluded)
  }

  public func includes(_ device: String, kind: String, _ property: String) -> Bool {
    guard !excluded.contains(where: { $0.matches(device, property) }) else { return false }
    return kinds.contains(kind) || included.contains { $0.matches(device, property) }
  }
}
