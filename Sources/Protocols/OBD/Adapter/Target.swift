// The address of a request, and the address from which the ECU responds. ISO 15765-4 derives the second from the first; manufacturers may
// use other addresses, and with extended or mixed addressing (ISO 15765-2) an address byte in each frame.

/// One ECU, or all of them.
struct Target: Hashable, Sendable {
  /// The request identifier, or nil if the adapter itself sets the functional address.
  let request: CANIdentifier?
  /// The response identifier, or nil if any ECU may respond.
  let reply: CANIdentifier?
  /// The address bytes of frames.
  let addressBytes: ISOTPAddressing

  /// The BMS of Hyundai and Kia.
  static let bms = Target(CANIdentifier(0x7E4))
  /// All ECUs, on a pre-CAN protocol.
  static let unaddressed = Target()

  private init() { (request, reply, addressBytes) = (nil, nil, .normal) }

  /// The ECU at this request identifier. `reply` is needed if ISO 15765-4 defines no response identifier, or the ECU uses another one.
  init(_ request: CANIdentifier, reply: CANIdentifier? = nil, _ addressBytes: ISOTPAddressing = .normal) {
    self.request = request
    self.reply = reply ?? request.reply(addressBytes)
    self.addressBytes = addressBytes
  }

  /// The ECU with this address in its displayed form; nil if the text is no such address.
  init?(_ text: String) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let request = CANIdentifier(parts[0]) else { return nil }
    guard parts.count == 2 else {
      self.init(request)
      return
    }
    guard let byte = addressByte(parts[1]) else { return nil }
    self.init(request, .extended(target: byte))
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
  var passesDefaultFilter: Bool { addressBytes == .normal && reply.map { ReplyReader.isOBDSource($0.number) } ?? false }

  /// Whether the ECU needs user-defined flow control: the adapter's automatic flow control does not reach it, and long responses would end
  /// after their first frame.
  var needsFlowControl: Bool { reply != nil && request != nil && (reply != request?.reply || addressBytes != .normal) }

  /// The displayed form: `7E4`, or `6F1/07` with an address byte.
  var text: String {
    let identifier = request?.text ?? "all"
    return addressBytes.sentByte.map { "\(identifier)/\(spacedHex([$0]))" } ?? identifier
  }

  /// Whether a message from this source can be a response. `source` is nil if the adapter does not show it. If any ECU may respond, only
  /// the ECU that responded first (`responder`) is accepted, because other ECUs report other values.
  func accepts(_ source: UInt32?, responder: UInt32?) -> Bool {
    guard let source else { return true }
    if let reply { return source == reply.number }
    return responder.map { $0 == source } ?? ReplyReader.isOBDSource(source)
  }
}
