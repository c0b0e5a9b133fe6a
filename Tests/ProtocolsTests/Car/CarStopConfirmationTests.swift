import Testing

@testable import Protocols

/// Which answer of the car means that it has heard what was said last.
@Suite struct CarStopConfirmationTests {
  @Test func anAnswerToAnOlderQuestionCountsForNothing() {
    var confirmation = CarStopConfirmation(unsolicited: 2)
    confirmation.requested(at: 0)
    #expect(confirmation.answered(at: 1) == .nothing)
    // Two are still under way when the car is told what it may stumble over, and a third is asked for behind that.
    confirmation.expectLoss()
    confirmation.stopped()
    confirmation.requested(at: 2)
    #expect([confirmation.answered(at: 3), confirmation.answered(at: 4)] == [.nothing, .nothing] && !confirmation.isReliable)
    // It hears; the Stop that it may have forgotten is said again, and confirmed by the answer behind that.
    #expect(confirmation.answered(at: 5) == .stopAgain && confirmation.isReliable && confirmation.awaitsStop)
    confirmation.requested(at: 6)
    #expect(confirmation.answered(at: 7) == .stopConfirmed && confirmation == CarStopConfirmation())
  }

  @Test func aStopIsConfirmedByTheAnswerBehindItAlone() {
    var confirmation = CarStopConfirmation()
    confirmation.requested(at: 0)
    confirmation.stopped()
    #expect(confirmation.answered(at: 1) == .nothing && confirmation.awaitsStop)
    confirmation.requested(at: 2)
    #expect(confirmation.answered(at: 3) == .stopConfirmed && !confirmation.awaitsStop && confirmation.due == nil)
  }

  /// Stop, a question, and then a word behind which the car may forget: the answer to that question still confirms Stop.
  @Test func aStopBeforeTheDoubtIsConfirmedByItsOwnAnswer() {
    var confirmation = CarStopConfirmation()
    confirmation.stopped()
    confirmation.requested(at: 0)
    confirmation.expectLoss()
    confirmation.requested(at: 1)
    #expect(confirmation.answered(at: 2) == .stopConfirmed && !confirmation.isReliable && !confirmation.awaitsStop)
    #expect(confirmation.answered(at: 3) == .nothing && confirmation.isReliable)
  }

  @Test func behindContinueNoStopIsConfirmed() {
    var confirmation = CarStopConfirmation()
    confirmation.stopped()
    confirmation.requested(at: 0)
    confirmation.continued()
    #expect(confirmation.answered(at: 1) == .nothing && confirmation == CarStopConfirmation())
  }

  @Test func whatNobodyAskedForSettlesNothing() {
    var confirmation = CarStopConfirmation()
    confirmation.expectLoss()
    #expect(confirmation.answered(at: 1) == .nothing && !confirmation.isReliable)
    confirmation.requested(at: 2)
    #expect(confirmation.answered(at: 3) == .nothing && confirmation.isReliable)
  }

  @Test func whatWasLostIsMadeUpForByMoreQuestions() {
    var confirmation = CarStopConfirmation()
    for time in 0..<20 { confirmation.requested(at: Instant(time)) }
    confirmation.expectLoss()
    confirmation.stopped()
    var (now, asked) = (Instant(100), 0)
    while !confirmation.isReliable || confirmation.awaitsStop, asked < 20 {
      confirmation.requested(at: now)
      confirmation.requestQueued()
      asked += 1
      _ = confirmation.answered(at: now)
      now += .second
    }
    #expect(confirmation.isReliable && !confirmation.awaitsStop && asked <= 10)
  }

  @Test func itIsAskedOnMoreAndMoreSeldomAndAtOnceAgainWhenItSpeaks() {
    var confirmation = CarStopConfirmation(unsolicited: 1)
    confirmation.expectLoss()
    confirmation.stopped()
    var (now, waits, troubles) = (Instant(0), [Int64](), [Bool]())
    for _ in 0..<6 {
      confirmation.requested(at: now)
      waits.append(((confirmation.due ?? now) - now) / .millisecond)
      troubles.append(confirmation.fault(isStandingStill: false) == "the car has not confirmed Stop: it may still be driving")
      now = confirmation.due ?? now
      confirmation.requestQueued()
    }
    #expect(waits == [300, 600, 1200, 2400, 4800, 5000] && troubles == [false, false, false, true, true, true])
    confirmation.requested(at: now)
    _ = confirmation.answered(at: now)
    #expect(confirmation.due == now + 300 * .millisecond)
  }
}
