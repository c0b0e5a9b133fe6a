// A signal from the configuration: its request, its addresses, and the DataRow that decodes it. If the value is out of range or the formula
// has no result, the value is absent.

public struct CustomSignal: Sendable {
  /// The property and its decoder for the data after `request.responsePrefix`.
  let row: DataRow
  let request: SignalRequest
  let header: CANIdentifier
  /// The response identifier, or nil to accept any.
  let reply: CANIdentifier?
  /// The address bytes of frames.
  let addressBytes: ISOTPAddressing
  /// The poll period.
  let period: Nanoseconds

  var name: String { row.property.name }

  init(
    _ row: DataRow, _ request: SignalRequest, header: CANIdentifier? = nil, reply: CANIdentifier? = nil,
    _ addressBytes: ISOTPAddressing = .normal, period: Nanoseconds = .second
  ) {
    self.row = row
    self.request = request
    self.header = header ?? (request.service <= 0x0A ? .functional : .engine)
    self.reply = reply ?? self.header.reply(addressBytes)
    self.addressBytes = addressBytes
    self.period = period
  }

  /// The lifetime of a value: three periods, but at least two seconds.
  static func lifetime(_ period: Nanoseconds) -> Property.Lifetime { .fresh(max(3 * period, 2 * .second)) }
}
