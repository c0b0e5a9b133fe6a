// Counts the consecutive timeouts of a board, and decides when it counts as silent.

struct ELCommMisses: Sendable {
  /// The number of timeouts after which an as-built board counts as silent: about two seconds.
  static let max = 5
  /// The number of timeouts after which a documented board counts as silent: also about two seconds.
  static let maxDocumented = 2

  private var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func add() { count += 1 }
  mutating func reset() { count = 0 }

  /// Whether the board counts as silent after this number of timeouts, or after two if it sends only invalid data.
  func isSilent(after max: Int, isGarbled: Bool) -> Bool { count >= max || count > 1 && isGarbled }
}
