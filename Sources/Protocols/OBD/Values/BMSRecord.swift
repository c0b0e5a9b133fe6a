// BMS data record 0x01 of Hyundai and Kia, identical for requests 220101 and 2101. Big endian; offsets count from the first byte after the
// echoed identifier, not from 0x62 (which gives a plausible constant 3329 rpm). Facts: captures of Kona, Niro, Ioniq 5, EV6 and Soul, which
// agree with published tables.

enum BMSRecord {
  /// The vehicle family, by the bitmap of fields at the start of the record.
  enum Car {
    /// Ioniq 5, EV6 and their platform.
    case eGMP
    case konaNiro
    case other

    /// Parses the bitmap.
    init(_ data: UnsafeBufferPointer<UInt8>) {
      switch data.count >= 4 ? NumberLayout.u32.raw(data, 0) : 0 {
      case 0xEFFB_E7EF: self = .eGMP
      case 0xFFF7_E7FF: self = .konaNiro
      default: self = .other
      }
    }
  }

  /// One field: the raw number divided by `divisor` (1: a whole number), if it is plausible.
  struct Field: Sendable {
    let signal: Signal
    let at: Int
    let layout: NumberLayout
    let divisor: Double
    /// The plausible raw numbers.
    let plausible: ClosedRange<Int>
    /// The raw number that means "not available".
    let sentinel: Int?
    /// Vehicles that do not use these bytes, or use them differently.
    let not: Car?

    init(
      _ signal: Signal, _ at: Int, _ layout: NumberLayout, per divisor: Double = 1, in plausible: ClosedRange<Int> = -0x8000...0xFFFF_FFFF,
      sentinel: Int? = nil, not: Car? = nil
    ) {
      self.signal = signal
      self.at = at
      self.layout = layout
      self.divisor = divisor
      self.plausible = plausible
      self.sentinel = sentinel
      self.not = not
    }

    @inline(__always) func read(_ data: UnsafeBufferPointer<UInt8>, _ car: Car) -> Decoded {
      guard at + layout.size <= data.count, not != car else { return .absent(.notReported) }
      let raw = layout.raw(data, at)
      if raw == sentinel { return .absent(.notAvailable) }
      guard plausible.contains(raw) else { return .absent(.implausible) }
      if case .bit = layout { return .value(.bool(raw == 1)) }
      return .value(divisor == 1 ? .int(raw) : .float(Double(raw) / divisor))
    }
  }

  private static let degrees = -50...100

  static let fields: [Field] = [
    Field(.stateOfCharge, 4, .u8, per: 2, in: 0...200),
    Field(.maxChargePower, 5, .u16, per: 100),
    // E-GMP cars report a requested charging current here.
    Field(.maxDischargePower, 7, .u16, per: 100, not: .eGMP),
    // E-GMP cars leave the status bits and the ignition at 0, and report another value than the inlet temperature.
    Field(.mainRelay, 9, .bit(0), not: .eGMP),
    Field(.acPlug, 9, .bit(5), not: .eGMP),
    Field(.dcPlug, 9, .bit(6), not: .eGMP),
    Field(.charging, 9, .bit(7), not: .eGMP),
    Field(.batteryCurrent, 10, .s16, per: 10),
    Field(.batteryVoltage, 12, .u16, per: 10, in: 0...10000),
    Field(.batteryTemperatureMax, 14, .s8, in: degrees),
    Field(.batteryTemperatureMin, 15, .s8, in: degrees),
    Field(.moduleTemperature1, 16, .s8, in: degrees),
    Field(.moduleTemperature2, 17, .s8, in: degrees),
    Field(.moduleTemperature3, 18, .s8, in: degrees),
    Field(.moduleTemperature4, 19, .s8, in: degrees),
    Field(.moduleTemperature5, 20, .s8, in: degrees, not: .konaNiro),
    Field(.inletTemperature, 22, .s8, in: degrees, not: .eGMP),
    Field(.cellVoltageMax, 23, .u8, per: 50, in: 0...250),
    Field(.cellVoltageMaxCell, 24, .u8, in: 1...255),
    Field(.cellVoltageMin, 25, .u8, per: 50, in: 0...250),
    Field(.cellVoltageMinCell, 26, .u8, in: 1...255),
    Field(.fanStatus, 27, .u8),
    Field(.fanSpeed, 28, .u8),
    Field(.auxBatteryVoltage, 29, .u8, per: 10),
    Field(.chargeIn, 30, .u32, per: 10),
    Field(.chargeOut, 34, .u32, per: 10),
    Field(.energyIn, 38, .u32, per: 10),
    Field(.energyOut, 42, .u32, per: 10),
    Field(.operatingTime, 46, .u32),
    Field(.ignition, 50, .bit(2), not: .eGMP),
    Field(.inverterVoltage, 51, .u16, in: 0...1000),
    Field(.rpm, 53, .s16, in: -20000...20000, sentinel: 0x7FFF),
    Field(.rpm2, 55, .s16, in: -20000...20000, sentinel: 0x7FFF),
    Field(.isolationResistance, 57, .u16),
  ]

  /// Parses every field of a record and passes each to `publish`.
  @inline(__always)
  static func read(_ data: UnsafeBufferPointer<UInt8>, _ publish: (Signal, Decoded) -> Void) {
    let car = Car(data)
    for field in fields { publish(field.signal, field.read(data, car)) }
    guard data.count >= 14 else {
      publish(.batteryPower, .absent(.notReported))
      return publish(.regenerating, .absent(.notReported))
    }
    let current = NumberLayout.s16.raw(data, 10)
    let voltage = NumberLayout.u16.raw(data, 12)
    // 0.1 V times 0.1 A gives 0.01 kW after division; adding zero turns -0 into 0.
    let power = (Double(voltage * current) / 1000).rounded() / 100 + 0
    publish(.batteryPower, voltage <= 10000 ? .value(.float(power)) : .absent(.implausible))
    publish(.regenerating, regenerating(data, current))
  }

  /// Regeneration shows in the sign of the current; at standstill on a charger it is false.
  private static func regenerating(_ data: UnsafeBufferPointer<UInt8>, _ current: Int) -> Decoded {
    guard data.count >= 57 else { return .absent(.notReported) }
    let speeds = (NumberLayout.s16.raw(data, 53), NumberLayout.s16.raw(data, 55))
    guard speeds.0 != 0x7FFF else { return .absent(.notAvailable) }
    return .value(.bool(current < 0 && (speeds.0 != 0 || (speeds.1 != 0 && speeds.1 != 0x7FFF))))
  }
}
