import Protocols
import Testing

@testable import vehicled

@Suite("Timers") @Loop struct TimersTests {
  @Test func `timers fire in order`() async {
    var fired: [Int] = []
    let start = Clock.monotonic()
    let timers = (0..<50).map { number in Timer { _ in fired.append(number) } }
    for (number, timer) in timers.enumerated().shuffled() { timer.set(start + Int64(number) * .millisecond) }
    #expect(await until { fired.count == 50 })
    #expect(fired == Array(0..<50))
  }

  @Test func `timers never fire early`() async {
    let moment = Clock.monotonic() + 20 * .millisecond
    var fired: Instant?
    let timer = Timer { fired = $0 }
    timer.set(moment)
    #expect(await until { fired != nil })
    #expect(fired.map { $0 >= moment } == true)
  }

  @Test func `a timer can be moved and stopped`() async {
    var fired: [String] = []
    let first = Timer { _ in fired.append("first") }
    let second = Timer { _ in fired.append("second") }
    let never = Timer { _ in fired.append("never") }
    let start = Clock.monotonic()
    first.set(start + 10 * .millisecond)
    never.set(start + 12 * .millisecond)
    second.set(start + 20 * .millisecond)
    first.set(start + 40 * .millisecond)
    never.set(nil)
    #expect(await until { fired.count == 2 })
    #expect(fired == ["second", "first"])
  }

  @Test func `a timer that is always due does not starve others`() async {
    var greedy = 0
    var other = false
    var timer: vehicled.Timer?
    let late = Timer { _ in other = true }
    timer = Timer { now in
      greedy += 1
      if greedy == 1 { late.set(now + 10 * .millisecond) }
      if !other { timer?.set(now - .second) }
    }
    timer?.set(0)
    #expect(await until { other })
    #expect(greedy > 1)
  }
}
