// The names of the toy's own network. No I/O. Source: the toy's firmware; the chip uses its default names if setting the name fails.

enum ToyNetwork {
  static let defaultName = "Trivio"
  private static let otherPrefixes = ["AI-THINKER_", "ESP_", "myESP"]

  /// Whether a network may be the toy itself.
  static func looksLike(_ name: String, _ security: AccessPoint.Security) -> Bool {
    security == .open && (name == defaultName || otherPrefixes.contains { name.hasPrefix($0) })
  }
}
