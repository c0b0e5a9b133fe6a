// Data records of the drive: pedal, gear and speed from the VCU, wheel speeds from the brake ECU, 12 V charging from the charger. Facts:
// captures of Kona, Ioniq 5 and EV6 and published tables. Soul 27 and 30 kWh answer 2101 at 7E2 in another layout, whose length is
// rejected.

extension ManufacturerRecord {
  static let drive: [ManufacturerRecord] = [
    ManufacturerRecord(0x7E2, 0x7EA, [0x21, 0x01], every: 1, [.konaNiro, .older], vehicleController),
    ManufacturerRecord(0x7E2, 0x7EA, [0x22, 0xE0, 0x04], every: 1, [.eGMP], platformController),
    ManufacturerRecord(0x7D1, 0x7D9, [0x22, 0x01, 0x04], every: 1, [.eGMP], brakes),
    ManufacturerRecord(0x7E5, 0x7ED, [0x22, 0xE0, 0x11], every: 5, [.eGMP], charger),
  ]

  private static let vehicleController = rows(
    of: 22,
    DataRow(Property("gear", .string, choices: ["park", "reverse", "neutral", "drive"], help: "Engaged gear")) { data in
      guard data.count > 5 else { return .absent(.notReported) }
      switch data[5] & 0x0F {
      case 1: return .value(.string("park"))
      case 2: return .value(.string("reverse"))
      case 4: return .value(.string("neutral"))
      case 8: return .value(.string("drive"))
      default: return .absent(.implausible)
      }
    },
    scaled("pedal-position", .u8(12), "%", 0...100, over: 2, decimals: 1, "Accelerator pedal position"),
    // 0.01 mph.
    scaled(
      "speed", NumberField.littleS16(13), "km/h", -100...330, times: 1.609344, over: 100, decimals: 1,
      "Vehicle speed; negative: reverse"))

  private static let platformController = rows(
    of: 31,
    scaled("pedal-position", NumberField.littleU16(8), "%", 0...100, over: 512, decimals: 1, "Accelerator pedal position"),
    scaled(
      "speed", NumberField.littleS16(10), "km/h", -100...330, over: 64, decimals: 2, "Vehicle speed; negative: reverse"),
    scaled(
      "supply-voltage", NumberField.littleU16(12), "V", 5...20, over: 2048, decimals: 2, "Supply voltage of the vehicle control unit (VCU)")
  )

  private static let brakes = rows(
    of: 43,
    whole("speed-brakes", .u8(6), "km/h", 0...254, "Vehicle speed as reported by the brake ECU"),
    .word("gear", .u8(8), [1: "park-or-neutral", 2: "reverse", 4: "drive"], help: "Engaged gear"),
    whole("wheel-speed-front-left", .u8(10), "km/h", 0...254, "Speed of the front left wheel"),
    whole("wheel-speed-front-right", .u8(11), "km/h", 0...254, "Speed of the front right wheel"),
    whole("wheel-speed-rear-left", .u8(12), "km/h", 0...254, "Speed of the rear left wheel"),
    whole("wheel-speed-rear-right", .u8(13), "km/h", 0...254, "Speed of the rear right wheel"))

  private static let charger = rows(
    of: 46,
    whole("dc-dc-temperature", .u8(9), "°C", -60...150, plus: -100, "Temperature of the DC-DC converter"),
    scaled("dc-dc-voltage", .u16(10), "V", 0...20, over: 1000, decimals: 2, "Output voltage of the DC-DC converter"),
    scaled("dc-dc-current", .u16(12), "A", 0...300, over: 100, decimals: 2, "Output current of the DC-DC converter"),
    scaled("dc-dc-input-voltage", .u16(14), "V", 0...1000, over: 10, decimals: 1, "Input voltage of the DC-DC converter"),
    scaled(
      "aux-battery-current", .u16(18), "A", -300...300, times: -1, over: 100, plus: 327, decimals: 2,
      "Current of the 12 V battery; negative: charging"),
    whole("aux-battery-charge", .u8(20), "%", 0...100, "State of charge of the 12 V battery"),
    scaled("aux-battery-temperature", .u8(24), "°C", -40...87, over: 2, plus: -40, decimals: 1, "Temperature of the 12 V battery")
  ).map { row in
    // The 12 V battery voltage is 6 V plus this many mV; an implausible one means another layout.
    row.only { data in NumberField.u16(21).raw(data).map { (2000...10500).contains($0) } ?? false }
  }
}
