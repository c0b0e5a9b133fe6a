// The last-will frames: Stop, and Disconnect if the daemon has died, in the form that the car's mode requires. They are replaced
// before the car enters a mode that requires other frames.

extension CarMachine {
  /// Sets the last-will frames for the current and the next mode.
  mutating func renewWill(_ effects: inout Effects) {
    guard session.isUp, !session.isEnding else { return }
    let chosen = queue.commands.compactMap { if case .mode(let number) = $0.purpose { Optional(number) } else { nil } }
    let possible = chosen.map(Optional.some) + [modes.current]
    let variant: WillVariant =
      possible.contains { stopIsBroken(in: $0) }
      ? .needsMode : possible.contains { !CarModes.takesTilt(in: $0, options.dialect) } ? .insists : .usual
    guard variant != willVariant else { return }
    willVariant = variant
    func message(_ word: CarOutboundMessage, _ pause: Nanoseconds = CarSendQueue.stopInterval) -> LastWill.Message {
      LastWill.Message(word.frame(options.dialect), after: pause)
    }
    let first = message(.stop, 0)
    var more: [LastWill.Message] = (variant == .needsMode ? [.chosenMode(0), .stop, .stop] : [.stop, .stop]).map { message($0) }
    if variant == .insists { more += [300, 600, 900, 1000].map { message(.stop, $0 * .millisecond) } }
    effects.append(.lastWill(.main, LastWill(dead: [first] + more + [message(.disconnect)], frozen: [first] + more)))
  }

  /// The messages that stop the motors without waiting for responses.
  enum WillVariant {
    /// Stop is sufficient.
    case usual
    /// Stop requires another mode.
    case needsMode
    /// The car may discard a Stop together with a command that fails, so Stop is repeated for three seconds.
    case insists
  }
}
