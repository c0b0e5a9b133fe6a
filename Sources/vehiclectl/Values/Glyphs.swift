// Numbers as characters: sparklines, bars, and large digits. No I/O.

enum Glyphs {
  private static let heights: [Unicode.Scalar] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]
  private static let eighths: [Unicode.Scalar] = [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]
  /// The graph of a nearly steady value is scaled to this fraction of it, so that noise does not look like a change.
  private static let steady: Float = 0.02

  /// The number of seconds for one character of a sparkline of at most this width.
  static func step(width: Int) -> Int { max(1, (SampleHistory.length + max(1, width) - 1) / max(1, width)) }

  /// A graph with one character for each sample: a line if all samples are equal, a space where there is no value.
  static func sparkline(_ samples: [Float?]) -> String {
    let known = samples.compactMap { $0 }
    guard let low = known.min(), let high = known.max() else { return String(repeating: " ", count: samples.count) }
    if low == high { return text(samples.map { $0 == nil ? " " : "─" }) }
    let least = max(abs(high), abs(low)) * steady
    let isSteady = high - low < least
    // The middle of a block is at an odd sixteenth.
    let (base, span) = isSteady ? ((low + high) / 2 - least * 7 / 16, least) : (low, high - low)
    return text(samples.map { $0.map { height(Double(($0 - base) / span)) } ?? " " })
  }

  /// The block for a fraction, 0 to 1.
  static func height(_ fraction: Double) -> Unicode.Scalar { heights[min(7, max(0, Int(fraction * 7.99)))] }

  /// A bar for a fraction, 0 to 1. Its rest is dotted, so that its length is visible without colour.
  static func bar(_ fraction: Double, width: Int) -> (filled: String, rest: String) {
    let count = Int((min(1, max(0, fraction)) * Double(width) * 8).rounded())
    let part = count % 8 == 0 ? [] : [eighths[count % 8]]
    let filled = [Unicode.Scalar](repeating: "█", count: count / 8) + part
    return (text(filled), String(repeating: "·", count: width - filled.count))
  }

  /// The rows of a number in large digits. Scale 1 has three rows of half blocks, 3 cells per digit; scale 2, five rows of full blocks, 6
  /// cells per digit.
  static func large(_ number: String, scale: Int) -> [String] {
    let patterns = number.map { digits[$0] ?? digits["-"] ?? [] }
    if scale == 1 {
      return stride(from: 0, to: 6, by: 2).map { row in
        patterns.map { pattern in
          text((0..<width(pattern)).map { halfBlock(pixel(pattern, row, $0), pixel(pattern, row + 1, $0)) }) + " "
        }.joined()
      }
    }
    return (0..<5).map { row in
      patterns.map { pattern in
        (0..<width(pattern)).map { pixel(pattern, row, $0) ? "██" : "  " }.joined() + "  "
      }.joined()
    }
  }

  private static func halfBlock(_ upper: Bool, _ lower: Bool) -> Unicode.Scalar { upper ? lower ? "█" : "▀" : lower ? "▄" : " " }

  private static func pixel(_ pattern: [String], _ row: Int, _ column: Int) -> Bool {
    guard pattern.indices.contains(row) else { return false }
    return pattern[row].dropFirst(column).first == "#"
  }

  private static func width(_ pattern: [String]) -> Int { pattern.first?.count ?? 0 }

  private static func text(_ scalars: [Unicode.Scalar]) -> String { String(String.UnicodeScalarView(scalars)) }

  /// Five rows of each character.
  private static let digits: [Character: [String]] = [
    "0": ["###", "# #", "# #", "# #", "###"], "1": [" # ", "## ", " # ", " # ", "###"], "2": ["###", "  #", "###", "#  ", "###"],
    "3": ["###", "  #", "###", "  #", "###"], "4": ["# #", "# #", "###", "  #", "  #"], "5": ["###", "#  ", "###", "  #", "###"],
    "6": ["###", "#  ", "###", "# #", "###"], "7": ["###", "  #", "  #", "  #", "  #"], "8": ["###", "# #", "###", "# #", "###"],
    "9": ["###", "# #", "###", "  #", "###"], ".": [" ", " ", " ", " ", "#"], "-": ["   ", "   ", "###", "   ", "   "],
  ]
}
