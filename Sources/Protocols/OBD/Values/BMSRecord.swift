// BMS data record 0x01 of Hyundai and Kia, identical for requests 220101 and 2101: the vehicle families, and the values that no formula can
// express. The other rows are in Vehicles/hyundai.toml. Offsets count from the first byte after the echoed identifier, not from the 0x62
// before it: with the wrong base the motor speed is a plausible constant 3329 rpm.
// Source: captures of Kona, Niro, Ioniq 5, EV6 and Soul, which agree with published tables.

enum BMSRecord {
  /// The variant of the record.
  enum Variant {
    /// Ioniq 5, EV6 and their platform.
    case eGMP
    case konaNiro
    case other

    /// The variant that the bitmap of fields at the start of the record identifies.
    init(_ data: DataRow.Data) {
      switch data.count >= 4 ? NumberLayout.u32.raw(data, 0) : 0 {
      case 0xEFFB_E7EF: self = .eGMP
      case 0xFFF7_E7FF: self = .konaNiro
      default: self = .other
      }
    }
  }

  /// A row of the record, and the variant of the record in which it is absent. The rows are in the order of the schema.
  struct Row: Sendable {
    let row: DataRow
    fileprivate let absentIn: Variant?

    init(_ row: DataRow, absentIn: Variant? = nil) { (self.row, self.absentIn) = (row, absentIn) }
  }

  /// The readers of the rows. They are stored apart from the rows so that a poll retains no row.
  private static let fields = rows.map { (reader: $0.row.plainReader, absentIn: $0.absentIn) }

  /// The positions of the motor speeds.
  static let motorSpeeds = 0...1

  /// The properties with this lifetime.
  static func properties(freshFor: Nanoseconds) -> [Property] {
    rows.map { entry in
      var property = entry.row.property
      property.lifetime = .fresh(freshFor)
      return property
    }
  }

  /// Parses every field of a record and passes each with its position to `publish`.
  @inline(__always)
  static func read(_ data: DataRow.Data, _ publish: (Int, Decoded) -> Void) {
    let (variant, fields) = (Variant(data), fields)
    for position in fields.indices {
      let field = fields[position]
      if field.absentIn == variant {
        publish(position, .absent(.notReported))
      } else if let reader = field.reader {
        publish(position, reader.read(data))
      } else {
        publish(position, rows[position].row.read(data))
      }
    }
  }

  /// The power of the battery in kW, from its current and voltage; negative: charging.
  @Sendable static func power(_ data: DataRow.Data) -> Decoded {
    guard data.count >= 14 else { return .absent(.notReported) }
    let (current, voltage) = (NumberLayout.s16.raw(data, 10), NumberLayout.u16.raw(data, 12))
    guard voltage <= 10000 else { return .absent(.implausible) }
    // 0.1 V times 0.1 A gives 0.01 kW after division; adding zero turns -0 into 0.
    return .value(.float((Double(voltage * current) / 1000).rounded() / 100 + 0))
  }

  /// Whether the battery is charged while a motor turns. At standstill a charging current comes from a charger.
  @Sendable static func regenerating(_ data: DataRow.Data) -> Decoded {
    guard data.count >= 57 else { return .absent(.notReported) }
    let speeds = (NumberLayout.s16.raw(data, 53), NumberLayout.s16.raw(data, 55))
    guard speeds.0 != 0x7FFF else { return .absent(.notAvailable) }
    let isCharging = NumberLayout.s16.raw(data, 10) < 0
    return .value(.bool(isCharging && (speeds.0 != 0 || (speeds.1 != 0 && speeds.1 != 0x7FFF))))
  }
}
