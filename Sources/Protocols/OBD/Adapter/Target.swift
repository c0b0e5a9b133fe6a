// The address of a request, and the address from which the ECU responds. ISO 15765-4 derives the second from the first; manufacturers may
// use other addresses.

/// One ECU, or all of them.
struct Target: Hashable, Sendable {
  /// The request identifier, or nil if the adapter itself sets the functional address.
  let request: CANIdentifier?
  /// The response identifier, or nil if any ECU may respond.
  let reply: CANIdentifier?

  /// The BMS of Hyundai and Kia.
  static let bms = Target(CANIdentifier(0x7E4))
  /// All ECUs, on a pre-CAN protocol.
  static let unaddressed = Target()

  private init() { (request, reply) = (nil, nil) }

  /// The ECU at this request identifier. `reply` is needed if ISO 15765-4 defines no response identifier, or the ECU uses another one.
  init(_ request: CANIdentifier, reply: CANIdentifier? = nil) {
    self.request = request
    self.reply = reply ?? request.reply
  }

  /// The ECU that responds from this identifier; nil if ISO 15765-4 defines no request identifier for it.
  init?(respondingFrom reply: CANIdentifier) {
    // For 29-bit identifiers the rule of ISO 15765-4 is its own inverse.
    let request =
      reply.is29Bit ? reply.reply : (0x7E8...0x7EF).contains(reply.number) ? CANIdentifier(reply.number - 8) : nil
    guard let request else { return nil }
    self.init(request, reply: reply)
  }

  /// Whether the responses pass the adapter's default filter.
  var passesDefaultFilter: Bool { reply.map { ReplyReader.isOBDSource($0.number) } ?? false }

  /// Whether the ECU needs user-defined flow control: the adapter's automatic flow control does not reach it, and long responses would end
  /// after their first frame.
  var needsFlowControl: Bool { reply != nil && request != nil && reply != request?.reply }

  /// The displayed form: `7E4`.
  var text: String { request?.text ?? "all" }

  /// Whether a message from this source can be a response. `source` is nil if the adapter does not show it. If any ECU may respond, only
  /// the ECU that responded first (`responder`) is accepted, because other ECUs report other values.
  func accepts(_ source: UInt32?, responder: UInt32?) -> Bool {
    guard let source else { return true }
    if let reply { return source == reply.number }
    return responder.map { $0 == source } ?? ReplyReader.isOBDSource(source)
  }
}
