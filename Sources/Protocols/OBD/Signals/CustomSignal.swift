// A signal from the configuration: request, addresses, and the DataRow that decodes it like any other. Outside of its range, or without a
// result, it is absent.

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

  init(_ row: DataRow, _ request: SignalRequest, header: CANIdentifier? = nil, reply: CANIdentifier? = nil, period: Nanoseconds = .second) {
    self.row = row
    self.request = request
    self.header = header ?? (request.service <= 0x0A ? .functional : .engine)
    self.reply = reply ?? self.header.reply
    self.period = period
  }

  /// A value stays fresh for three periods, at least two seconds.
  static func lifetime(_ period: Nanoseconds) -> Property.Lifetime { .fresh(max(3 * period, 2 * .second)) }
}
