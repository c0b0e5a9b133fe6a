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
    switch code {
    case 0x11, 0x12, 0x31, 0x33: .tryOther
    case 0x21: .askAgain
    case 0x78: .pause
    case 0x35, 0x36, 0x37: .giveUp
    default: .backOff
    }
  }

  /// What the code is called.
  static func name(of code: UInt8) -> String {
    switch code {
    case 0x10: "general reject"
    case 0x11: "service not supported"
    case 0x12: "sub-function not supported"
    case 0x13: "wrong length or format"
    case 0x14: "response too long"
    case 0x21: "busy, repeat the request"
    case 0x22: "conditions not correct"
    case 0x24: "wrong sequence of requests"
    case 0x31: "request out of range"
    case 0x33: "security access denied"
    case 0x35: "invalid key"
    case 0x36: "too many attempts"
    case 0x37: "time delay not expired"
    case 0x72: "programming failure"
    case 0x78: "response pending"
    case 0x7E: "sub-function not supported in this session"
    case 0x7F: "service not supported in this session"
    case 0x92: "voltage too high"
    case 0x93: "voltage too low"
    default: "code \(spacedHex([code]))"
    }
  }
}
