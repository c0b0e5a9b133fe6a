// A property with its decoder, the element of all tables: data records, SAE J1979 PIDs, custom signals. Offsets count from the first byte
// after the echoed identifier. A missing value is absent with a reason, never 0.

/// The reason why a property is absent although the vehicle responds.
enum Absence: UInt8, Sendable {
  case none, notReported, notAvailable, implausible, undefined, outOfRange, unscaled

  var message: String {
    switch self {
    case .none: ""
    case .notReported: "not reported by this car"
    case .notAvailable: "not available now"
    case .implausible: "implausible"
    case .undefined: "the formula has no result for this response"
    case .outOfRange: "outside the configured range"
    case .unscaled: "the ECU has not reported the scaling of this value yet (PIDs 4F and 50)"
    }
  }
}

/// The result of decoding a row.
enum Decoded: Sendable, Equatable {
  case value(Value)
  case absent(Absence)
}

/// One property of a response. A class, so that tables and requests share one instance.
final class DataRow: Sendable {
  typealias Data = UnsafeBufferPointer<UInt8>

  /// The source of the number or the value.
  enum Source: Sendable {
    case field(LinearField)
    case program(Expression)
    /// A number with ECU-specific scaling; the standard scaling is used if the ECU does not support the PID that reports it.
    case scaled(NumberField, ScaledQuantity)
    /// Decodes the data after the echoed identifier; never reads beyond it.
    case function(@Sendable (Data) -> Decoded)
  }

  /// Name, type, unit, range and help; the lifetime is derived from the poll period.
  let property: Property
  let source: Source
  /// The strings for the numbers of a closed set; empty if the value is a number.
  private let labels: [Int: String]
  /// 10 to the power of the number of decimals to which the value is rounded, or nil if only binary rounding errors are removed.
  private let decimalScale: Double?
  /// Reads the value without labels and rounding; nil if the value needs them.
  private let reader: FieldReader?
  /// The length that the data must have in bytes, or nil if any length is valid.
  private let length: Int?
  /// A condition, or nil if there is none: if this formula gives 0, the data has another layout and the value is absent.
  private let valid: Expression?
  /// The published reason for the absence of a value outside the property's range.
  private let outOfRangeReason: Absence

  init(
    _ property: Property, _ source: Source, decimals: Int? = nil, labels: [Int: String] = [:], length: Int? = nil, valid: Expression? = nil,
    outOfRangeReason: Absence = .implausible
  ) {
    (self.property, self.source, self.labels, self.length) = (property, source, labels, length)
    (self.valid, self.outOfRangeReason) = (valid, outOfRangeReason)
    let scale = decimals.map { (0..<max($0, 0)).reduce(1.0) { power, _ in power * 10 } }
    decimalScale = scale
    reader =
      if case .field(let field) = source {
        FieldReader(field, as: property, decimalScale: scale ?? 1e9, outOfRangeReason: outOfRangeReason)
      } else {
        nil
      }
  }

  /// Creates a row that a function decodes.
  convenience init(_ property: Property, _ read: @escaping @Sendable (Data) -> Decoded) { self.init(property, .function(read)) }

  /// The reader, if there is one and the row has no condition on the length or layout of the data.
  var unconditionalReader: FieldReader? { length == nil && valid == nil ? reader : nil }

  /// The quantity with ECU-specific scaling.
  var quantity: ScaledQuantity? { if case .scaled(_, let quantity) = source { quantity } else { nil } }

  /// Decodes the data after the echoed identifier; never reads beyond it.
  func read(_ data: Data) -> Decoded { read(data, maximum: 0) }

  /// Decodes the data with the maximum that the ECU reports for the quantity; 0 selects the standard scaling.
  func read(_ data: Data, maximum: UInt8) -> Decoded {
    if let valid, !valid.evaluate(data).isTrue { return .absent(.implausible) }
    if let length, data.count != length { return .absent(.notReported) }
    if let reader { return reader.read(data) }
    switch source {
    case .field(let field):
      guard let raw = field.number.raw(data) else { return .absent(.notReported) }
      if let sentinel = field.sentinel, raw == sentinel.raw { return .absent(sentinel.reason) }
      return decoded(field.value(raw))
    case .program(let program):
      switch program.evaluate(data) {
      case .absent(let absence): return .absent(absence)
      case .number(let number): return decoded(number)
      }
    case .scaled(let field, let quantity):
      guard let raw = field.raw(data) else { return .absent(.notReported) }
      return decoded(quantity.value(raw, maximum: maximum))
    case .function(let read): return read(data)
    }
  }

  /// The number as a value of the property's type.
  private func decoded(_ number: Double) -> Decoded {
    switch property.type {
    case .bool: return .value(.bool(number != 0))
    case .string: return Expression.int(number).flatMap { labels[$0] }.map { .value(.string($0)) } ?? .absent(.undefined)
    case .int:
      let rounded = number.rounded()
      guard isInRange(rounded) else { return .absent(outOfRangeReason) }
      return Expression.int(rounded).map { .value(.int($0)) } ?? .absent(.undefined)
    case .float, .list:
      let rounded = rounded(number)
      return isInRange(rounded) ? .value(.float(rounded)) : .absent(outOfRangeReason)
    }
  }

  private func isInRange(_ number: Double) -> Bool { property.range?.contains(number) ?? true }

  private func rounded(_ number: Double) -> Double {
    // Adding zero turns -0 into 0.
    if let decimalScale { return (number * decimalScale).rounded() / decimalScale + 0 }
    // 3 * 0.1 gives 0.30000000000000004, which is published as 0.3.
    return abs(number) < 1e6 && abs(number) > 1e-3 ? (number * 1e9).rounded() / 1e9 : number
  }
}

/// The built-in tables, which are generated from the files in Vehicles.
extension DataRow {
  /// Creates a row from the keys of a signal; `valid` is a formula.
  convenience init(
    _ name: String, _ type: ValueType, _ source: Source, unit: String? = nil, range: ClosedRange<Double>? = nil, decimals: Int? = nil,
    labels: [Int: String] = [:], length: Int? = nil, valid: String? = nil, retained: Bool = false, group: PropertyGroup,
    rank: PropertyRank = .main, help: String
  ) {
    let property = Property(
      name, type, unit: unit, range: range, choices: Set(labels.values).sorted(), lifetime: retained ? .retained : .fresh(2 * .second),
      group: group, rank: rank, help: help)
    self.init(property, source, decimals: decimals, labels: labels, length: length, valid: valid.map(Expression.builtIn))
  }
}

extension DataRow.Source {
  static func formula(_ text: String) -> DataRow.Source { .formula(.builtIn(text)) }

  /// A number with ECU-specific scaling, whose raw number the formula reads.
  static func scaled(_ text: String, by quantity: ScaledQuantity) -> DataRow.Source {
    guard let field = LinearField(.builtIn(text)) else { preconditionFailure("\(text): not one number") }
    return .scaled(field.number, quantity)
  }
}

extension Expression {
  /// Parses a formula of a built-in table; traps if it is invalid.
  fileprivate static func builtIn(_ text: String) -> Expression {
    do throws(ExpressionError) { return try Expression(text) } catch { preconditionFailure("\(text): \(error.message)") }
  }
}
