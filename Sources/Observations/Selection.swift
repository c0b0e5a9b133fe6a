// Selects values, by default those of vehicles. No I/O.

import Protocols

/// A name or pattern of devices and properties, such as `ev`, `ev.speed` or `*.odometer`.
public struct ReferencePattern: Equatable, Sendable {
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
  public static let vehicles: Set<String> = ["obd", "can", "longboard", "rc-car"]

  private let kinds: Set<String>
  /// Values of these kinds that are selected only if `included` has them.
  private let personal: [ReferencePattern]
  /// What is selected besides, and what is not.
  public var included: [ReferencePattern]
  public var excluded: [ReferencePattern]

  /// Selects the values of these kinds without positions and `personal`, and those that match `included`, except those that match
  /// `excluded`.
  public init(
    kinds: Set<String> = vehicles, personal: [ReferencePattern] = [], included: [ReferencePattern] = [],
    excluded: [ReferencePattern] = []
  ) {
    (self.kinds, self.personal, self.included, self.excluded) = (kinds, personal, included, excluded)
  }

  public func includes(_ device: String, kind: String, _ property: String) -> Bool {
    func isIn(_ patterns: [ReferencePattern]) -> Bool { patterns.contains { $0.matches(device, property) } }
    guard !isIn(excluded) else { return false }
    return isIn(included) || kinds.contains(kind) && !isIn(personal) && !PositionPrivacy.isPosition(property, kind: kind)
  }
}
