// Whom a request goes to and who answers it, as CAN identifiers, and the commands that turn an adapter to them. The usual pairs follow
// from the standard (request + 8; 18DAttss is answered by 18DAsstt); makers have others.
// Facts: ISO 15765-4, and the ELM327 data sheet on SH, CP, CRA and AR.

/// One control unit, or all of them.
struct Target: Hashable, Sendable {
  /// The identifier that is asked, of 11 or 29 bits.
  let request: UInt32
  /// Who answers; nil: whoever knows.
  let reply: UInt32?

  /// The battery controller of Hyundai and Kia.
  static let battery = Target(0x7E4)
  /// All controllers that know the emission standard.
  static let everybody = Target(0x7DF)

  /// Whoever answers requests to this identifier, or these two where the standard does not say so.
  init(_ request: UInt32, reply: UInt32? = nil) {
    self.request = request
    self.reply = reply ?? Self.usualReply(to: request)
  }

  /// The controller that answers from this identifier.
  static func answering(_ identifier: UInt32) -> Target {
    if identifier >> 16 == 0x18DA { return Target(0x18DA << 16 | (identifier & 0xFF) << 8 | identifier >> 8 & 0xFF) }
    return identifier >= 8 && identifier <= 0x7FF ? Target(identifier - 8) : .everybody
  }

  var isLong: Bool { request > 0x7FF }

  private static func usualReply(to request: UInt32) -> UInt32? {
    if request > 0x7FF {
      guard request >> 16 == 0x18DA else { return nil }
      return 0x18DA << 16 | (request & 0xFF) << 8 | request >> 8 & 0xFF
    }
    return request == 0x7DF || request + 8 > 0x7FF ? nil : request + 8
  }

  /// An identifier as testers write it: 7E8, 18DAF110.
  static func digits(_ identifier: UInt32) -> String {
    let text = String(identifier, radix: 16, uppercase: true)
    return String(repeating: "0", count: max((identifier > 0x7FF ? 8 : 3) - text.count, 0)) + text
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
    if wasLong != isLong {
      let set = traits.missing.contains(.memoryOff) ? "ATTP" : "ATSP"
      steps.append(.required(set + (isLong ? "7" : "6")))
    }
    let digits = Self.digits(request)
    if isLong { steps.append(.required("ATCP" + digits.prefix(2))) }
    steps.append(.required("ATSH" + (isLong ? digits.suffix(6) : digits[...])))
    if !traits.missing.contains(.filter) {
      if let reply { steps.append(.preferred("ATCRA" + Self.digits(reply))) } else { steps += [.preferred("ATCRA"), .preferred("ATAR")] }
    }
    return steps
  }
}
