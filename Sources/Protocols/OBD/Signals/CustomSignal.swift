// A signal from the configuration: request, addresses, formula and type, decoded by a DataRow like any other. Outside of its range, or
// without a result, it is absent.

public struct CustomSignal: Sendable {
  /// The property and its decoder for the data after `request.echo`.
  let row: DataRow
  let request: SignalRequest
  let header: CANIdentifier
  /// The response identifier; nil: any.
  let reply: CANIdentifier?
  /// The poll period.
  let period: Nanoseconds

  var name: String { row.property.name }

  /// A value stays fresh for three periods, at least two seconds.
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

  /// Removes the binary noise of decimals: 3 * 0.1 is 0.3.
  private static func tidy(_ number: Double) -> Double {
    abs(number) < 1e6 && abs(number) > 1e-3 ? (number * 1e9).rounded() / 1e9 : number
  }
}
