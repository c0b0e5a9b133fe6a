// Stores trips, charges and parked periods. They are computed elsewhere and replaced as a whole; a period whose blocks were dropped stays
// unchanged.

import Protocols

extension HistoryReader {
  private static let columns = """
    p.id, d.name, p.kind, p.start_boot, p.start, p.end_boot, p."end", p.zone, p.open, p.frozen, p.summary_start, p.summary
    """

  /// The periods of a device (all devices if nil) and kind (all if nil) that overlap a range of wall-clock time (µs), latest first, without
  /// their details.
  public func periods(
    of device: String? = nil, kind: Period.Kind? = nil, in range: ClosedRange<Int64> = .min ... .max, limit: Int = .max
  ) throws(HistoryError) -> [Period] {
    var (conditions, arguments): ([String], [SQLValue]) = ([], [])
    if let kind { (conditions, arguments) = (["p.kind = ?"], [.text(kind.rawValue)]) }
    if let device {
      conditions.append("p.device = (SELECT id FROM device WHERE name = ?)")
      arguments.append(.text(device))
    }
    // The index has all columns of the inner query: rows are large, and only those of the result are read.
    let sql = """
      SELECT \(Self.columns) FROM (SELECT p.id AS id, p.start + s.offset AS time FROM period p JOIN boot s ON s.id = p.start_boot
        JOIN boot e ON e.id = p.end_boot
        WHERE \((conditions + ["p.start + s.offset <= ?", "p.\"end\" + e.offset >= ?"]).joined(separator: " AND "))
        ORDER BY time DESC, p.id DESC LIMIT ?) found
      CROSS JOIN period p ON p.id = found.id CROSS JOIN device d ON d.id = p.device ORDER BY found.time DESC, found.id DESC
      """
    arguments += [.int(range.upperBound), .int(range.lowerBound), .int(limit)]
    return try database.rows(sql, arguments, period)
  }

  /// The period with this ID, or nil if there is none.
  public func period(_ id: Int) throws(HistoryError) -> Period? {
    try database.rows("SELECT \(Self.columns), p.details FROM period p JOIN device d ON d.id = p.device WHERE p.id = ?", [.int(id)]) {
      (row) throws(HistoryError) in
      var period = try period(row)
      period.details = row.text(12)
      return period
    }.first
  }

  private func period(_ row: SQLRow) throws(HistoryError) -> Period {
    guard let kind = Period.Kind(rawValue: row.text(2)) else {
      throw HistoryError(.damaged, "period \(row.number(0)) has the unknown kind \(row.text(2)); upgrade")
    }
    var period = Period(
      device: row.text(1), kind: kind, start: BootTime(boot: row.number(3), time: row.int(4)),
      end: BootTime(boot: row.number(5), time: row.int(6)), zone: row.text(7))
    period.id = row.number(0)
    period.isOpen = row.bool(8)
    period.isFrozen = row.bool(9)
    period.summaryStart = row.int(10)
    period.summary = row.text(11)
    return period
  }
}

extension HistoryStore {
  /// Stores a period. If its ID is 0, it is added; otherwise it replaces the period with this ID. Returns the ID.
  @discardableResult
  public func store(_ period: Period) throws(HistoryError) -> Int {
    let device = try device(period.device)
    var id = period.id
    try performWrite { () throws(HistoryError) in
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
  public func removePeriod(_ id: Int) throws(HistoryError) {
    try database.run("DELETE FROM period WHERE id = ?", [.int(id)])
  }

  /// Replaces the periods of a device that overlap a range of wall-clock time (µs) with new ones. A new period takes the ID of an old one
  /// of the same kind that it overlaps. Frozen periods stay, and new ones of the same kind that overlap them are omitted. Returns the
  /// periods that the range now contains.
  @discardableResult
  public func replacePeriods(
    of device: String, in range: ClosedRange<Int64>, with periods: [Period]
  ) throws(HistoryError) -> [Period] {
    let offsets = Dictionary(
      uniqueKeysWithValues: try database.rows("SELECT id, offset FROM boot") { (row) throws(HistoryError) in
        (row.number(0), row.int(1))
      })
    func span(_ period: Period) -> ClosedRange<Int64> {
      let start = period.start.time + (offsets[period.start.boot] ?? 0)
      return start...max(start, period.end.time + (offsets[period.end.boot] ?? 0))
    }
    try performWrite { () throws(HistoryError) in
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
