// Trouble codes over UDS (ISO 14229-1, service 19 02): the code of SAE J2012 in two bytes, the failure type of SAE J2012-DA (ISO 15031-6),
// and a status byte. Mainly ECUs that are not emission-related report them.

/// A code with its failure type and status.
struct UDSTroubleCode: Sendable, Equatable {
  let code: TroubleCode
  let failureType: UInt8
  let status: UInt8

  /// The status mask of the request: failed now, pending, confirmed, or warning indicator. It excludes codes whose test has not run yet.
  static let mask: UInt8 = 0x8D
  static let request: [UInt8] = [0x19, 0x02, mask]

  private static let states: [(bit: UInt8, word: String)] = [(0x08, "stored"), (0x04, "pending"), (0x01, "active"), (0x80, "warning lamp")]

  /// `U0100-87`; without a failure type `U0100`.
  var text: String { failureType == 0 ? code.text : "\(code.text)-\(spacedHex([failureType]))" }

  /// `stored` for a confirmed code, `active` for a code whose test currently fails.
  var states: [String] { Self.states.filter { status & $0.bit != 0 }.map(\.word) }

  /// The descriptions of the code and of its failure type.
  var meaning: String { [code.meaning, Self.failures[failureType]].compactMap(\.self).joined(separator: ": ") }

  /// The result of parsing a response.
  enum Answer: Equatable {
    case codes([UDSTroubleCode])
    case malformed(String)
  }

  /// Parses one message: `59 02`, the status availability mask, and four bytes per code. Codes that the mask does not select are skipped.
  static func read(_ message: [UInt8]) -> Answer {
    guard message.starts(with: [0x59, 0x02]), message.count >= 3 else { return .malformed("not a service 19 02 response") }
    guard (message.count - 3) % 4 == 0 else { return .malformed("truncated trouble code") }
    let all = stride(from: 3, to: message.count, by: 4).map { at in
      UDSTroubleCode(code: TroubleCode(message[at], message[at + 1]), failureType: message[at + 2], status: message[at + 3])
    }
    return .codes(all.filter { $0.status & mask != 0 && !($0.code.isPadding && $0.failureType == 0) })
  }

  private static let failures: [UInt8: String] = [
    0x01: "general electrical failure", 0x02: "general signal failure", 0x04: "system internal failure", 0x05: "programming failure",
    0x07: "mechanical failure", 0x08: "bus signal or message failure", 0x09: "component failure", 0x11: "circuit short to ground",
    0x12: "circuit short to battery", 0x13: "circuit open", 0x14: "circuit short to ground or open",
    0x15: "circuit short to battery or open", 0x16: "circuit voltage below threshold", 0x17: "circuit voltage above threshold",
    0x18: "circuit current below threshold", 0x19: "circuit current above threshold", 0x1A: "circuit resistance below threshold",
    0x1B: "circuit resistance above threshold", 0x1C: "circuit voltage out of range", 0x1D: "circuit current out of range",
    0x1E: "circuit resistance out of range", 0x1F: "circuit intermittent", 0x21: "signal amplitude below minimum",
    0x22: "signal amplitude above maximum", 0x23: "signal stuck low", 0x24: "signal stuck high", 0x25: "signal waveform failure",
    0x26: "signal rate of change below threshold", 0x27: "signal rate of change above threshold", 0x28: "signal bias out of range",
    0x29: "signal invalid", 0x2A: "signal stuck in range", 0x2F: "signal erratic", 0x31: "no signal", 0x36: "signal frequency too low",
    0x37: "signal frequency too high", 0x38: "signal frequency incorrect", 0x39: "too few pulses", 0x3A: "too many pulses",
    0x41: "checksum failure", 0x42: "memory failure", 0x44: "data memory failure", 0x45: "program memory failure",
    0x46: "calibration memory failure", 0x47: "watchdog failure", 0x48: "supervision software failure",
    0x49: "internal electronic failure", 0x4A: "incorrect component installed", 0x4B: "over temperature", 0x51: "not programmed",
    0x52: "not activated", 0x53: "deactivated", 0x54: "missing calibration", 0x55: "not configured", 0x56: "incompatible configuration",
    0x57: "incompatible software", 0x61: "signal calculation failure", 0x62: "signal compare failure", 0x63: "protection timeout",
    0x64: "signal implausible", 0x65: "too few transitions or events", 0x66: "too many transitions or events",
    0x67: "signal incorrect after event", 0x68: "event information", 0x71: "actuator stuck", 0x72: "actuator stuck open",
    0x73: "actuator stuck closed", 0x74: "actuator slipping", 0x76: "wrong mounting position", 0x77: "commanded position not reachable",
    0x78: "alignment incorrect", 0x79: "mechanical linkage failure", 0x7A: "fluid leak or seal failure", 0x7B: "low fluid level",
    0x81: "invalid serial data received", 0x82: "alive counter incorrect", 0x83: "signal protection value incorrect",
    0x84: "signal below allowable range", 0x85: "signal above allowable range", 0x86: "signal invalid", 0x87: "missing message",
    0x88: "bus off", 0x91: "parametric failure", 0x92: "performance or incorrect operation", 0x93: "no operation",
    0x94: "unexpected operation", 0x95: "incorrect assembly", 0x96: "component internal failure", 0x97: "operation obstructed or blocked",
    0x98: "component over temperature",
  ]
}
