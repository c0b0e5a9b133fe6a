// The values in a VESC's response: a list of numbers, to which newer firmware appends more. The length of the response determines which
// fields it contains, and additional data is ignored. The numbers remain scaled integers.
// Source: comm/commands.c and commands.c of vedderb/bldc, tags 2.18 to 6.00.

/// A field of a VESC's response, and its length in bytes.
enum VESCField: Int, CaseIterable, Sendable {
  // Tenths of a degree.
  case mosfetTemperature, motorTemperature, mosfetTemperature1, mosfetTemperature2, mosfetTemperature3
  // Hundredths of an ampere.
  case motorCurrent, inputCurrent, idCurrent, iqCurrent
  // Thousandths.
  case duty
  case erpm
  // mm/s.
  case speed
  // Tenths of a volt.
  case voltage
  // Thousandths.
  case battery
  // Ten-thousandths of Ah and Wh.
  case chargeUsed, chargeRegenerated, energyUsed, energyRegenerated
  // mm.
  case distance, distanceTravelled
  // Sixths of an electrical revolution.
  case tachometer, tachometerTravelled
  case position, fault, controller, vescs
  // Thousandths of Wh, m, ms, V.
  case energyLeft, odometer, uptime, vd, vq
  // Bit 0: the safety timeout has expired; bit 1: the kill switch is active.
  case status

  /// Whether the field is an unsigned counter.
  var isCounter: Bool { self == .odometer || self == .uptime }

  var width: Int {
    switch self {
    case .fault, .controller, .vescs, .status: 1
    case .mosfetTemperature, .motorTemperature, .mosfetTemperature1, .mosfetTemperature2, .mosfetTemperature3, .duty, .voltage, .battery: 2
    default: 4
    }
  }
}

/// The numbers of the last response.
struct VESCValues: Sendable {
  private var numbers = [Int](repeating: 0, count: VESCField.allCases.count)
  private var present: UInt32 = 0

  /// The number of a field; nil if the response did not contain it.
  subscript(_ field: VESCField) -> Int? {
    get { present & 1 << UInt32(field.rawValue) != 0 ? numbers[field.rawValue] : nil }
    set {
      if let newValue { numbers[field.rawValue] = newValue }
      present = newValue == nil ? present & ~(1 << UInt32(field.rawValue)) : present | 1 << UInt32(field.rawValue)
    }
  }

  /// Parses a response after its ID. Returns false, and discards all values, if the response is invalid.
  mutating func read(_ command: VESCCommand, _ payload: ArraySlice<UInt8>) -> Bool {
    present = 0
    switch command {
    case .values:
      if payload.count == Self.legacyLength { return readLegacy(payload) }
      return read(Self.all, payload, minCount: Self.minCountOfAll)
    case .setupValues: return read(Self.setup, payload, minCount: Self.minCountOfSetup)
    case .selectedValues: return readSelected(Self.all, payload)
    case .selectedSetupValues: return readSelected(Self.setup, payload)
    default: return false
    }
  }

  /// Parses a response of firmware 2.18.
  private mutating func readLegacy(_ payload: ArraySlice<UInt8>) -> Bool {
    guard read(Self.legacy, payload, minCount: Self.legacy.count) else { return false }
    self[.mosfetTemperature] = [self[.mosfetTemperature1], self[.mosfetTemperature2], self[.mosfetTemperature3]].compactMap(\.self).max()
    return true
  }

  /// Parses as many of these fields as the response contains; returns false if there are fewer than `minCount`.
  private mutating func read(_ fields: [VESCField], _ payload: ArraySlice<UInt8>, minCount: Int) -> Bool {
    var cursor = VESCCursor(payload)
    for (index, field) in fields.enumerated() {
      guard let number = cursor.number(field.width) else {
        if index >= minCount { return true }
        present = 0
        return false
      }
      self[field] = field.isCounter ? number & 0xFFFF_FFFF : number
    }
    return true
  }

  /// Parses a response to a selective request, which starts with its mask: bit n stands for field n, except that the three MOSFET
  /// temperatures share one bit.
  private mutating func readSelected(_ fields: [VESCField], _ payload: ArraySlice<UInt8>) -> Bool {
    var cursor = VESCCursor(payload)
    guard let mask = cursor.mask() else { return false }
    var bit = 0
    for field in fields {
      if mask >> UInt32(bit) & 1 != 0 {
        guard let number = cursor.number(field.width) else {
          present = 0
          return false
        }
        self[field] = field.isCounter ? number & 0xFFFF_FFFF : number
      }
      if field != .mosfetTemperature1 && field != .mosfetTemperature2 { bit += 1 }
    }
    return true
  }

  /// The fields of GET_VALUES in firmware 3.10 and later; the first 16 are always present.
  private static let all: [VESCField] = [
    .mosfetTemperature, .motorTemperature, .motorCurrent, .inputCurrent, .idCurrent, .iqCurrent, .duty, .erpm, .voltage, .chargeUsed,
    .chargeRegenerated, .energyUsed, .energyRegenerated, .tachometer, .tachometerTravelled, .fault, .position, .controller,
    .mosfetTemperature1, .mosfetTemperature2, .mosfetTemperature3, .vd, .vq, .status,
  ]
  private static let minCountOfAll = 16

  /// The fields of GET_VALUES in firmware 2.18, 55 bytes. Temperatures 4 to 6 are those of further MOSFETs, temperature 7 that of the
  /// board.
  private static let legacy: [VESCField] = [
    .mosfetTemperature1, .mosfetTemperature2, .mosfetTemperature3, .mosfetTemperature, .mosfetTemperature, .mosfetTemperature,
    .mosfetTemperature, .motorCurrent, .inputCurrent, .duty, .erpm, .voltage, .chargeUsed, .chargeRegenerated, .energyUsed,
    .energyRegenerated, .tachometer, .tachometerTravelled, .fault,
  ]
  private static let legacyLength = 55

  /// The fields of GET_VALUES_SETUP; the odometer was added in firmware 5.02, the uptime in 5.03.
  private static let setup: [VESCField] = [
    .mosfetTemperature, .motorTemperature, .motorCurrent, .inputCurrent, .duty, .erpm, .speed, .voltage, .battery, .chargeUsed,
    .chargeRegenerated, .energyUsed, .energyRegenerated, .distance, .distanceTravelled, .position, .fault, .controller, .vescs,
    .energyLeft, .odometer, .uptime,
  ]
  private static let minCountOfSetup = 17

  /// The mask of the fields that are polled in every slot: currents, duty, ERPM, speed, voltage, battery, fault.
  static let fastMask: UInt32 = 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 16
}
