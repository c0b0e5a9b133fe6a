// The read of a field whose value needs no rounding, as most of a fast record do. It holds nothing that is reference-counted: for a poll at
// the device's rate the counting would cost more than the reading.

struct FieldReader: Sendable {
  private enum Form { case whole, decimal, bool }

  private let field: LinearField
  private let form: Form
  private let low: Double
  private let high: Double
  /// Why a value outside the range is absent.
  private let outside: Absence

  /// nil if the value must be rounded to the decimals of the power of ten `scale`, or stands for a string.
  init?(_ field: LinearField, as property: Property, scale: Double, outside: Absence) {
    switch property.type {
    case .int where field.isWhole: form = .whole
    case .float where field.isDecimal(scale): form = .decimal
    case .bool: form = .bool
    default: return nil
    }
    (self.field, self.outside) = (field, outside)
    (low, high) = (property.range?.lowerBound ?? -.infinity, property.range?.upperBound ?? .infinity)
  }

  @inline(__always) func read(_ data: DataRow.Data) -> Decoded {
    guard let raw = field.number.raw(data) else { return .absent(.notReported) }
    if let sentinel = field.sentinel, raw == sentinel.raw { return .absent(sentinel.reason) }
    switch form {
    case .whole:
      let whole = field.whole(raw)
      return low <= Double(whole) && Double(whole) <= high ? .value(.int(whole)) : .absent(outside)
    case .decimal:
      let number = field.value(raw)
      return low <= number && number <= high ? .value(.float(number)) : .absent(outside)
    case .bool: return .value(.bool(field.value(raw) != 0))
    }
  }
}
