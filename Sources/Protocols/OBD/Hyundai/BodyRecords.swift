// Data records of body ECUs: temperatures, odometer, tyres. Facts: captures of Kona, Ioniq 5 and EV6, and published tables, which differ
// only in which of the last two tyres of the older layout is the left one.

extension ManufacturerRecord {
  static let body: [ManufacturerRecord] = [
    ManufacturerRecord(0x7B3, 0x7BB, [0x22, 0x01, 0x00], every: 10, [.eGMP, .konaNiro], temperatures + [climateSpeed]),
    ManufacturerRecord(0x7B3, 0x7BB, [0x22, 0x01, 0x00], every: 10, [.older], temperatures),
    ManufacturerRecord(0x7C6, 0x7CE, [0x22, 0xB0, 0x02], every: 60, [.eGMP, .konaNiro, .older], [odometer]),
    ManufacturerRecord(
      0x7A0, 0x7A8, [0x22, 0xC0, 0x0B], every: 30, [.eGMP],
      tyres(["front-left", "front-right", "rear-left", "rear-right"], stride: 5, bytes: 33)),
    ManufacturerRecord(
      0x7A0, 0x7A8, [0x22, 0xC0, 0x0B], every: 30, [.konaNiro, .older],
      tyres(["front-left", "front-right", "rear-a", "rear-b"], stride: 4, bytes: 20)),
  ]

  private static let temperatures = [
    halfDegrees("indoor-temperature", 5, "Cabin air temperature"),
    halfDegrees("outdoor-temperature", 6, "Outside air temperature"),
    halfDegrees("evaporator-temperature", 7, "Temperature of the air conditioning evaporator"),
  ]

  private static func halfDegrees(_ name: String, _ at: Int, _ help: String) -> DataRow {
    scaled(name, .u8(at), "°C", -40...88, over: 2, plus: -40, decimals: 1, absent: (0xFF, .notAvailable), help)
  }

  private static let climateSpeed = whole(
    "speed-climate", .u8(29), "km/h", 0...254, absent: (0xFF, .notAvailable), "Vehicle speed as reported by the climate control ECU")

  /// Kilometres, or in cars with miles these in the next three bytes.
  private static let odometer = DataRow(
    Property("odometer", .float, unit: "km", range: 0...3_000_000, lifetime: .retained, help: "Odometer reading")
  ) { data in
    guard let kilometres = NumberField.u24(6).raw(data) else { return .absent(.notReported) }
    let miles = NumberField.u24(9).raw(data) ?? 0
    let distance = kilometres > 0 ? Double(kilometres) : DataRow.rounded(Double(miles) * 1.609344, 0)
    if distance == 0 { return .absent(.notAvailable) }
    return distance <= 3_000_000 ? .value(.float(distance)) : .absent(.implausible)
  }

  /// Units of 0.2 psi, and degrees above -50, per tyre; zeros until a sensor was received.
  private static func tyres(_ places: [String], stride: Int, bytes: Int) -> [DataRow] {
    places.enumerated().flatMap { index, place in
      let wheel =
        place.hasSuffix("-a") || place.hasSuffix("-b")
        ? "one of the rear tyres" : "\(place.split(separator: "-").joined(separator: " ")) tyre"
      let at = 4 + index * stride
      let rows = [
        scaled("tyre-pressure-\(place)", .u8(at), "kPa", 0...352, times: 6.894757, over: 5, decimals: 1, "Pressure of \(wheel)"),
        whole("tyre-temperature-\(place)", .u8(at + 1), "°C", -49...204, plus: -50, "Temperature of \(wheel)"),
      ]
      return rows.map { row in
        DataRow(row.property) { data in
          guard data.count == bytes else { return .absent(.notReported) }
          let isHeard = data[at] != 0 && data[at] != 0xFF && data[at + 1] != 0 && data[at + 1] != 0xFF
          return isHeard ? row.read(data) : .absent(.notAvailable)
        }
      }
    }
  }
}
