// Whom a request goes to and who answers it, and the commands that turn an adapter to them. Who answers follows from the standard as a
// rule; makers have others. Facts: ISO 15765-4, and the ELM327 data sheet on SH, CP, CRA and AR.

/// One control unit, or all of them.
struct Target: Hashable, Sendable {
  let request: CANIdentifier
  /// Who answers; nil: whoever knows.
  let reply: CANIdentifier?

  /// The battery controller of Hyundai and Kia.
  static let battery = Target(CANIdentifier(0x7E4))
  /// All controllers that know the emission standard.
  static let everybody = Target(.functional)

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

  /// One command on the way to a target.
  enum Step: Equatable, Sendable {
    /// Must be acknowledged.
    case required(String)
    /// Where it is not acknowledged the next step does the same in another way, or it is done without.
    case preferred(String)

    /// As it goes out, without its carriage return.
    var bytes: [UInt8] {
      switch self {
      case .required(let text), .preferred(let text): Array(text.utf8)
      }
    }
  }

  /// What turns an adapter to this target that is set for targets of 11 bits, or of 29.
  func steps(_ traits: AdapterTraits, fromLong wasLong: Bool) -> [Step] {
    var steps: [Step] = []
    let isLong = request.isLong
    if wasLong != isLong {
      let set = traits.missing.contains(.memoryOff) ? "ATTP" : "ATSP"
      steps.append(.required(set + (isLong ? "7" : "6")))
    }
    let digits = request.text
    if isLong { steps.append(.required("ATCP" + digits.prefix(2))) }
    steps.append(.required("ATSH" + (isLong ? digits.suffix(6) : digits[...])))
    if !traits.missing.contains(.filter) {
      if let reply { steps.append(.preferred("ATCRA" + reply.text)) } else { steps += [.preferred("ATCRA"), .preferred("ATAR")] }
    }
    return steps
  }
}
