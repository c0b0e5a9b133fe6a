// Which properties are positions: personal data, which clients include only if their device is named.

public enum PositionPrivacy {
  /// Whether a property of a device of this kind is part of a position: one of a GPS receiver, or a signal that a user has added to a
  /// vehicle, with `latitude` or `longitude` in its name.
  public static func isPosition(_ property: String, kind: String) -> Bool {
    guard kind == Kind.position.name else { return property.contains("latitude") || property.contains("longitude") }
    return ["latitude", "longitude", "altitude", "track"].contains(property)
  }
}
