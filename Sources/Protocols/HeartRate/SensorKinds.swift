// The configuration of wearable sensors on Bluetooth Low Energy: heart rate straps and foot pods, each with the service that the
// Bluetooth SIG defines for it. They are two kinds, because their notifications cannot be distinguished.
// Source: Heart Rate Service 1.0 (180D, 2A37), Running Speed and Cadence Service 1.0 (1814, 2A53); common product names.

extension Kind {
  /// Heart rate straps, and watches that act as one.
  public static let heartRate = Kind(
    name: "heart-rate",
    summary: "A heart rate strap, or a watch that acts as one, over Bluetooth Low Energy",
    links: [LinkRole(schemes: ["ble"], gatt: .heartRate, onlyReceives: true)], options: []
  ) { _ throws(OptionError) in SensorMachine<HeartRateMeasurement>() }

  /// Foot pods, and watches that act as one.
  public static let footPod = Kind(
    name: "foot-pod",
    summary: "A foot pod, or a watch that acts as one, over Bluetooth Low Energy",
    links: [LinkRole(schemes: ["ble"], gatt: .footPod, onlyReceives: true)], options: []
  ) { _ throws(OptionError) in SensorMachine<RunningMeasurement>() }
}

extension PeripheralDescription {
  public static let heartRate = PeripheralDescription(
    profiles: [GATTProfile("180D", notify: "2A37", write: nil)],
    names: ["Polar H", "HRM", "TICKR", "Heart Rate", "CooSpo"], isStream: false)
  public static let footPod = PeripheralDescription(
    profiles: [GATTProfile("1814", notify: "2A53", write: nil)],
    names: ["Stryd", "Foot Pod", "Footpod", "RUNN"], isStream: false)
}

/// Reads the fields of a measurement in order, least significant byte first.
struct SensorFields {
  private var remaining: ArraySlice<UInt8>

  /// Creates a reader of these bytes.
  init(_ bytes: [UInt8]) { remaining = bytes[...] }

  var isEmpty: Bool { remaining.isEmpty }

  /// The next field, of `count` bytes.
  mutating func next(_ count: Int) throws(ValueError) -> Int {
    guard remaining.count >= count else { throw ValueError("the measurement is too short") }
    defer { remaining = remaining.dropFirst(count) }
    return remaining.prefix(count).reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  /// Throws if bytes are left.
  func end() throws(ValueError) {
    if !isEmpty { throw ValueError("the measurement is too long") }
  }
}
