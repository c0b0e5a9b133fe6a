// BMS data record 0x01 of Hyundai and Kia; requests 220101 and 2101 return it in the same layout. This file identifies the variant of the
// record and computes the values that no formula can express; all other values are declared in Vehicles/hyundai.toml. Offsets count from
// the first byte after the echoed identifier, not from the 0x62 before it: with the wrong base, the motor speed reads as a constant but
// plausible 3329 rpm.
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

  /// A row of the value table, and the variant of the record that lacks it. The entries are in the order of the schema.
  struct Entry: Sendable {
    let dataRow: DataRow
    fileprivate let absentIn: Variant?

    init(_ dataRow: DataRow, absentIn: Variant? = nil) { (self.dataRow, self.absentIn) = (dataRow, absentIn) }
  }

  /// The readers of the entries, stored separately so that polling does not retain and release row objects.
  private static let readers = entries.map { (reader: $0.dataRow.unconditionalReader, absentIn: $0.absentIn) }

  /// The indices of the motor speeds in `entries`.
  static let motorSpeeds = 0...1

  /// The properties of the record, with this lifetime in nanoseconds.
  static func properties(freshFor: Nanoseconds) -> [Property] {
    entries.map { entry in
      var property = entry.dataRow.property
      if case .fresh = property.lifetime { property.lifetime = .fresh(freshFor) }
      return property
    }
  }

  /// Reads every value of a record and passes each with its position to `publish`.
  @inline(__always)
  static func read(_ data: DataRow.Data, _ publish: (Int, Decoded) -> Void) {
    let (variant, readers) = (Variant(data), readers)
    for position in readers.indices {
      let (reader, absentIn) = readers[position]
      if absentIn == variant {
        publish(position, .absent(.notReported))
      } else if let reader {
        publish(position, reader.read(data))
      } else {
        publish(position, entries[position].dataRow.read(data))
      }
    }
  }

  /// The power of the battery in kW, from its current and voltage; negative while charging.
  @Sendable static func power(_ data: DataRow.Data) -> Decoded {
    guard data.count >= 14 else { return .absent(.notReported) }
    let (current, voltage) = (NumberLayout.s16.raw(data, 10), NumberLayout.u16.raw(data, 12))
    guard voltage <= 10000 else { return .absent(.implausible) }
    // The product is in units of 0.01 W; / 1000 gives units of 0.01 kW, / 100 gives kW. Adding zero turns -0 into 0.
    return .value(.float((Double(voltage * current) / 1000).rounded() / 100 + 0))
  }

  /// Whether the battery is being charged while a motor turns. At standstill, a charging current comes from a charger.
  @Sendable static func regenerating(_ data: DataRow.Data) -> Decoded {
    guard data.count >= 57 else { return .absent(.notReported) }
    let speeds = (NumberLayout.s16.raw(data, 53), NumberLayout.s16.raw(data, 55))
    guard speeds.0 != 0x7FFF else { return .absent(.notAvailable) }
    let isCharging = NumberLayout.s16.raw(data, 10) < 0
    return .value(.bool(isCharging && (speeds.0 != 0 || (speeds.1 != 0 && speeds.1 != 0x7FFF))))
  }
}
