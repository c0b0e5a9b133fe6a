// Cell voltages: 32 per data record, one byte each, 20 mV per step. A missing cell has the value 0 and an unreadable cell an implausible
// value; neither counts as a voltage.
// Source: captures of Kona, Ioniq 28 kWh, Ioniq 5 and EV6.

enum CellVoltages {
  /// The offset of the first cell.
  private static let first = 4
  private static let count = 32
  /// Raw values of 1 to 5 V.
  private static let plausible = 50...250 as ClosedRange<UInt8>

  @Sendable static func list(_ data: DataRow.Data) -> Decoded {
    guard let last = lastCell(data) else { return .absent(.notReported) }
    return .value(.list((first...last).map { plausible.contains(data[$0]) ? Value.text(Double(data[$0]) / 50) : "?" }))
  }

  @Sendable static func lowest(_ data: DataRow.Data) -> Decoded { number(data) { low, _ in low } }
  @Sendable static func highest(_ data: DataRow.Data) -> Decoded { number(data) { _, high in high } }
  @Sendable static func deviation(_ data: DataRow.Data) -> Decoded { number(data) { low, high in high - low } }

  /// The offset of the last cell that is present; nil if there is none, or the record is too short.
  private static func lastCell(_ data: DataRow.Data) -> Int? {
    guard data.count >= first + count else { return nil }
    return (first..<first + count).last { data[$0] != 0 }
  }

  private static func number(_ data: DataRow.Data, _ pick: (Int, Int) -> Int) -> Decoded {
    guard let last = lastCell(data) else { return .absent(.notReported) }
    let cells = (first...last).filter { plausible.contains(data[$0]) }.map { Int(data[$0]) }
    guard let low = cells.min(), let high = cells.max() else { return .absent(.implausible) }
    return .value(.float(Double(pick(low, high)) / 50))
  }
}
