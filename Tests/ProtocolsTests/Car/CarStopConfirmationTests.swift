import Testing

@testable import Protocols

/// Which response of the car confirms the last command.
@Suite struct CarStopConfirmationTests {
  @Test func `a response to an older request confirms nothing`() {
    var confirmation = CarStopConfirmation(unsolicited: 2)
    confirmation.requestSent(at: 0)
    #expect(confirmation.responseReceived(at: 1) == .nothing)
    // Two responses are expected before the command that the car may discard, and a third one after it.
    confirmation.expectLoss()
    confirmation.stopQueued()
    confirmation.requestSent(at: 2)
    #expect(confirmation.responseReceived(at: 3) == .nothing)
    #expect(confirmation.responseReceived(at: 4) == .nothing && !confirmation.isReliable)
    // The car accepts commands; Stop, which it may have discarded, is sent again, and confirmed by the next response.
    #expect(confirmation.responseReceived(at: 5) == .stopAgain && confirmation.isReliable && confirmation.awaitsStop)
    confirmation.requestSent(at: 6)
    #expect(confirmation.responseReceived(at: 7) == .stopConfirmed && confirmation == CarStopConfirmation())
  }

  @Test func `Stop is confirmed only by the response to a later request`() {
    var confirmation = CarStopConfirmation()
    confirmation.requestSent(at: 0)
    confirmation.stopQueued()
    #expect(confirmation.responseReceived(at: 1) == .nothing && confirmation.awaitsStop)
    confirmation.requestSent(at: 2)
    #expect(confirmation.responseReceived(at: 3) == .stopConfirmed && !confirmation.awaitsStop && confirmation.due == nil)
  }

  /// Stop, a request, and then a command after which the car may discard others: the response to the request still confirms Stop.
  @Test func `a Stop before an expected loss is confirmed by the response to its own request`() {
    var confirmation = CarStopConfirmation()
    confirmation.stopQueued()
    confirmation.requestSent(at: 0)
    confirmation.expectLoss()
    confirmation.requestSent(at: 1)
    #expect(confirmation.responseReceived(at: 2) == .stopConfirmed && !confirmation.isReliable && !confirmation.awaitsStop)
    #expect(confirmation.responseReceived(at: 3) == .nothing && confirmation.isReliable)
  }

  @Test func `after Continue no Stop is confirmed`() {
    var confirmation = CarStopConfirmation()
    confirmation.stopQueued()
    confirmation.requestSent(at: 0)
    confirmation.continueSent()
    #expect(confirmation.responseReceived(at: 1) == .nothing && confirmation == CarStopConfirmation())
  }

  @Test func `an unsolicited response confirms nothing`() {
    var confirmation = CarStopConfirmation()
    confirmation.expectLoss()
    #expect(confirmation.responseReceived(at: 1) == .nothing && !confirmation.isReliable)
    confirmation.requestSent(at: 2)
    #expect(confirmation.responseReceived(at: 3) == .nothing && confirmation.isReliable)
  }

  @Test func `lost responses are compensated by further requests`() {
    var confirmation = CarStopConfirmation()
    for time in 0..<20 { confirmation.requestSent(at: Instant(time)) }
    confirmation.expectLoss()
    confirmation.stopQueued()
    var (now, requests) = (Instant(100), 0)
    while !confirmation.isReliable || confirmation.awaitsStop, requests < 20 {
      confirmation.requestSent(at: now)
      confirmation.requestQueued()
      requests += 1
      _ = confirmation.responseReceived(at: now)
      now += .second
    }
    #expect(confirmation.isReliable && !confirmation.awaitsStop && requests <= 10)
  }

  @Test func `the interval of requests grows until a response arrives`() {
    var confirmation = CarStopConfirmation(unsolicited: 1)
    confirmation.expectLoss()
    confirmation.stopQueued()
    var (now, waits, troubles) = (Instant(0), [Int64](), [Bool]())
    for _ in 0..<6 {
      confirmation.requestSent(at: now)
      waits.append(((confirmation.due ?? now) - now) / .millisecond)
      troubles.append(confirmation.fault(isStandingStill: false) == "the car has not confirmed Stop: it may still be driving")
      now = confirmation.due ?? now
      confirmation.requestQueued()
    }
    #expect(waits == [300, 600, 1200, 2400, 4800, 5000] && troubles == [false, false, false, true, true, true])
    confirmation.requestSent(at: now)
    _ = confirmation.responseReceived(at: now)
    #expect(confirmation.due == now + 300 * .millisecond)
  }
}
