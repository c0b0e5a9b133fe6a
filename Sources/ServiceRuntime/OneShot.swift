// A closure that the loop runs once, after a delay.

import Protocols

public final class OneShot: EventSource {
  private let body: () -> Void

  /// Runs `body` on the loop after `delay`.
  @discardableResult
  public init(after delay: Nanoseconds, loop: EventLoop, _ body: @escaping () -> Void) {
    self.body = body
    super.init()
    wake = SystemClock.monotonic + delay
    loop.add(self)
  }

  public override func timerFired(at now: Instant) {
    isClosed = true
    body()
  }
}
