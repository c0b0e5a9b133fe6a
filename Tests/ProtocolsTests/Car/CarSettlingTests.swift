import Testing

@testable import Protocols

/// Which answer of the car means that it has heard what was said last.
@Suite struct CarSettlingTests {
  @Test func anAnswerToAnOlderQuestionCountsForNothing() {
    var settling = CarSettling(unasked: 2)
    settling.asked(at: 0)
    let greeting = settling.answered(at: 1)
    // Two are still under way when the car is told what it may stumble over, and a third is asked for behind that.
    settling.unsettle()
    settling.stop()
    settling.asked(at: 2)
    let first = settling.answered(at: 3)
    let second = settling.answered(at: 4)
    #expect(!greeting && !first && !second && !settling.isSettled)
    let third = settling.answered(at: 5)
    #expect(third && settling.isSettled && settling == CarSettling())
  }

  @Test func whatNobodyAskedForSettlesNothing() {
    var settling = CarSettling()
    settling.unsettle()
    _ = settling.answered(at: 1)
    #expect(!settling.isSettled)
    settling.asked(at: 2)
    _ = settling.answered(at: 3)
    #expect(settling.isSettled)
  }

  @Test func whatWasLostIsMadeUpForByMoreQuestions() {
    var settling = CarSettling()
    for time in 0..<20 { settling.asked(at: Instant(time)) }
    settling.unsettle()
    var (now, asked) = (Instant(100), 0)
    while !settling.isSettled, asked < 20 {
      settling.asked(at: now)
      settling.again()
      asked += 1
      _ = settling.answered(at: now)
      now += .second
    }
    #expect(settling.isSettled && asked <= 5)
  }

  @Test func itIsAskedOnMoreAndMoreSeldomAndAtOnceAgainWhenItSpeaks() {
    var settling = CarSettling(unasked: 1)
    settling.unsettle()
    var (now, waits) = (Instant(0), [Int64]())
    for _ in 0..<6 {
      settling.asked(at: now)
      waits.append(((settling.due ?? now) - now) / .millisecond)
      now = settling.due ?? now
      settling.again()
    }
    #expect(waits == [300, 600, 1200, 2400, 4800, 5000] && settling.trouble == nil)
    settling.asked(at: now)
    _ = settling.answered(at: now)
    #expect(settling.due == now + 300 * .millisecond)
  }
}
