// Data records of Hyundai and Kia beside BMS record 0x01: address, request, period and layout. Offsets count from the first byte after the
// echoed identifier. A layout is used only for the families whose captures show it, and only at its exact length.

/// One manufacturer-specific data record (DID block) and its properties.
struct ManufacturerRecord: Sendable {
  /// The CAN identifiers of request and response.
  let header: UInt32
  let reply: UInt32
  /// The request's bytes, service first.
  let request: [UInt8]
  /// The poll period.
  let period: Nanoseconds
  let families: Set<VehicleFamily>
  let rows: [DataRow]

  init(
    _ header: UInt32, _ reply: UInt32, _ request: [UInt8], every seconds: Int64, _ families: Set<VehicleFamily>, _ rows: [DataRow]
  ) {
    (self.header, self.reply, self.request, self.families, self.rows) = (header, reply, request, families, rows)
    period = seconds * .second
  }

  /// The prefix of a response.
  var echo: [UInt8] { request.enumerated().map { $0.offset == 0 ? $0.element &+ 0x40 : $0.element } }

  static let all: [ManufacturerRecord] = battery + cells + drive + body
}

/// Vehicles with the same data records.
enum VehicleFamily: String, CaseIterable, Sendable {
  /// Ioniq 5, Ioniq 6, EV6 and their platform.
  case eGMP = "e-gmp"
  /// Kona, Niro and others with the older layout of 220101.
  case konaNiro = "kona-niro"
  /// Ioniq 28 kWh, Soul 27 and 30 kWh, which use 2101.
  case older

  /// Their data records beside BMS record 0x01.
  var records: [ManufacturerRecord] { ManufacturerRecord.all.filter { $0.families.contains(self) } }

  /// The family identified by BMS record 0x01, or nil if unknown.
  init?(_ request: RecordRequest, record data: UnsafeBufferPointer<UInt8>) {
    switch BMSRecord.Car(data) {
    case _ where request == .kwp: self = .older
    case .eGMP: self = .eGMP
    case .konaNiro: self = .konaNiro
    case .other: return nil
    }
  }
}

/// Shorthands for the rows of data records.
extension ManufacturerRecord {
  static func whole(
    _ name: String, _ field: NumberField, _ unit: String?, _ range: ClosedRange<Double>, plus: Int = 0,
    lifetime: Property.Lifetime = .fresh(2 * .second), absent: (raw: Int, why: Absence)? = nil, _ help: String
  ) -> DataRow {
    .whole(Property(name, .int, unit: unit, range: range, lifetime: lifetime, help: help), field, plus: plus, absent: absent)
  }

  static func scaled(
    _ name: String, _ field: NumberField, _ unit: String?, _ range: ClosedRange<Double>, times: Double = 1, over: Double = 1,
    plus: Double = 0, decimals: Int, lifetime: Property.Lifetime = .fresh(2 * .second), absent: (raw: Int, why: Absence)? = nil,
    _ help: String
  ) -> DataRow {
    .scaled(
      Property(name, .float, unit: unit, range: range, lifetime: lifetime, help: help), field, times: times, over: over, plus: plus,
      decimals: decimals, absent: absent)
  }

  /// The rows of a response with exactly this many bytes of data.
  static func rows(of count: Int, _ rows: DataRow...) -> [DataRow] {
    rows.map { $0.only(when: { data in data.count == count }, else: .notReported) }
  }
}
