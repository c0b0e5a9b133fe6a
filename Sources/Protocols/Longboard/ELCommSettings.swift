// What the configuration says of a board that speaks ELComm, with the usual values where it says nothing.

/// How to talk with the board.
struct ELCommSettings: Sendable {
  /// The most often that a board as built can answer: a pass of its loop takes about this long.
  static let minPeriod: Nanoseconds = 100 * .millisecond

  /// Between two bytes to a board as built.
  let period: Nanoseconds
  /// nil: whichever is found.
  let dialect: ELCommMachine.Dialect?
  /// What a documented board is answered: the number in ASCII, without a terminator.
  let on: [UInt8]
  let off: [UInt8]
  /// Buzzer off for a documented board, as two characters or three: `-0` is off for a board as built as well.
  let probe: [UInt8]
  /// How long the buzzer stays on at most.
  let buzzerLimit: Nanoseconds

  init(_ setup: Setup) throws(OptionError) {
    let rate = setup.options["rate"]?.number ?? 5
    guard rate >= 0.1, rate <= 10 else {
      throw OptionError("rate", "the board answers at most 10 times a second; give 0.1 to 10 Hz with protocol = \"elcomm\"")
    }
    period = Nanoseconds((1e9 / rate).rounded())
    if case .string(let name)? = setup.options["dialect"] { dialect = ELCommMachine.Dialect(rawValue: name) } else { dialect = nil }
    let (on, off) = (setup.options["buzzer-on"]?.number ?? 1, setup.options["buzzer-off"]?.number ?? 0)
    guard on != off else { throw OptionError("buzzer-on", "the board cannot tell \(Value.text(on)) from buzzer-off; give two numbers") }
    self.on = Array(Value.text(on).utf8)
    self.off = Array(Value.text(off).utf8)
    guard dialect != nil || !self.off.contains(ELCommControl.on) else {
      throw OptionError(
        "buzzer-off", "a 7 switches the buzzer of a board as built on; add dialect = \"documented\", or choose another number")
    }
    probe = off == 0 ? Array("-0".utf8) : self.off.count == 1 ? [UInt8(ascii: "0")] + self.off : self.off
    buzzerLimit = Nanoseconds((min(max(setup.options["buzzer-limit"]?.number ?? 10, 1), 600) * 1e9).rounded())
  }
}
