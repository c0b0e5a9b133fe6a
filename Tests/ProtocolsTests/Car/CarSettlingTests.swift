import Testing

@testable import Protocols

/// Which answer of the car means that it has heard what was said last.
@Suite struct CarSettlingTests {
  @Test func anAnswerToAnOlderQuestionCountsForNothing() {
    var settling = CarSettling(unasked: 2)
    settling.asked(at: 0)
    #expect(settling.answered(at: 1) == .nothing)
    // Two are still under way when the car is told what it may stumble over, and a third is asked for behind that.
    settling.unsettle()
    settling.stopped()
    settling.asked(at: 2)
    #expect([settling.answered(at: 3), settling.answered(at: 4)] == [.nothing, .nothing] && !settling.isSettled)
    // It hears; the Stop that it may have forgotten is said again, and confirmed by the answer behind that.
    #expect(settling.answered(at: 5) == .stopAgain && settling.isSettled && settling.owesStop)
    settling.asked(at: 6)
    #expect(settling.answered(at: 7) == .stopConfirmed && settling == CarSettling())
  }

  @Test func aStopIsConfirmedByTheAnswerBehindItAlone() {
    var settling = CarSettling()
    settling.asked(at: 0)
    settling.stopped()
    #expect(settling.answered(at: 1) == .nothing && settling.owesStop)
    settling.asked(at: 2)
    #expect(settling.answered(at: 3) == .stopConfirmed && !settling.owesStop && settling.due == nil)
  }

  /// Stop, a question, and then a word behind which the car may forget: the answer to that question still confirms Stop.
  @Test func aStopBeforeTheDoubtIsConfirmedByItsOwnAnswer() {
    var settling = CarSettling()
    settling.stopped()
    settling.asked(at: 0)
    settling.unsettle()
    settling.asked(at: 1)
    #expect(settling.answered(at: 2) == .stopConfirmed && !settling.isSettled && !settling.owesStop)
    #expect(settling.answered(at: 3) == .nothing && settling.isSettled)
  }

  @Test func behindContinueNoStopIsConfirmed() {
    var settling = CarSettling()
    settling.stopped()
    settling.asked(at: 0)
    settling.proceeds()
    #expect(settling.answered(at: 1) == .nothing && settling == CarSettling())
  }

  @Test func whatNobodyAskedForSettlesNothing() {
    var settling = CarSettling()
    settling.unsettle()
    #expect(settling.answered(at: 1) == .nothing && !settling.isSettled)
    settling.asked(at: 2)
    #expect(settling.answered(at: 3) == .nothing && settling.isSettled)
  }

  @Test func whatWasLostIsMadeUpForByMoreQuestions() {
    var settling = CarSettling()
    for time in 0..<20 { settling.asked(at: Instant(time)) }
    settling.unsettle()
    settling.stopped()
    var (now, asked) = (Instant(100), 0)
    while !settling.isSettled || settling.owesStop, asked < 20 {
      settling.asked(at: now)
      settling.again()
      asked += 1
      _ = settling.answered(at: now)
      now += .second
    }
    #expect(settling.isSettled && !settling.owesStop && asked <= 10)
  }

  @Test func itIsAskedOnMoreAndMoreSeldomAndAtOnceAgainWhenItSpeaks() {
    var settling = CarSettling(unasked: 1)
    settling.unsettle()
    settling.stopped()
    var (now, waits, troubles) = (Instant(0), [Int64](), [Bool]())
    for _ in 0..<6 {
      settling.asked(at: now)
      waits.append(((settling.due ?? now) - now) / .millisecond)
      troubles.append(settling.trouble(stands: false) == "the car has not confirmed Stop: it may still be driving")
      now = settling.due ?? now
      settling.again()
    }
    #expect(waits == [300, 600, 1200, 2400, 4800, 5000] && troubles == [false, false, false, true, true, true])
    settling.asked(at: now)
    _ = settling.answered(at: now)
    #expect(settling.due == now + 300 * .millisecond)
  }
}
