// The tables of an export that hold samples, and the queries on them. The tables differ between vendors, and new versions add tables, so
// tables are detected by their columns. Names from the database are untrusted and therefore quoted.
// Source: Gadgetbridge's schema. All tables of samples have TIMESTAMP, DEVICE_ID and STEPS (steps of the sample; -1 or 0: none). Most have
// HEART_RATE (255 or below 1: none), and a few have DISTANCE_CM, DISTANCE_METERS or ACTIVE_CALORIES (kcal). DISTANCE and CALORIES differ
// between vendors and are not used. A SUMMARY table has one row per day. Times are in seconds, or in milliseconds if above 10^11.

/// A table of samples.
struct GadgetbridgeTable: Sendable, Equatable {
  var name: String
  /// The names of the columns as spelled in the database, by their upper-case names.
  var columns: [String: String]
  /// The columns of the table that contains the names of the devices, by their upper-case names; nil if there is no such table.
  var devices: [String: String]?
  var devicesName = ""

  /// Whether each row is a total of a day.
  var isSummary: Bool { name.uppercased().contains("SUMMARY") }
  /// The column with the distance, and metres per unit.
  var metres: (column: String, factor: Double)? {
    columns["DISTANCE_CM"].map { ($0, 0.01) } ?? columns["DISTANCE_METERS"].map { ($0, 1) }
  }

  private static let maxTables = 64
  private static let maxNameLength = 200

  /// The query for the tables with relevant columns.
  static let tablesQuery = """
    SELECT m.name, c.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table' AND upper(c.name) IN \
    ('TIMESTAMP', 'DEVICE_ID', 'STEPS', 'HEART_RATE', 'DISTANCE_CM', 'DISTANCE_METERS', 'ACTIVE_CALORIES', '_ID', 'NAME', 'ALIAS') \
    ORDER BY m.name, c.cid
    """

  /// The tables with samples, from the result of `tablesQuery`.
  static func all(in rows: [[Value?]]) -> [GadgetbridgeTable] {
    var tables: [String: [String: String]] = [:]
    for row in rows {
      guard row.count == 2, case .string(let table)? = row[0], case .string(let column)? = row[1], isName(table), isName(column) else {
        continue
      }
      tables[table, default: [:]][column.uppercased()] = column
    }
    let devices = tables.first { $0.key.uppercased() == "DEVICE" && $0.value["_ID"] != nil && $0.value["NAME"] != nil }
    let samples = tables.filter { $0.value["TIMESTAMP"] != nil && $0.value["STEPS"] != nil }.sorted { $0.key < $1.key }
    return samples.prefix(maxTables).map {
      GadgetbridgeTable(name: $0.key, columns: $0.value, devices: devices?.value, devicesName: devices?.key ?? "")
    }
  }

  private static func isName(_ text: String) -> Bool { text.utf8.count <= maxNameLength && !text.utf8.contains(0) }

  private static func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }

  /// The query for one row per device and table; nil if there are no tables. Its columns are: table, device, its name and alias, newest
  /// sample, number of samples today, their steps, metres and kcal, and the newest heart rate (time in s × 1000 + rate). `?1` is midnight,
  /// and `?2` is the latest valid time.
  static func totalsQuery(of tables: [GadgetbridgeTable]) -> String? {
    if tables.isEmpty { return nil }
    return tables.indices.map { tables[$0].totalsQuery(number: $0) }.joined(separator: " UNION ALL ")
  }

  private func totalsQuery(number: Int) -> String {
    func column(_ name: String) -> String { columns[name].map(Self.quoted) ?? "NULL" }
    func named(_ name: String) -> String {
      guard let devices, let column = devices[name], let id = devices["_ID"] else { return "NULL" }
      return "(SELECT x.\(Self.quoted(column)) FROM \(Self.quoted(devicesName)) AS x WHERE x.\(Self.quoted(id)) = d LIMIT 1)"
    }
    func sum(_ what: String) -> String { "total(CASE WHEN t >= ?1 AND \(what) > 0 THEN \(what) END)" }
    let time = "CAST(\(column("TIMESTAMP")) AS INTEGER)"
    return """
      SELECT \(number), d, \(named("NAME")), \(named("ALIAS")), max(t), count(CASE WHEN t >= ?1 THEN 1 END), \(sum("n")), \
      \(metres.map { "\(sum("m")) * \($0.factor)" } ?? "NULL"), \(columns["ACTIVE_CALORIES"] == nil ? "NULL" : sum("k")), \
      max(CASE WHEN h BETWEEN 20 AND 254 THEN t * 1000 + h END) \
      FROM (SELECT \(column("DEVICE_ID")) AS d, CASE WHEN \(time) > 100000000000 THEN \(time) / 1000 ELSE \(time) END AS t, \
      \(column("STEPS")) AS n, \(metres.map { Self.quoted($0.column) } ?? "NULL") AS m, \(column("ACTIVE_CALORIES")) AS k, \
      CAST(\(column("HEART_RATE")) AS INTEGER) AS h FROM \(Self.quoted(name))) WHERE t > 0 AND t <= ?2 GROUP BY d
      """
  }
}
