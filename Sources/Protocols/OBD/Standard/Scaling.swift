// ECU-specific scaling: PIDs 4F and 50 report the maximum values of certain other PIDs; 0 selects the standard scaling. Until an ECU has
// reported its scaling, the dependent values are absent.
// Source: SAE J1979 (ISO 15031-5), PIDs 0B, 10, 24 to 2B, 34 to 3B, 44, 4F and 50; SAE J1699-3.

/// A quantity with ECU-specific scaling.
enum ScaledQuantity: Int, CaseIterable, Sendable {
  case lambda, sensorVoltage, sensorCurrent, intakePressure, airFlow

  /// The PID that reports the maximum, and the index of the byte in its data.
  var source: (parameter: UInt8, byte: Int) { self == .airFlow ? (0x50, 0) : (0x4F, rawValue) }

  /// Converts a raw number to the value. `maximum` is the maximum that the ECU reports, in lambda, V, mA, 10 kPa or 10 g/s; 0 selects the
  /// standard scaling.
  func value(_ raw: Int, maximum: UInt8) -> Double {
    let (raw, maximum) = (Double(raw), Double(maximum))
    switch self {
    case .lambda: return maximum == 0 ? raw * 2 / 65536 : raw * maximum / 65535
    case .sensorVoltage: return maximum == 0 ? raw * 8 / 65536 : raw * maximum / 65535
    case .sensorCurrent: return maximum == 0 ? raw / 256 - 128 : (raw - 32768) * maximum / 32768
    case .intakePressure: return maximum == 0 ? raw : raw * maximum * 10 / 255
    case .airFlow: return maximum == 0 ? raw / 100 : raw * maximum * 10 / 65535
    }
  }

  /// The range of the value with the largest scaling: lambda, V, mA, kPa or g/s.
  var range: ClosedRange<Double> {
    switch self {
    case .lambda, .sensorVoltage: 0...255
    case .sensorCurrent: -255...255
    case .intakePressure, .airFlow: 0...2550
    }
  }
}

/// The scaling reported by the ECUs of a vehicle.
struct Scales: Sendable {
  /// The PIDs that report the scaling of other PIDs, four bytes each.
  static let parameters: [UInt8] = [0x4F, 0x50]

  private let ecus: [ECUDiscovery.ECU]
  /// The data of these PIDs, by ECU and PID.
  private var reported: [UInt32: [UInt8: [UInt8]]] = [:]

  init(of ecus: [ECUDiscovery.ECU] = []) { self.ecus = ecus }

  /// The identifier of the ECU that sent a message. Without headers it is unknown (nil), unless the vehicle has only one ECU.
  private func ecu(of source: UInt32?) -> UInt32? { source ?? (ecus.count == 1 ? ecus[0].identifier : nil) }

  /// The maximum of a quantity at this ECU; nil if it is not reported yet, 0 if the ECU does not support the PID that reports it.
  func maximum(of quantity: ScaledQuantity, at source: UInt32?) -> UInt8? {
    guard let source = ecu(of: source) else { return nil }
    if let bytes = reported[source]?[quantity.source.parameter] { return bytes[quantity.source.byte] }
    guard let ecu = ecus.first(where: { $0.identifier == source }) else { return nil }
    return ecu.maySupport(quantity.source.parameter) ? nil : 0
  }

  /// Records the scaling, if this PID reports it.
  mutating func record(_ parameter: UInt8, _ data: UnsafeBufferPointer<UInt8>, from source: UInt32?) {
    guard Self.parameters.contains(parameter), data.count == 4, let source = ecu(of: source) else { return }
    reported[source, default: [:]][parameter] = Array(data)
  }

  /// Resets the scaling, because the vehicle may have changed.
  mutating func reset() { reported = [:] }
}

extension ECUDiscovery.ECU {
  /// Whether the ECU supports this PID, or may support it because the bitmap that lists the PID has not been received.
  func maySupport(_ number: UInt8) -> Bool {
    let bitmap = (number - 1) & 0xE0
    return parameters.contains(number) || parameters.contains(bitmap) && !parameters.contains { $0 > bitmap }
  }

  /// The PIDs that report the scaling of these PIDs.
  func scalingPIDs(for requested: [StandardParameter]) -> [StandardParameter] {
    let needed = Set(requested.flatMap(\.rows).compactMap { $0.quantity?.source.parameter })
    return Scales.parameters.filter { needed.contains($0) && maySupport($0) }.compactMap { StandardParameter.all[$0] }
  }
}

extension DataRow {
  /// The value with the scaling of its ECU.
  func value(_ data: UnsafeBufferPointer<UInt8>, _ scales: Scales, from source: UInt32?) -> Decoded {
    guard let quantity else { return read(data) }
    return scales.maximum(of: quantity, at: source).map { read(data, maximum: $0) } ?? .absent(.unscaled)
  }
}
