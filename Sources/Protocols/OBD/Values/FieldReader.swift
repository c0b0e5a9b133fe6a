// Reads a field whose value needs neither labels nor rounding, like most fields of the BMS data record. It contains nothing that is
// reference-counted: for polls at the device's rate, reference counting would cost more than reading the field.

struct FieldReader: Sendable {
  private enum Form { case int, decimal, bool }

  private let field: LinearField
  private let form: Form
  private let low: Double
  private let high: Double
  /// The published reason for the absence of a value outside the range.
  private let outOfRangeReason: Absence

  /// Creates a reader; nil if the value stands for a string or must be rounded. `decimalScale` is 10 to the power of the number of
  /// decimals.
  init?(_ field: LinearField, as property: Property, decimalScale: Double, outOfRangeReason: Absence) {
    switch property.type {
    case .int where field.isInteger: form = .int
    case .float where field.isDecimal(decimalScale): form = .decimal
    case .bool: form = .bool
    default: return nil
    }
    (self.field, self.outOfRangeReason) = (field, outOfRangeReason)
    (low, high) = (property.range?.lowerBound ?? -.infinity, property.range?.upperBound ?? .infinity)
  }

  @inline(__always) func read(_ data: DataRow.Data) -> Decoded {
    guard let raw = field.number.raw(data) else { return .absent(.notReported) }
    if let sentinel = field.sentinel, raw == sentinel.raw { return .absent(sentinel.reason) }
    switch form {
    case .int:
      let number = field.int(raw)
      return low <= Double(number) && Double(number) <= high ? .value(.int(number)) : .absent(outOfRangeReason)
    case .decimal:
      let number = field.value(raw)
      return low <= number && number <= high ? .value(.float(number)) : .absent(outOfRangeReason)
    case .bool: return .value(.bool(field.value(raw) != 0))
    }
  }
}
