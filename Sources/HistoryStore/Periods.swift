// Stores trips, charges and parked periods. They are computed elsewhere and replaced as a whole; a period whose blocks were dropped stays
// unchanged.

import Protocols
import SQLite

/// A stored period that is being read. It is valid only during the call that it is passed to.
public struct PeriodRow {
  static let columns = """
    period.id, device, kind, start_boot, start, end_boot, "end", zone, open, frozen, summary_start, summary
    """

  public let device: String
  private let row: SQLRow

  fileprivate init(_ row: SQLRow, devices: [Int: String]) { (self.row, device) = (row, devices[row.number(1)] ?? "") }

  public var id: Int { row.number(0) }
  public var start: BootTime { BootTime(boot: row.number(3), time: row.int(4)) }
  public var end: BootTime { BootTime(boot: row.number(5), time: row.int(6)) }
  public var isOpen: Bool { row.bool(8) }
  public var isFrozen: Bool { row.bool(9) }
  /// As in `Period`.
  public var summaryStart: Int64 { row.int(10) }

  /// Appends the summary, a JSON object, without its opening brace.
  public func appendSummaryMembers(to bytes: inout [UInt8]) { row.append(tailOf: 11, to: &bytes) }

  /// Returns the whole period, without its details.
  public func period() throws(StoreError) -> Period {
    guard let kind = Period.Kind(rawValue: row.text(2)) else {
      throw StoreError(.damaged, "period \(id) has the unknown kind \(row.text(2)); upgrade")
    }
    var period = Period(device: device, kind: kind, start: start, end: end, zone: row.text(7))
    (period.id, period.isOpen, period.isFrozen) = (id, isOpen, isFrozen)
    (period.summaryStart, period.summary) = (summaryStart, row.text(11))
    return period
  }

  fileprivate var details: String { row.text(12) }
}

extension HistoryReader {
  /// The periods of a device (all devices if nil) and kind (all if nil) that overlap a range of wall-clock time (µs), latest first, without
  /// their details.
  public func periods(
    of device: String? = nil, kind: Period.Kind? = nil, in range: ClosedRange<Int64> = .min ... .max, limit: Int = .max
  ) throws(StoreError) -> [Period] {
    var periods: [Period] = []
    try readPeriods(try periodIDs(of: device, kind: kind, in: range, limit: limit)[...]) { (row) throws(StoreError) in
      periods.append(try row.period())
      return true
    }
    return periods.reversed()
  }

  /// The IDs of the latest `limit` of these periods, earliest first.
  public func periodIDs(
    of device: String?, kind: Period.Kind?, in range: ClosedRange<Int64>, limit: Int
  ) throws(StoreError) -> [Int] {
    let id = try device.map { (name) throws(StoreError) in try database.number("SELECT id FROM device WHERE name = ?", [.text(name)]) }
    return try database.snapshot { () throws(StoreError) in try find(of: id, kind, in: range).suffix(limit) }
  }

  /// Calls `body` for each of the periods with these IDs, in their order, until it returns false. Periods that no longer exist are omitted.
  /// Returns how many of the IDs were read.
  @discardableResult
  public func readPeriods(
    _ ids: ArraySlice<Int>, _ body: (PeriodRow) throws(StoreError) -> Bool
  ) throws(StoreError) -> Int {
    try database.snapshot { () throws(StoreError) in
      let names = try database.rows("SELECT id, name FROM device") { (row) throws(StoreError) in (row.number(0), row.text(1)) }
      let devices = Dictionary(uniqueKeysWithValues: names)
      var (rest, continues) = (ids, true)
      while continues, !rest.isEmpty {
        // One statement for many IDs takes a third of the time of one for each.
        let batch = rest.prefix(500)
        var count = batch.count
        let sql = "SELECT \(PeriodRow.columns), key FROM json_each(?) AS wanted CROSS JOIN period ON period.id = wanted.value"
        try database.forEachRow(sql, [.text("[\(batch.map(String.init).joined(separator: ","))]")]) { (row) throws(StoreError) in
          continues = try body(PeriodRow(row, devices: devices))
          if !continues { count = row.number(12) + 1 }
          return continues
        }
        rest = rest.dropFirst(count)
      }
      return ids.count - rest.count
    }
  }

