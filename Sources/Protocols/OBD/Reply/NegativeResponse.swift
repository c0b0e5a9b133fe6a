// The negative response codes of ISO 14229: their names, and the consequence of each.

/// The code in a negative response, `7F service code`.
enum NegativeResponse {
  /// The consequence of a negative response to a polled request.
  enum Consequence {
    /// Try another request: this service or identifier is not supported.
    case tryOther
    /// Repeat the request soon.
    case repeatRequest
    /// The response is pending: do not repeat at once.
    case pause
    /// Pause polling.
    case backOff
    /// Never repeat automatically: each attempt may lead to a lock-out.
    case giveUp
  }

  static func consequence(of code: UInt8) -> Consequence {
    switch handling(of: code) {
    case .dropService, .dropIdentifier: .tryOther
    case .repeatSoon: .repeatRequest
    case .wait: .pause
    // Only this request is known to need security access; another one may not need it.
    case .neverRepeat where code == 0x33: .tryOther
    case .neverRepeat: .giveUp
    case .repeatLater, .backOff, .correctLength, .requestLess, .changeSession: .backOff
    }
  }

  /// What a client may do after a negative response to any request.
  enum Handling {
    /// No specific error: repeat later.
    case repeatLater
    /// Do not use this service of this ECU again.
    case dropService
    /// Do not use this identifier again.
    case dropIdentifier
    /// The request has the wrong length, possibly because of its frame count.
    case correctLength
    /// Request less at a time.
    case requestLess
    /// Repeat after 10 to 100 ms, three times at most.
    case repeatSoon
    /// The conditions are not correct: repeat at growing intervals.
    case backOff
    /// The ECU answers this request only in another diagnostic session, which is never opened automatically.
    case changeSession
    /// Never repeat automatically: a lock-out or a corrupt download may follow.
    case neverRepeat
    /// The response follows: wait for it and send nothing.
    case wait

    /// Whether the ECU does not support the request.
    var meansUnsupported: Bool { self == .dropService || self == .dropIdentifier }
  }

  static func handling(of code: UInt8) -> Handling {
    switch code {
    case 0x11: .dropService
    case 0x12, 0x31: .dropIdentifier
    case 0x13: .correctLength
    case 0x14: .requestLess
    case 0x21: .repeatSoon
    case 0x24, 0x7E, 0x7F: .changeSession
    case 0x33...0x37, 0x70...0x73: .neverRepeat
    case 0x78: .wait
    case 0x22, 0x81...0x8D, 0x8F...0x94: .backOff
    default: .repeatLater
    }
  }

  /// The name of the code.
  static func name(of code: UInt8) -> String { names[code] ?? "code \(spacedHex([code]))" }

  private static let names: [UInt8: String] = [
    0x10: "general reject",
    0x11: "service not supported",
    0x12: "sub-function not supported",
    0x13: "incorrect message length or invalid format",
    0x14: "response too long",
    0x21: "busy, repeat request",
    0x22: "conditions not correct",
    0x24: "request sequence error",
    0x25: "no response from subnet component",
    0x26: "failure prevents execution of requested action",
    0x31: "request out of range",
    0x33: "security access denied",
    0x34: "authentication required",
    0x35: "invalid key",
    0x36: "exceeded number of attempts",
    0x37: "required time delay not expired",
    0x70: "upload or download not accepted",
    0x71: "transfer data suspended",
    0x72: "general programming failure",
    0x73: "wrong block sequence counter",
    0x78: "response pending",
    0x7E: "sub-function not supported in this session",
    0x7F: "service not supported in this session",
    0x81: "engine speed too high",
    0x82: "engine speed too low",
    0x83: "engine is running",
    0x84: "engine is not running",
    0x85: "engine run time too short",
    0x86: "temperature too high",
    0x87: "temperature too low",
    0x88: "vehicle speed too high",
    0x89: "vehicle speed too low",
    0x8A: "throttle or pedal too high",
    0x8B: "throttle or pedal too low",
    0x8C: "transmission not in neutral",
    0x8D: "transmission not in gear",
    0x8F: "brake not pressed",
    0x90: "shift lever not in park",
    0x91: "torque converter clutch locked",
    0x92: "voltage too high",
    0x93: "voltage too low",
    0x94: "resource temporarily not available",
  ]
}
