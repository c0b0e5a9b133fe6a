// Permanently deletes the recorded values of a device, a property or a time range. Deleted data is overwritten in the file.

import Protocols
import SQLite
import SampleBlocks

extension HistoryStore {
  /// A selection of values to delete.
  public struct Deletion: Sendable {
    public var device: String
    /// All properties if nil.
    public var property: String?
    /// The range of wall-clock time (µs); all times if nil.
    public var range: ClosedRange<Int64>?
    /// Whether periods were computed from these values. They stay unchanged then, also when they are recomputed.
    public var affectsPeriods: Bool

    /// Creates a deletion.
    public init(device: String, property: String? = nil, range: ClosedRange<Int64>? = nil, affectsPeriods: Bool = true) {
      self.device = device
      self.property = property
      self.range = range
      self.affectsPeriods = affectsPeriods
    }
  }

  /// Deletes values. A period is deleted only if all properties are deleted for its entire duration. Returns descriptions of the damaged
  /// blocks, which are deleted as a whole.
  @discardableResult
  public func delete(_ deletion: Deletion) throws(StoreError) -> [String] {
    let device = try reader.deviceID(deletion.device)
    let series = try reader.series(of: deletion.device).filter { deletion.property == nil || $0.key.property == deletion.property }
    if let property = deletion.property, series.isEmpty {
      throw StoreError(.invalid, "property \"\(property)\" of \(deletion.device) has no recorded values")
    }
    let ids = Set(series.map(\.id))
    try database.execute("PRAGMA secure_delete = ON")
    defer { try? database.execute("PRAGMA secure_delete = OFF") }
    // Merged blocks repeat the values that are valid at their start; others do not.
    var damage = try compact()
    try database.transaction { () throws(StoreError) in
      for boot in try database.rows("SELECT id, uuid, offset, synchronised FROM boot", [], reader.boot) {
        let range = deletion.range.map {
          $0.lowerBound.subtractingClamped(boot.offset)...$0.upperBound.subtractingClamped(boot.offset)
        }
        damage += try deleteBlocks(device, deletion, boot, ids, range)
        try deleteRollups(boot, ids, range)
      }
      let range = deletion.range ?? .min ... .max
      if deletion.property == nil { try deletePeriods(device, deletion.range) }
      // Deleted values can be imported again.
      try database.run(
        "DELETE FROM imported WHERE device = ? AND start <= ? AND \"end\" >= ?",
        [.int(device), .int(range.upperBound), .int(range.lowerBound)])
      if deletion.affectsPeriods { try freezePeriods(of: device, in: range) }
      try updateSpans()
      guard deletion.range == nil else { return }
      for id in ids { try database.run("DELETE FROM series WHERE id = ?", [.int(id)]) }
      if deletion.property == nil { try database.run("DELETE FROM device WHERE id = ?", [.int(device)]) }
    }
    forgetNames()
    try checkpoint()
    return damage
  }

  /// Deletes from the merged blocks of a boot. `range` is in microseconds of the boot.
  private func deleteBlocks(
    _ device: Int, _ deletion: Deletion, _ boot: Boot, _ ids: Set<Int>, _ range: ClosedRange<Int64>?
  ) throws(StoreError) -> [String] {
    var damage: [String] = []
    var followsDeleted = false
    for reference in try reader.merged(device: device, boot: boot.id) {
      // The last values before deleted ones are not valid after them.
      let continues = reference.continues && !followsDeleted
      followsDeleted = false
      if let range, reference.start > range.upperBound || reference.end < range.lowerBound {
        if continues != reference.continues {
          try database.run("UPDATE block SET continues = ? WHERE id = ?", [.bool(continues), .int(reference.id)])
        }
        continue
      }
      var parts: [Part] = []
      // A block that is deleted as a whole is not read.
      let isWhole = range.map { $0.lowerBound <= reference.start && reference.end <= $0.upperBound } ?? true
      if deletion.property != nil || !isWhole {
        guard let bytes = try reader.bytes(reference) else { continue }
        do throws(BlockError) {
          let block = try Block(bytes)
          if deletion.property == nil, let range {
            parts = try Self.parts(of: block, around: range, continues)
          } else {
            parts = [Part(start: block.start, end: block.end, continues: continues, bytes: try Self.removing(ids, in: range, from: block))]
          }
        } catch {
          damage.append(reference.describe(deletion.device, boot, error))
        }
      }
      try database.run("DELETE FROM block WHERE id = ?", [.int(reference.id)])
      for part in parts {
        try database.run(
          "INSERT INTO block (device, boot, start, \"end\", continues, data) VALUES (?, ?, ?, ?, ?, ?)",
          [.int(device), .int(boot.id), .int(part.start), .int(part.end), .bool(part.continues), .blob(part.bytes)])
      }
      followsDeleted = parts.last?.end != reference.end
    }
    return damage
  }

  /// What remains of a block.
  private struct Part {
    var start: Int64
    var end: Int64
    var continues: Bool
    var bytes: [UInt8]
  }

