import Protocols
import Testing

@testable import vehicled

@Suite("Backoff") struct BackoffTests {
  /// A backoff at its maximum delay.
  private func atMaximum() -> Backoff {
    var backoff = Backoff()
    for _ in 0..<10 { _ = backoff.linkWentDown(at: 0) }
    return backoff
  }

  @Test func `delays double up to a minute`() {
    var backoff = Backoff()
    #expect((0..<8).map { _ in backoff.linkWentDown(at: 0) / .second } == [1, 2, 4, 8, 16, 32, 60, 60])
  }

  @Test(arguments: [(0, false), (9, false), (10, true), (20, true), (3600, true)])
  func `a stable link starts at the first delay`(_ seconds: Int64, _ startsOver: Bool) {
    var backoff = atMaximum()
    backoff.linkCameUp(at: 5 * .second)
    #expect(backoff.linkWentDown(at: (5 + seconds) * .second) == (startsOver ? 1 : 60) * .second)
    #expect(backoff.linkWentDown(at: 7200 * .second) == (startsOver ? 2 : 60) * .second, "it did not come up in between")
  }

  @Test(arguments: [(20, false), (29, false), (30, true)])
  func `a link that was reset must be stable for longer`(_ seconds: Int64, _ startsOver: Bool) {
    var backoff = atMaximum()
    backoff.linkCameUp(at: 0)
    #expect(backoff.linkWentDown(at: seconds * .second, wasReset: true) == (startsOver ? 1 : 60) * .second)
  }
}
