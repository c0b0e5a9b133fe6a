// Reads the columns that periods depend on from blocks. No I/O.

import HistoryStore
import SampleBlocks
import Trips

extension SampleColumns {
  init(_ chunk: Chunk, _ signals: [Int: Signal]) {
    self.init(offset: chunk.boot.offset, start: chunk.start, continues: chunk.continues)
    for column in chunk.columns { append(column, signals) }
  }

  private mutating func append(_ column: Column, _ signals: [Int: Signal]) {
    guard let signal = signals[column.series] else { return }
    guard let numbers = column.numbers else {
      return append(signal.role, at: column.times, (0..<column.count).map { signal.sample(column.content($0), at: 0).value ?? .nan })
    }
    let isUnchanged = signal.scale == 1 && !numbers.contains(where: \.isInfinite)
    append(signal.role, at: column.times, isUnchanged ? numbers : numbers.map { signal.value($0) })
  }

  /// Reads the columns of these signals from a block; that of the battery power, a large one, only if it can change something.
  static func read(_ block: Block, _ signals: [Int: Signal]) throws(BlockError) -> [Column] {
    func role(_ series: Int) -> Role? { signals[series]?.role }
    return try block.columns {
      role($0) != nil && role($0) != .batteryPower
    } and: { columns in
      var known = SampleColumns(offset: 0, start: block.start, continues: false)
      for column in columns where role(column.series) == .batteryCurrent || role(column.series) == .batteryVoltage {
        known.append(column, signals)
      }
      return known.needBatteryPower(from: block.start, to: block.end)
    } where: {
      role($0) == .batteryPower
    }
  }
}
