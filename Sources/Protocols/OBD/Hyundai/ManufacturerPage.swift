// Hyundai's and Kia's own answers beside page 0x01: who is asked, what for, how often, and what the data hold. Offsets count from
// the first byte behind the echoed identifier. A layout is used for the cars whose captures show it and for no others; an answer of
// another length is another layout and gives nothing.

/// One request of the manufacturer's own and the rows its answer holds.
struct ManufacturerPage: Sendable {
  /// The CAN identifier that is asked, and the one that answers.
  let header: UInt32
  let reply: UInt32
  /// The request's bytes, service first.
  let request: [UInt8]
  /// How often it is worth asking.
  let period: Nanoseconds
  let families: Set<VehicleFamily>
  let rows: [DataRow]

  init(
    _ header: UInt32, _ reply: UInt32, _ request: [UInt8], every seconds: Int64, _ families: Set<VehicleFamily>, _ rows: [DataRow]
  ) {
    (self.header, self.reply, self.request, self.families, self.rows) = (header, reply, request, families, rows)
    period = seconds * .second
  }

  /// What its answer begins with.
  var echo: [UInt8] { request.enumerated().map { $0.offset == 0 ? $0.element &+ 0x40 : $0.element } }

  static let all: [ManufacturerPage] = battery + cells + drive + body
}

/// Cars whose controllers answer alike.
enum VehicleFamily: String, CaseIterable, Sendable {
  /// Ioniq 5, Ioniq 6, EV6 and their platform.
  case eGMP = "e-gmp"
  /// Kona, Niro and others that answer 220101 in the older layout.
  case konaNiro = "kona-niro"
  /// Ioniq 28 kWh, Soul 27 and 30 kWh: they answer 2101.
  case older

  /// What they answer beside page 0x01.
  var pages: [ManufacturerPage] { ManufacturerPage.all.filter { $0.families.contains(self) } }

  /// The family that an answer to page 0x01 shows, or nil for one that is not known.
  init?(_ request: PageRequest, page data: UnsafeBufferPointer<UInt8>) {
    switch BMSPage.Car(data) {
    case _ where request == .kwp: self = .older
    case .eGMP: self = .eGMP
    case .konaNiro: self = .konaNiro
    case .other: return nil
    }
  }
}

/// Short forms for the rows of the pages.
extension ManufacturerPage {
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

  /// The rows of an answer that must have this many bytes of data.
  static func rows(of count: Int, _ rows: DataRow...) -> [DataRow] {
    rows.map { $0.only(when: { data in data.count == count }, else: .notReported) }
  }
}
