// The address of a request and of its response. Usually ISO 15765-4 defines the response address; manufacturers may use others.

/// One ECU, or all of them.
struct Target: Hashable, Sendable {
  /// nil: functional addressing by the adapter itself.
  let request: CANIdentifier?
  /// The response identifier; nil: any ECU.
  let reply: CANIdentifier?

  /// The BMS of Hyundai and Kia.
  static let battery = Target(CANIdentifier(0x7E4))
  static let unaddressed = Target()

  private init() { (request, reply) = (nil, nil) }

  /// The ECU at this identifier, with a given response identifier if the standard defines none.
  init(_ request: CANIdentifier, reply: CANIdentifier? = nil) {
    self.request = request
    self.reply = reply ?? request.reply
  }

  /// The ECU that responds from this identifier; nil if the standard defines no request address.
  init?(answeringFrom reply: CANIdentifier) {
    let request =
      reply.isLong ? reply.reply : (0x7E8...0x7EF).contains(reply.number) ? CANIdentifier(reply.number - 8) : nil
    guard let request else { return nil }
    self.init(request, reply: reply)
  }

  /// Its responses pass the adapter's default filter.
  var isUsual: Bool { reply.map { CANReader.isController($0.number) } ?? false }

  /// The adapter's automatic flow control does not reach it, so that long responses would end after their first frame.
  var needsFlowControl: Bool { reply != nil && request != nil && reply != request?.reply }

  /// The displayed form: `7E4`.
  var text: String { request?.text ?? "all" }

  /// Whether a message from this source (nil: not shown) can be a response. Of several ECUs only the first that answered counts: another
  /// ECU's value is a different one.
  func isAnswered(from source: UInt32?, before answerer: UInt32?) -> Bool {
    guard let source else { return true }
    if let reply { return source == reply.number }
    return answerer.map { $0 == source } ?? CANReader.isController(source)
  }
}
