// How the toy's own network is called while its button is pressed. Pure. Facts: the toy's firmware names it; where the chip refuses
// that, the chip's own name stays.

enum ToyNetwork {
  static let usual = "Trivio"
  private static let others = ["AI-THINKER_", "ESP_", "myESP"]

  /// Whether a network may be the toy itself.
  static func looksLike(_ name: String, _ security: AccessPoint.Security) -> Bool {
    security == .open && (name == usual || others.contains { name.hasPrefix($0) })
  }
}
