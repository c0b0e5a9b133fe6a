// What another process says over the link should this one die or freeze: Stop, and for the dead also Disconnect, in the words
// that the car's mode needs. It is renewed before the car is in a mode where others stop it, never behind.

extension CarMachine {
  /// Says what is to be said should the daemon die; renewed before the car is in a mode where other words stop it.
  mutating func renewWill(_ effects: inout Effects) {
    guard isUp, !isEnding else { return }
    let isChosen = outbox.errands.contains { if case .mode(let number) = $0.purpose { stopIsBroken(in: number) } else { false } }
    let needsMode = isChosen || stopIsBroken(in: modes.current)
    guard needsMode != willNeedsMode else { return }
    willNeedsMode = needsMode
    func message(_ word: CarWord, _ pause: Nanoseconds = CarOutbox.stopInterval) -> Will.Message {
      Will.Message(word.frame(options.dialect), after: pause)
    }
    let first = message(.stop, 0)
    let more: [CarWord] = needsMode ? [.chosenMode(0), .stop, .stop] : [.stop, .stop]
    effects.append(
      .will(
        .main,
        Will(
          dead: [first] + more.dropLast().map { message($0) } + [message(.disconnect)], frozen: [first] + more.map { message($0) })))
  }
}
