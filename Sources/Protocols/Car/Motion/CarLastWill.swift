// The last-will frames: Stop, and Disconnect if the daemon has died, in the form that the car's mode requires. They are replaced
// before the car enters a mode that requires other frames.

struct CarLastWill: Sendable {
  /// The messages that stop the motors without waiting for responses, by increasing severity.
  private enum Variant: Int {
    /// Stop is sufficient.
    case usual
    /// The car may discard a Stop together with a command that fails, so Stop is repeated for three seconds.
    case repeated
    /// Stop requires another mode.
    case changesMode

    init(_ mode: Int?, _ dialect: CarDialect) {
      self =
        CarModes.stopIsBroken(in: mode, dialect) ? .changesMode : CarModes.takesTilt(in: mode, dialect) ? .usual : .repeated
    }
  }

  private let dialect: CarDialect
  /// The current frames; nil: none.
  private var variant: Variant?

  init(_ dialect: CarDialect) { self.dialect = dialect }

  /// The link is lost.
  mutating func reset() { variant = nil }

  /// Sets the last-will frames for the current mode and those of the queued commands.
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
