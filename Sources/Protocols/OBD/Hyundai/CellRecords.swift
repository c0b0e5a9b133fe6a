// Cell voltages: 32 per data record, one byte each, 20 mV per step. A missing cell reads 0, an unreadable one an implausible value; neither
// becomes a number. Facts: captures of Kona, Ioniq 28 kWh, Ioniq 5 and EV6.

extension ManufacturerRecord {
  static let cells: [ManufacturerRecord] =
    [0x02, 0x03, 0x04].enumerated().flatMap { index, record in
      [
        ManufacturerRecord(0x7E4, 0x7EC, [0x22, 0x01, record], every: 30, [.eGMP, .konaNiro], cellRows(from: index * 32 + 1)),
        ManufacturerRecord(0x7E4, 0x7EC, [0x21, record], every: 30, [.older], cellRows(from: index * 32 + 1)),
      ]
    }
    + [0x0A, 0x0B, 0x0C].enumerated().map { index, record in
      ManufacturerRecord(0x7E4, 0x7EC, [0x22, 0x01, record], every: 30, [.eGMP], cellRows(from: index * 32 + 97))
    }

  private static let first = 4
  private static let count = 32
  private static let plausible = 50...250 as ClosedRange<UInt8>

  private static func cellRows(from cell: Int) -> [DataRow] {
    let name = "cells-\(cell)-\(cell + count - 1)"
    let range = "cells \(cell) to \(cell + count - 1)"
    return [
      DataRow(Property(name, .list, unit: "V", help: "Voltages of \(range); ?: unreadable cell")) { data in
        guard let last = lastCell(data) else { return .absent(.notReported) }
        return .value(
          .list((first...last).map { plausible.contains(data[$0]) ? Value.text(Double(data[$0]) / 50) : "?" }))
      },
      number("\(name)-min", "Lowest voltage of \(range)") { low, _ in low },
      number("\(name)-max", "Highest voltage of \(range)") { _, high in high },
      number("\(name)-deviation", "Difference between highest and lowest voltage of \(range)") { low, high in high - low },
    ]
  }

  /// The offset of the last cell present.
  private static func lastCell(_ data: UnsafeBufferPointer<UInt8>) -> Int? {
    guard data.count >= first + count else { return nil }
    return (first..<first + count).last { data[$0] != 0 }
  }

  private static func number(_ name: String, _ help: String, _ pick: @escaping @Sendable (Int, Int) -> Int) -> DataRow {
    DataRow(Property(name, .float, unit: "V", range: 0...5, help: help)) { data in
      guard let last = lastCell(data) else { return .absent(.notReported) }
      let cells = (first...last).filter { plausible.contains(data[$0]) }.map { Int(data[$0]) }
      guard let low = cells.min(), let high = cells.max() else { return .absent(.implausible) }
      return .value(.float(Double(pick(low, high)) / 50))
    }
  }
}
