// The negative response codes of ISO 14229 that vehicles use, what they are called, and what a poller does about each.

/// A code of `7F service code`.
enum NegativeResponse {
  /// What a poller does.
  enum Demand {
    /// Ask in another way: this service or identifier is not there.
    case tryOther
    /// Ask again at the next tick.
    case askAgain
    /// The answer is on its way: do not ask at once.
    case pause
    case backOff
    /// Never again by itself: each try brings a lock-out nearer.
    case giveUp
  }

  static func demand(of code: UInt8) -> Demand {
    switch remedy(of: code) {
    case .leaveService, .leaveIdentifier: .tryOther
    case .askSoon: .askAgain
    case .wait: .pause
    // Security access is needed for this request alone: the other one may do without.
    case .never where code == 0x33: .tryOther
    case .never: .giveUp
    case .askLater, .backOff, .correct, .split, .openSession: .backOff
    }
  }

  /// What a scheduler of many requests does about the one that was refused.
  enum Remedy {
    /// An error of no kind: the same again, later.
    case askLater
    /// Never this service of this controller again.
    case leaveService
    /// Never this identifier again.
    case leaveIdentifier
    /// The request is wrong, or its count digit: say so once, and drop the digit.
    case correct
    /// Ask for less at a time.
    case split
    /// The same after 10 to 100 ms, three times at most.
    case askSoon
    /// The vehicle is in no state for it: ever less often.
    case backOff
    /// Only in another session, which is opened for nobody who has not asked for it.
    case openSession
    /// Never by itself: it may lock out, or break what is being written.
    case never
    /// The answer follows: wait for it and send nothing.
    case wait

    /// It does not know what it is asked for.
    var isIgnorance: Bool { self == .leaveService || self == .leaveIdentifier }
  }

  static func remedy(of code: UInt8) -> Remedy {
    switch code {
    case 0x11: .leaveService
    case 0x12, 0x31: .leaveIdentifier
    case 0x13: .correct
    case 0x14: .split
    case 0x21: .askSoon
    case 0x24, 0x7E, 0x7F: .openSession
    case 0x33...0x37, 0x70...0x73: .never
    case 0x78: .wait
    case 0x22, 0x81...0x8D, 0x8F...0x94: .backOff
    default: .askLater
    }
  }

  /// What the code is called.
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
