// The suggestion for a misspelt name.

/// The known name most similar to a misspelt one, or nil if none is similar enough.
public func nearest(to wrong: String, among known: [String]) -> String? {
  let letters = Array(wrong.lowercased().utf8.prefix(64))
  let best = known.map { (name: $0, steps: editDistance(letters, Array($0.utf8))) }.min { $0.steps < $1.steps }
  guard let best, best.steps <= max(1, min(letters.count, best.name.utf8.count) / 3) else { return nil }
  return best.name
}

/// The minimum number of letters to insert, remove, replace or swap with a neighbour to turn one name into the other.
private func editDistance(_ name: [UInt8], _ other: [UInt8]) -> Int {
  var beforeLast: [Int] = []
  var last = Array(0...other.count)
  for row in name.indices {
    var current = [row + 1]
    for column in other.indices {
      var steps = min(last[column + 1] + 1, current[column] + 1, last[column] + (name[row] == other[column] ? 0 : 1))
      if row > 0, column > 0, name[row] == other[column - 1], name[row - 1] == other[column] {
        steps = min(steps, beforeLast[column - 1] + 1)
      }
      current.append(steps)
    }
    beforeLast = last
    last = current
  }
  return last[other.count]
}
