// Whom a request goes to and who answers it. Who answers follows from the standard as a rule; makers have others. Facts: ISO 15765-4.

/// One control unit, or all of them.
struct Target: Hashable, Sendable {
  /// nil: everybody, in whatever way the adapter itself addresses them.
  let request: CANIdentifier?
  /// Who answers; nil: whoever knows.
  let reply: CANIdentifier?

  /// The battery controller of Hyundai and Kia.
  static let battery = Target(CANIdentifier(0x7E4))
  static let unaddressed = Target()

  private init() { (request, reply) = (nil, nil) }

  /// Whoever answers requests to this identifier, or this one where the standard does not say so.
  init(_ request: CANIdentifier, reply: CANIdentifier? = nil) {
    self.request = request
    self.reply = reply ?? request.reply
  }

  /// The controller that answers from this identifier; nil where the standard does not say how it is asked.
  init?(answeringFrom reply: CANIdentifier) {
    let request =
      reply.isLong ? reply.reply : (0x7E8...0x7EF).contains(reply.number) ? CANIdentifier(reply.number - 8) : nil
    guard let request else { return nil }
    self.init(request, reply: reply)
  }

  /// Its answers pass the filter that every adapter begins with.
  var isUsual: Bool { reply.map { CANReader.isController($0.number) } ?? false }

  /// The adapter's own flow control, which follows from the standard, does not reach it: its long answers would end after their first frame.
  var needsFlowControl: Bool { reply != nil && request != nil && reply != request?.reply }

  /// As a person reads it: `7E4`.
  var text: String { request?.text ?? "all" }

  /// Whether a message from there (nil: nobody's name is shown) can be an answer. Of many that may answer it is the one who did so first:
  /// another controller's value is another value.
  func isAnswered(from source: UInt32?, before answerer: UInt32?) -> Bool {
    guard let source else { return true }
    if let reply { return source == reply.number }
    return answerer.map { $0 == source } ?? CANReader.isController(source)
  }
}
