// The scales that a controller may choose for itself: parameters 4F and 50 tell the highest value of some others, which reads
// them differently. 0 there is the standard's own scale. Each controller has its own. Until it has told, what depends on it is
// not known: read by the wrong scale it would be a plausible number that is wrong.
// Facts: SAE J1979 (ISO 15031-5) on parameters 0B, 10, 24 to 2B, 34 to 3B, 44, 4F and 50; SAE J1699-3 for the arithmetic.

/// What a controller can scale in its own way.
enum ScaledQuantity: Int, CaseIterable, Sendable {
  case lambda, sensorVoltage, sensorCurrent, intakePressure, airFlow

  /// The parameter that tells the highest value, and the byte of it.
  var source: (parameter: UInt8, byte: Int) { self == .airFlow ? (0x50, 0) : (0x4F, rawValue) }

  /// What the bytes of a parameter stand for where this is the highest value that was told; 0: by the standard's scale.
  func value(_ raw: Int, highest: UInt8) -> Double {
    let (raw, highest) = (Double(raw), Double(highest))
    switch self {
    case .lambda: return highest == 0 ? raw * 2 / 65536 : raw * highest / 65535
    case .sensorVoltage: return highest == 0 ? raw * 8 / 65536 : raw * highest / 65535
    case .sensorCurrent: return highest == 0 ? raw / 256 - 128 : (raw - 32768) * highest / 32768
    case .intakePressure: return highest == 0 ? raw : raw * highest * 10 / 255
    case .airFlow: return highest == 0 ? raw / 100 : raw * highest * 10 / 65535
    }
  }

  /// Whatever is told, it stays in here.
  var range: ClosedRange<Double> {
    switch self {
    case .lambda, .sensorVoltage: 0...255
    case .sensorCurrent: -255...255
    case .intakePressure, .airFlow: 0...2550
    }
  }
}

/// What the controllers of a vehicle have told of their scales.
struct Scales: Sendable {
  /// The parameters that tell, each with four bytes.
  static let parameters: [UInt8] = [0x4F, 0x50]

  private let controllers: [Discovery.Controller]
  private var told: [UInt32: [UInt8: [UInt8]]] = [:]

  init(of controllers: [Discovery.Controller] = []) { self.controllers = controllers }

  /// Whose message it is: without headers that of the only controller there is.
  private func teller(_ source: UInt32?) -> UInt32? { source ?? (controllers.count == 1 ? controllers[0].identifier : nil) }

  /// The highest value of a quantity at this controller, where it is known: it has told, or has nothing to tell with.
  func highest(_ quantity: ScaledQuantity, at source: UInt32?) -> UInt8? {
    guard let source = teller(source) else { return nil }
    if let bytes = told[source]?[quantity.source.parameter] { return bytes[quantity.source.byte] }
    guard let controller = controllers.first(where: { $0.identifier == source }) else { return nil }
    return controller.mayHave(quantity.source.parameter) ? nil : 0
  }

  /// Takes the bytes of a parameter, if it is one that tells.
  mutating func take(_ parameter: UInt8, _ data: UnsafeBufferPointer<UInt8>, from source: UInt32?) {
    guard Self.parameters.contains(parameter), data.count == 4, let source = teller(source) else { return }
    told[source, default: [:]][parameter] = Array(data)
  }

  /// It is another vehicle, perhaps.
  mutating func forget() { told = [:] }
}

extension Discovery.Controller {
  /// Whether it has this parameter, or has never told: a page that it announces and that did not come may hold it.
  func mayHave(_ number: UInt8) -> Bool {
    let page = (number - 1) & 0xE0
    return parameters.contains(number) || parameters.contains(page) && !parameters.contains { $0 > page }
  }

  /// What tells the scales of these parameters of it.
  func scales(of asked: [StandardParameter]) -> [StandardParameter] {
    let wanted = Set(asked.flatMap(\.rows).compactMap { $0.scaled?.quantity.source.parameter })
    return Scales.parameters.filter { wanted.contains($0) && mayHave($0) }.compactMap { StandardParameter.all[$0] }
  }
}

extension DataRow {
  /// A number that a controller may scale in its own way.
  static func scaled(
    _ name: String, _ field: NumberField, by quantity: ScaledQuantity, unit: String?, decimals: Int, help: String
  ) -> DataRow {
    let property = Property(name, .float, unit: unit, range: quantity.range, help: help)
    let read: @Sendable (UnsafeBufferPointer<UInt8>, UInt8) -> Decoded = { data, highest in
      guard let raw = field.raw(data) else { return .absent(.notReported) }
      return .value(.float(rounded(quantity.value(raw, highest: highest), decimals)))
    }
    var row = DataRow(property) { read($0, 0) }
    row.scaled = (quantity, read)
    return row
  }

  /// What the bytes say by the scales of the controller that they come from.
  func value(_ data: UnsafeBufferPointer<UInt8>, _ scales: Scales, from source: UInt32?) -> Decoded {
    guard let scaled else { return read(data) }
    return scales.highest(scaled.quantity, at: source).map { scaled.read(data, $0) } ?? .absent(.unscaled)
  }
}
