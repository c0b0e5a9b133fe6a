// Elements that another thread produces: their order, the limit, and the end from both sides.

import ServiceRuntime
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct ReadAheadTests {
  /// Counts how many elements were produced.
  private final class Counter: Sendable {
    let count = Atomic(0)
    func next(of total: Int) -> Int? {
      let number = count.add(1, ordering: .relaxed).newValue
      return number <= total ? number : nil
    }
  }

  @Test(arguments: [1, 3, 100]) func `all elements arrive in order, then nil`(_ capacity: Int) {
    let counter = Counter()
    let numbers = ReadAhead(capacity: capacity, name: "test") { counter.next(of: 1000) }
    var found: [Int] = []
    while let number = numbers.next() { found.append(number) }
    #expect(found == Array(1...1000) && numbers.next() == nil)
    numbers.finish()
  }

  @Test func `the producer is at most the capacity ahead, and ends when the consumer does`() {
    let counter = Counter()
    let numbers = ReadAhead(capacity: 4, name: "test") { counter.next(of: .max) }
    for expected in 1...50 { #expect(numbers.next() == expected) }
    #expect(counter.count.load(ordering: .relaxed) <= 55)
    numbers.finish()
  }

  @Test func `there may be no element`() {
    let numbers = ReadAhead<Int>(capacity: 2, name: "test") { nil }
    #expect(numbers.next() == nil)
    numbers.finish()
  }
}
