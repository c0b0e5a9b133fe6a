// The configuration of a board that speaks ELComm, with defaults.

/// The side that sends first.
enum ELCommDialect: String, Sendable {
  /// The host sends one byte, and the board responds.
  case asBuilt = "as-built"
  /// The board sends, and the host responds with the buzzer's number.
  case documented
}

/// The control bytes of an as-built board; any other byte leaves the buzzer unchanged.
/// Source: ProjectTORQ.ino; 66 is the app's own constant, which no board interprets as a buzzer command.
enum ELCommControl {
  static let on: UInt8 = 55
  static let off: UInt8 = 45
  static let neutral: UInt8 = 66
}

/// The configuration of the dialogue.
struct ELCommSettings: Sendable {
  /// The minimum poll period of an as-built board: one pass of its loop takes about this long.
  static let minPeriod: Nanoseconds = 100 * .millisecond

  /// The interval between two bytes to an as-built board.
  let period: Nanoseconds
  /// The configured dialect, or nil to detect it.
  let dialect: ELCommDialect?
  /// The response to a documented board that switches the buzzer on: a number in ASCII, without a terminator.
  let on: [UInt8]
  /// The response that switches the buzzer off.
  let off: [UInt8]
  /// The probe of the dialect detection: off for a documented board, in at least two characters, because an as-built board responds to each
  /// one.
  let probe: [UInt8]
  /// The maximum time that the buzzer stays on.
  let buzzerLimit: Nanoseconds

  init(_ setup: Setup) throws(OptionError) {
    let rate = setup.options["rate"]?.number ?? 5
    guard rate >= 0.1, rate <= 10 else {
      throw OptionError("rate", "must be 0.1 to 10 Hz with protocol = \"elcomm\"")
    }
    period = Nanoseconds((1e9 / rate).rounded())
    if case .string(let name)? = setup.options["dialect"] { dialect = ELCommDialect(rawValue: name) } else { dialect = nil }
    let (on, off) = (setup.options["buzzer-on"]?.number ?? 1, setup.options["buzzer-off"]?.number ?? 0)
    guard on != off else { throw OptionError("buzzer-on", "\(Value.text(on)) equals buzzer-off; use two different numbers") }
    self.on = Array(Value.text(on).utf8)
    self.off = Array(Value.text(off).utf8)
    guard dialect != nil || !self.off.contains(ELCommControl.on) else {
      throw OptionError(
        "buzzer-off", "a 7 switches the buzzer on with the as-built dialect; set dialect = \"documented\", or use another number")
    }
    probe = off == 0 ? Array("-0".utf8) : self.off.count == 1 ? [UInt8(ascii: "0")] + self.off : self.off
    buzzerLimit = Nanoseconds((min(max(setup.options["buzzer-limit"]?.number ?? 10, 1), 600) * 1e9).rounded())
  }
}
