// Whom a request goes to and who answers it, and the commands that turn an adapter to them. Who answers follows from the standard as a
// rule; makers have others. Facts: ISO 15765-4, and the ELM327 data sheet on SP, SH, CP, CRA and AR.

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

  /// As a person reads it: `7E4`.
  var text: String { request?.text ?? "all" }

  /// Whether a message from there (nil: nobody's name is shown) can be an answer. Of many that may answer it is the one who did so first:
  /// another controller's value is another value.
  func isAnswered(from source: UInt32?, before answerer: UInt32?) -> Bool {
    guard let source else { return true }
    if let reply { return source == reply.number }
    return answerer.map { $0 == source } ?? CANReader.isController(source)
  }

  /// One command on the way to a target.
  enum Step: Equatable, Sendable {
    /// Without it the adapter asks somebody else.
    case required(String)
    /// A filter: where it is missing, answers are told apart by their source.
    case preferred(String)
    /// The same as the step before it, for adapters that do not know that.
    case instead(String)

    var bytes: [UInt8] {
      switch self {
      case .required(let text), .preferred(let text), .instead(let text): Array(text.utf8)
      }
    }
  }

  /// What turns an adapter to it that is set as `aim` says; nil: it was just set up. Target and bus must fit.
  func steps(on bus: VehicleBus, from aim: Aim?, _ traits: AdapterTraits) -> [Step] {
    var steps: [Step] = []
    if aim?.bus != bus { steps.append(.required((traits.missing.contains(.memoryOff) ? "ATTP" : "ATSP") + bus.digit)) }
    guard let request else { return steps }
    let digits = request.text
    // 18 is what every adapter begins with, but what another 29-bit target had stays.
    if request.isLong { steps.append(.required("ATCP" + digits.prefix(2))) }
    steps.append(.required("ATSH" + (request.isLong ? digits.suffix(6) : digits[...])))
    if traits.hasFilter {
      if let reply { steps.append(.preferred("ATCRA" + reply.text)) } else { steps += [.preferred("ATCRA"), .instead("ATAR")] }
    }
    return steps
  }
}
