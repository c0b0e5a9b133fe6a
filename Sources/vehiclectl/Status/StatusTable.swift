// Formats `status --all`: every property of a device by group, with its age, or the reason why it has no value. No I/O.

import Varlink

enum StatusTable {
  static func lines(_ status: DeviceStatus, width: Int?, paint: (String, Style) -> String) -> [String] {
    var table = Table("property", ">value", "unit", ">age", "")
    var group: String?
    for row in status.rows {
      if row.group != group { table.rows.append([Cell(row.group, .bold)]) }
      group = row.group
      let age = Cell(row.value == nil ? "" : row.age(at: status.now).map(Format.duration) ?? "", .dim)
      let (value, remark) = cells(row, status)
      table.rows.append([Cell("  \(row.name)"), value, Cell(row.unit ?? ""), age, remark])
    }
    if let width { table.shortenFirstColumn(to: width, indent: 2) }
    let header = status.header(detailed: true, width: width, paint: paint)
    return status.rows.isEmpty ? header : header + table.lines(indent: 2, width: width, paint: paint)
  }

  /// The cells of the value and of the last column. The last column has the reason for a missing value, or a value that is too long for the
  /// value column.
  private static func cells(_ row: PropertyRow, _ status: DeviceStatus) -> (value: Cell, remark: Cell) {
    guard row.value != nil else {
      // The header has the reasons that many properties share.
      let reason = status.device.explains(row.reason) ? nil : row.reason
      return (Cell("-", .dim), Cell(reason.map { Format.absence($0, for: row.absence(at: status.now)) } ?? "", .dim))
    }
    let style = Meaning.role(of: row).style
    return row.text.displayWidth <= maxColumnWidth
      ? (Cell(row.text, style), Cell(row.reason ?? "", .dim)) : (Cell(""), Cell(row.text, style))
  }

  private static let maxColumnWidth = 20
}