  /// The IDs of the periods in a range, ordered by start. They are found without their rows: an index has all columns.
  private func find(of device: Int64?, _ kind: Period.Kind?, in range: ClosedRange<Int64>) throws(StoreError) -> [Int] {
    var (conditions, arguments): ([String], [SQLValue]) = ([], [])
    if let kind { (conditions, arguments) = (["kind = ?"], [.text(kind.rawValue)]) }
    if let device {
      conditions.append("device = ?")
      arguments.append(.int(device))
    }
    let condition = conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ")
    let offsets = Dictionary(try allBoots().map { ($0.id, $0.offset) }) { first, _ in first }
    let sql = "SELECT id, start_boot, start, end_boot, \"end\" FROM period INDEXED BY period_time\(condition)"
    var found: [(start: Int64, id: Int)] = []
    _ = try database.rows(sql, arguments) { (row) throws(StoreError) in
      let start = row.int(2) &+ (offsets[row.number(1)] ?? 0)
      let end = row.int(4) &+ (offsets[row.number(3)] ?? 0)
      if start <= range.upperBound, end >= range.lowerBound { found.append((start, row.number(0))) }
    }
    found.sort { ($0.start, $0.id) < ($1.start, $1.id) }
    return found.map(\.id)
  }

  /// The period with this ID, or nil if there is none.
  public func period(_ id: Int) throws(StoreError) -> Period? {
    let names = try database.rows("SELECT id, name FROM device") { (row) throws(StoreError) in (row.number(0), row.text(1)) }
    let sql = "SELECT \(PeriodRow.columns), details FROM period WHERE id = ?"
    return try database.rows(sql, [.int(id)]) { [devices = Dictionary(uniqueKeysWithValues: names)] (row) throws(StoreError) in
      let row = PeriodRow(row, devices: devices)
      var period = try row.period()
      period.details = row.details
      return period
    }.first
  }
}

extension HistoryStore {
  /// Stores a period. If its ID is 0, it is added; otherwise it replaces the period with this ID. Returns the ID.
  @discardableResult
  public func store(_ period: Period) throws(StoreError) -> Int {
    let device = try device(period.device)
    var id = period.id
    try performWrite { () throws(StoreError) in
      try database.run(
        """
        INSERT INTO period (id, device, kind, start_boot, start, end_boot, "end", zone, open, frozen, summary_start, summary, details)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET device = excluded.device, kind = excluded.kind, start_boot = excluded.start_boot,
          start = excluded.start, end_boot = excluded.end_boot, "end" = excluded."end", zone = excluded.zone, open = excluded.open,
          frozen = excluded.frozen, summary_start = excluded.summary_start, summary = excluded.summary, details = excluded.details
        """,
        [
          id == 0 ? .null : .int(id), .int(device), .text(period.kind.rawValue), .int(period.start.boot), .int(period.start.time),
          .int(period.end.boot), .int(period.end.time), .text(period.zone), .bool(period.isOpen), .bool(period.isFrozen),
          .int(period.summaryStart), .text(period.summary), .text(period.details),
        ])
      if id == 0 { id = database.lastID }
    }
    return id
  }

  /// Removes a period that turned out to be part of another one, or too short.
  public func removePeriod(_ id: Int) throws(StoreError) {
    try database.run("DELETE FROM period WHERE id = ?", [.int(id)])
  }

  /// Replaces the periods of a device that overlap a range of wall-clock time (µs) with new ones. A new period takes the ID of an old one
  /// of the same kind that it overlaps. Frozen periods stay, and new ones of the same kind that overlap them are omitted. Returns the
  /// periods that the range now contains.
  @discardableResult
  public func replacePeriods(
    of device: String, in range: ClosedRange<Int64>, with periods: [Period]
  ) throws(StoreError) -> [Period] {
    let offsets = Dictionary(
      uniqueKeysWithValues: try database.rows("SELECT id, offset FROM boot") { (row) throws(StoreError) in
        (row.number(0), row.int(1))
      })
    func span(_ period: Period) -> ClosedRange<Int64> {
      let start = period.start.time + (offsets[period.start.boot] ?? 0)
      return start...max(start, period.end.time + (offsets[period.end.boot] ?? 0))
    }
    try performWrite { () throws(StoreError) in
      let old = try reader.periods(of: device, in: range)
      let frozen = old.filter(\.isFrozen)
      var replaceable = old.filter { !$0.isFrozen }
      for var period in periods where !frozen.contains(where: { $0.kind == period.kind && span($0).overlaps(span(period)) }) {
        let matches = replaceable.indices.filter {
          replaceable[$0].kind == period.kind && span(replaceable[$0]).overlaps(span(period))
        }
        func overlap(_ index: Int) -> Int64 { span(replaceable[index]).clamped(to: span(period)).length }
        let best = matches.max { overlap($0) < overlap($1) }
        period.id = best.map { replaceable.remove(at: $0).id } ?? 0
        try store(period)
      }
      for period in replaceable { try database.run("DELETE FROM period WHERE id = ?", [.int(period.id)]) }
    }
    return try reader.periods(of: device, in: range)
  }
}

extension ClosedRange<Int64> {
  fileprivate var length: Int64 { upperBound - lowerBound }
}
