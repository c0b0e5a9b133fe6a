// What another process says over the link should this one die or freeze: Stop, and for the dead also Disconnect, in the words
// that the car's mode needs. It is renewed before the car is in a mode where others stop it, never behind.

extension CarMachine {
  /// Says what is to be said should the daemon die; renewed before the car is in a mode where other words stop it.
  mutating func renewWill(_ effects: inout Effects) {
    guard isUp, !isEnding else { return }
    let chosen = outbox.errands.compactMap { if case .mode(let number) = $0.purpose { Optional(number) } else { nil } }
    let possible = chosen.map(Optional.some) + [modes.current]
    let manner: WillManner =
      possible.contains { stopIsBroken(in: $0) }
      ? .needsMode : possible.contains { !CarModes.takesTilt(in: $0, options.dialect) } ? .insists : .usual
    guard manner != willManner else { return }
    willManner = manner
    func message(_ word: CarWord, _ pause: Nanoseconds = CarOutbox.stopInterval) -> Will.Message {
      Will.Message(word.frame(options.dialect), after: pause)
    }
    let first = message(.stop, 0)
    var more: [Will.Message] = (manner == .needsMode ? [.chosenMode(0), .stop, .stop] : [.stop, .stop]).map { message($0) }
    if manner == .insists { more += [300, 600, 900, 1000].map { message(.stop, $0 * .millisecond) } }
    effects.append(.will(.main, Will(dead: [first] + more + [message(.disconnect)], frozen: [first] + more)))
  }

  /// How the motors are stopped by one who cannot listen.
  enum WillManner {
    /// With Stop.
    case usual
    /// Stop needs another mode.
    case needsMode
    /// The car may forget one Stop and the next with what it stumbles over: they are said for three seconds.
    case insists
  }
}
