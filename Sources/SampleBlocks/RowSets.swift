// The sets of rows in which the columns of a block have samples. Values that are polled together have samples in the same rows, or almost:
// an unchanged value is repeated once a second, together with the others. Each set is therefore stored once, and a set that resembles
// another one as its difference from that one. The format:
//
//   row set   = count, base, rows
//   base      = 0, or 1 plus the index of an earlier set whose own base is 0
//   rows      = base 0: numbers (the rows)
//               otherwise: the number of added rows, numbers (the rows), the number of removed rows, numbers (their indexes in the base)
//   numbers   = ascending numbers; for each one, how many are skipped since the previous one

/// The distinct sets of rows of a block.
struct RowSets {
  /// The maximum number of sets that later ones are compared with.
  private static let maxBases = 4

  private var sets: [(rows: [Int32], uses: Int)] = []

  /// Adds the rows of a column. Returns the number of the set.
  mutating func add(_ rows: [Int32]) -> Int {
    if let known = sets.firstIndex(where: { $0.rows == rows }) {
      sets[known].uses += 1
      return known
    }
    sets.append((rows, 1))
    return sets.count - 1
  }

  /// Returns the encoded sets, and the index among them of each set's number.
  func encode() -> (parts: [[UInt8]], indexes: [Int]) {
    // The set of most columns comes first, because many others resemble it.
    let order = sets.indices.sorted { (sets[$0].uses, -$0) > (sets[$1].uses, -$1) }
    var indexes = [Int](repeating: 0, count: sets.count)
    var parts: [[UInt8]] = []
    var bases: [Int] = []
    for number in order {
      let rows = sets[number].rows
      var best: (base: Int, difference: Difference)?
      for base in bases {
        let limit = best.map { $0.difference.count } ?? rows.count / 2
        if let difference = Difference(of: rows, from: sets[order[base]].rows, limit: limit) { best = (base, difference) }
      }
      if best == nil, bases.count < Self.maxBases { bases.append(parts.count) }
      var writer = ByteWriter()
      writer.append(rows.count)
      writer.append(best.map { $0.base + 1 } ?? 0)
      if let difference = best?.difference {
        for numbers in [difference.added, difference.removed] {
          writer.append(numbers.count)
          writer.append(ascending: numbers)
        }
      } else {
        writer.append(ascending: rows)
      }
      indexes[number] = parts.count
      parts.append(writer.bytes)
    }
    return (parts, indexes)
  }
}

/// How one set of rows differs from another one, the base.
private struct Difference {
  /// The rows that are not in the base.
  var added: [Int32] = []
  /// The indexes in the base of the rows that are only there.
  var removed: [Int32] = []

  var count: Int { added.count + removed.count }

  /// Compares two sets; nil if they differ in `limit` rows or more.
  init?(of rows: [Int32], from base: [Int32], limit: Int) {
    guard abs(rows.count - base.count) < limit else { return nil }
    var (row, index) = (0, 0)
    while row < rows.count || index < base.count {
      if row < rows.count, index < base.count, rows[row] == base[index] {
        (row, index) = (row + 1, index + 1)
        continue
      }
      if index == base.count || row < rows.count && rows[row] < base[index] {
        added.append(rows[row])
        row += 1
      } else {
        removed.append(Int32(index))
        index += 1
      }
      if count >= limit { return nil }
    }
  }
}

extension ByteWriter {
  fileprivate mutating func append(ascending numbers: [Int32]) {
    var next: Int32 = 0
    for number in numbers {
      append(Int(number - next))
      next = number + 1
    }
  }
}

extension ByteReader {
  /// Reads the number of rows in a set, at most `limit` and `rowCount`, and the index of its base, if it has one.
  mutating func rowSetHead(below rowCount: Int, limit: Int) throws(BlockError) -> (count: Int, base: Int?) {
    let count = try count("rows in a set", limit: min(limit, rowCount))
    let code = try self.count("as base", limit: BlockLimits.columns)
    return (count, code == 0 ? nil : code - 1)
  }

  /// Reads the rows of a set without a base.
  mutating func rowSet(_ count: Int, below rowCount: Int) throws(BlockError) -> [Int32] {
    let rows = try ascending(count, below: rowCount)
    try finish()
    return rows
  }

  /// Reads the added rows, and the indexes of the removed ones.
  mutating func rowSetDifference(below rowCount: Int) throws(BlockError) -> (added: [Int32], removed: [Int32]) {
    let added = try ascending(try elementCount("added rows"), below: rowCount)
    let removed = try ascending(try elementCount("removed rows"), below: rowCount)
    try finish()
    return (added, removed)
  }

  /// The rows of a set that differs from a base.
  func merged(_ base: [Int32], _ added: [Int32], _ removed: [Int32]) throws(BlockError) -> [Int32] {
    var rows: [Int32] = []
    rows.reserveCapacity(base.count + added.count)
    var (addition, removal) = (0, 0)
    for (index, row) in base.enumerated() {
      while addition < added.count, added[addition] < row {
        rows.append(added[addition])
        addition += 1
      }
      guard addition == added.count || added[addition] != row else { throw failure("row \(row) is added twice") }
      if removal < removed.count, removed[removal] == index { removal += 1 } else { rows.append(row) }
    }
    guard removal == removed.count else { throw failure("a row that the base does not have is removed") }
    rows.append(contentsOf: added[addition...])
    return rows
  }

  private mutating func ascending(_ count: Int, below limit: Int) throws(BlockError) -> [Int32] {
    var ascending: [Int32] = []
    ascending.reserveCapacity(min(count, remaining))
    var next: UInt64 = 0
    let (limit, place) = (UInt64(limit), place)
    try numbers(count) { (skipped) throws(BlockError) in
      guard skipped < limit, next + skipped < limit else { throw BlockError(place, "number \(skipped) after \(next) is out of range") }
      ascending.append(Int32(next + skipped))
      next += skipped + 1
    }
    return ascending
  }
}
