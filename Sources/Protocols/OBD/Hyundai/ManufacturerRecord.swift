// Manufacturer-specific data records other than BMS record 0x01: address, request, period and rows. The tables are in the files in
// Vehicles; the table of each file must be listed in `all`.

/// One manufacturer-specific data record (DID block) and its properties.
struct ManufacturerRecord: Sendable {
  /// The CAN identifier of the request.
  let header: UInt32
  /// The CAN identifier of the response.
  let reply: UInt32
  /// The request's bytes, service first.
  let request: [UInt8]
  /// The poll period.
  let period: Nanoseconds
  let family: VehicleFamily
  let rows: [DataRow]

  /// Creates a record; the identifier of the response is that of the request plus 8.
  init(_ header: UInt32, _ request: [UInt8], every seconds: Int64, _ family: VehicleFamily, _ rows: [DataRow]) {
    (self.header, reply, self.request, self.family, self.rows) = (header, header + 8, request, family, rows)
    period = seconds * .second
  }

  /// The prefix of a response.
  var responsePrefix: [UInt8] { request.enumerated().map { $0.offset == 0 ? $0.element &+ 0x40 : $0.element } }

  static let all: [ManufacturerRecord] = hyundai
}

/// A family of vehicles with the same data records.
enum VehicleFamily: String, CaseIterable, Sendable {
  /// Ioniq 5, Ioniq 6, EV6 and their platform.
  case eGMP = "e-gmp"
  /// Kona, Niro and others with the older layout of 220101.
  case konaNiro = "kona-niro"
  /// Ioniq 28 kWh, Soul 27 and 30 kWh, which use 2101.
  case older

  /// The family's data records other than BMS record 0x01.
  var records: [ManufacturerRecord] { ManufacturerRecord.all.filter { $0.family == self } }

  /// The family identified by BMS record 0x01, or nil if unknown.
  init?(_ request: FastRequest, record data: UnsafeBufferPointer<UInt8>) {
    switch BMSRecord.Variant(data) {
    case _ where request == .bmsKWP: self = .older
    case .eGMP: self = .eGMP
    case .konaNiro: self = .konaNiro
    case .other: return nil
    }
  }
}
