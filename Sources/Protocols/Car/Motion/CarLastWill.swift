// The last-will frames, which stop the car if the daemon dies (Stop and Disconnect) or freezes (Stop). They depend on the car's mode,
// and are replaced before a mode change is sent.

struct CarLastWill: Sendable {
  /// The sequences that stop the motors without waiting for a response. Each case also works in the modes of the cases before it.
  private enum Variant: Int {
    /// Stop three times.
    case plain
    /// Repeat Stop for three seconds, because the car may discard a Stop together with a command that fails.
    case repeated
    /// Stop fails in the current mode, so mode 0 is chosen as well.
    case changesMode

    init(_ mode: Int?, _ dialect: CarDialect) {
      self =
        CarModes.stopIsBroken(in: mode, dialect) ? .changesMode : CarModes.usesTilt(in: mode, dialect) ? .plain : .repeated
    }
  }

  private let dialect: CarDialect
  /// The sequence that is set; nil if none is set.
  private var variant: Variant?

  init(_ dialect: CarDialect) { self.dialect = dialect }

  /// Discards the sequence, which was lost with the link.
  mutating func reset() { variant = nil }

  /// Sets the last-will frames that work in the current mode and in the modes of queued commands.
  mutating func renew(mode: Int?, _ commands: [CarQueuedCommand], _ effects: inout Effects) {
    var needed = Variant(mode, dialect)
    for queued in commands {
      guard case .mode(let number) = queued.purpose else { continue }
      let next = Variant(number, dialect)
      if next.rawValue > needed.rawValue { needed = next }
    }
    guard needed != variant else { return }
    variant = needed
    func message(_ message: CarOutboundMessage, _ pause: Nanoseconds = CarSendQueue.stopInterval) -> LastWill.Message {
      LastWill.Message(message.frame(dialect), after: pause)
    }
    let first = message(.stop, 0)
    var more: [LastWill.Message] = (needed == .changesMode ? [.chosenMode(0), .stop, .stop] : [.stop, .stop]).map { message($0) }
    if needed == .repeated { more += [300, 600, 900, 1000].map { message(.stop, $0 * .millisecond) } }
    effects.append(.lastWill(.main, LastWill(dead: [first] + more + [message(.disconnect)], frozen: [first] + more)))
  }
}
