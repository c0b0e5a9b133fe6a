// The state word and the fault of the device. Only changes are published.

struct CarCondition: Sendable {
  private var word = ""
  private var fault: String?

  mutating func publish(_ word: String, fault: String?, _ effects: inout Effects) {
    if word != self.word { effects.append(.status(word)) }
    if fault != self.fault { effects.append(.fault(fault)) }
    (self.word, self.fault) = (word, fault)
  }
}
