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
    row = DataRow(property, .formula(expression), outside: .outOfRange)
  }
}