  /// Returns the parts of a block before and after a range. The time between them is not recorded, and can be imported again.
  private static func parts(of block: Block, around range: ClosedRange<Int64>, _ continues: Bool) throws(BlockError) -> [Part] {
    var (before, after) = (BlockBuilder(), BlockBuilder())
    for column in try block.columns() {
      for index in 0..<column.count {
        let time = column.times[index]
        if time < range.lowerBound {
          try before.append(column.content(index), series: column.series, at: time)
        } else if time > range.upperBound {
          try after.append(column.content(index), series: column.series, at: time)
        }
      }
    }
    var parts: [Part] = []
    if block.start < range.lowerBound {
      let end = range.lowerBound - 1
      parts.append(
        Part(start: block.start, end: end, continues: continues, bytes: before.build(from: block.start, to: end, layout: .columns)))
    }
    if !after.isEmpty {
      let start = range.upperBound + 1
      parts.append(
        Part(start: start, end: block.end, continues: false, bytes: after.build(from: start, to: block.end, layout: .columns)))
    }
    return parts
  }

  /// Returns a copy of a block in which some series are absent within a range. Without a range, the copy omits these series.
  private static func removing(_ ids: Set<Int>, in range: ClosedRange<Int64>?, from block: Block) throws(BlockError) -> [UInt8] {
    var builder = BlockBuilder()
    for column in try block.columns() {
      guard ids.contains(column.series) else {
        try builder.append(column)
        continue
      }
      guard let range else { continue }
      var isAbsent = false
      for index in 0..<column.count {
        let time = column.times[index]
        if range.contains(time) {
          if !isAbsent { try builder.append(.absent("deleted"), series: column.series, at: time) }
          isAbsent = true
        } else {
          // A value that was valid at the start of the range becomes absent there.
          let next = index + 1 < column.count ? column.times[index + 1] : Int64.max
          try builder.append(column.content(index), series: column.series, at: time)
          isAbsent = false
          if time < range.lowerBound, next > range.lowerBound, block.end >= range.lowerBound {
            try builder.append(.absent("deleted"), series: column.series, at: max(range.lowerBound, time + 1))
            isAbsent = true
          }
        }
      }
    }
    return builder.build(from: block.start, to: block.end, layout: .columns)
  }

  private func deleteRollups(_ boot: Boot, _ ids: Set<Int>, _ range: ClosedRange<Int64>?) throws(StoreError) {
    for id in ids {
      guard let range else {
        for resolution in RollupResolution.allCases {
          try database.run(
            "DELETE FROM rollup WHERE resolution = ? AND boot = ? AND series = ?", [.int(resolution.rawValue), .int(boot.id), .int(id)])
        }
        continue
      }
      // An interval that overlaps the range is deleted as a whole, because an aggregate cannot be split.
      for resolution in RollupResolution.allCases {
        for row in try database.rollups(resolution, boot: boot.id, series: id, from: range.lowerBound, to: range.upperBound) {
          let intervals = (try? RollupCoding.decode(row.bytes, resolution)) ?? [:]
          let remaining = intervals.filter {
            let start = Int64($0.key) * resolution.width
            return start > range.upperBound || start + resolution.width <= range.lowerBound
          }
          if remaining.count < intervals.count || intervals.isEmpty {
            try database.setRollups(remaining, resolution, boot: boot.id, series: id, row: row.row)
          }
        }
      }
    }
  }

  /// Sets the first and last times of the boots to those of their merged blocks.
  private func updateSpans() throws(StoreError) {
    try database.run("UPDATE boot SET first = NULL, last = NULL WHERE id NOT IN (SELECT boot FROM block)")
    try database.run(
      """
      UPDATE boot SET first = span.first, last = span.last
      FROM (SELECT boot, min(start) AS first, max("end") AS last FROM block GROUP BY boot) AS span WHERE span.boot = boot.id
      """)
  }

  /// Freezes the closed periods of a device that overlap a range of wall-clock time (µs), because some of their values are gone.
  func freezePeriods(of device: Int, in range: ClosedRange<Int64>) throws(StoreError) {
    try database.run(
      """
      UPDATE period SET frozen = 1 WHERE device = ?1 AND frozen = 0 AND open = 0
      AND start + (SELECT offset FROM boot WHERE id = start_boot) <= ?3
      AND "end" + (SELECT offset FROM boot WHERE id = end_boot) >= ?2
      """, [.int(device), .int(range.lowerBound), .int(range.upperBound)])
  }

  /// Freezes the closed periods of a device that overlap these ranges of wall-clock time (µs), because their blocks cannot be read.
  public func freezePeriods(of device: String, in ranges: [ClosedRange<Int64>]) throws(StoreError) {
    guard !ranges.isEmpty else { return }
    let id = try reader.deviceID(device)
    try performWrite { () throws(StoreError) in for range in ranges { try freezePeriods(of: id, in: range) } }
  }

  private func deletePeriods(_ device: Int, _ range: ClosedRange<Int64>?) throws(StoreError) {
    guard let range else {
      try database.run("DELETE FROM period WHERE device = ?", [.int(device)])
      return
    }
    try database.run(
      """
      DELETE FROM period WHERE device = ? AND start + (SELECT offset FROM boot WHERE id = start_boot) >= ?
      AND "end" + (SELECT offset FROM boot WHERE id = end_boot) <= ?
      """, [.int(device), .int(range.lowerBound), .int(range.upperBound)])
  }
}
