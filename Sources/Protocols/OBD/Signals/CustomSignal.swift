// A signal that an owner describes in the configuration: a request, who is asked and who answers, a formula, and what the value is.
// Whoever polls finds here what to ask and how often; what was read comes out as a DataRow like any other. A value is never wrong:
// outside its range, or where the formula has no result, it is absent.

public struct CustomSignal: Sendable {
  /// The property, and how it is read from the data behind `request.echo`.
  let row: DataRow
  let request: SignalRequest
  let header: CANIdentifier
  /// Who must answer; nil: whoever does.
  let reply: CANIdentifier?
  /// How often it is asked for.
  let period: Nanoseconds

  var name: String { row.property.name }

  /// The latest that is still shown is three periods old, or two seconds.
  init(
    _ name: String, _ request: SignalRequest, header: CANIdentifier? = nil, reply: CANIdentifier? = nil, _ expression: Expression,
    type: ValueType = .float, unit: String? = nil, range: ClosedRange<Double>? = nil, period: Nanoseconds = .second, help: String
  ) {
    self.request = request
    self.header = header ?? (request.service <= 0x0A ? .functional : .engine)
    self.reply = reply ?? self.header.reply
    self.period = period
    let property = Property(name, type, unit: unit, range: range, lifetime: .fresh(max(3 * period, 2 * .second)), help: help)
    row = DataRow(property) { data in
      switch expression.evaluate(data) {
      case .absent(let absence): .absent(absence)
      case .number(let number): Self.decoded(number, type, range)
      }
    }
  }

  private static func decoded(_ number: Double, _ type: ValueType, _ range: ClosedRange<Double>?) -> Decoded {
    if type == .bool { return .value(.bool(number != 0)) }
    let shown = type == .int ? number.rounded() : tidy(number)
    guard range?.contains(shown) ?? true else { return .absent(.outOfRange) }
    guard type == .int else { return .value(.float(shown)) }
    return Expression.whole(shown).map { .value(.int($0)) } ?? .absent(.undefined)
  }

  /// Without the noise that tenths leave in binary: 3 * 0.1 is 0.3.
  private static func tidy(_ number: Double) -> Double {
    abs(number) < 1e6 && abs(number) > 1e-3 ? (number * 1e9).rounded() / 1e9 : number
  }
}
