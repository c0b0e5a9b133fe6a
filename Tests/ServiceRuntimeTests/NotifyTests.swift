// The notifications of a service to systemd.

import Glibc
import Protocols
import Testing

@testable import ServiceRuntime

@Suite struct NotifyTests {
  /// What a service sends until `count` messages are sent or the loop has turned for a while.
  private func sent(watchdogInterval: Nanoseconds?, count: Int) throws -> [String] {
    let loop = try EventLoop(handlesSignals: false)
    var sent: [String] = []
    let end = Countdown { loop.stop() }
    loop.add(end)
    try loop.runAsService(watchdogInterval: watchdogInterval) {
      sent.append($0)
      if sent.count == count { loop.stop() }
    }
    return sent
  }

  private final class Countdown: EventSource {
    private let finish: () -> Void
    private var turns = 0

    init(_ finish: @escaping () -> Void) {
      self.finish = finish
      super.init()
      wake = 0
    }

    override func timerFired(at now: Instant) {
      turns += 1
      if turns == 1000 { finish() }
    }
  }

  @Test func `a service reports its start, keep-alives and its end`() throws {
    #expect(try sent(watchdogInterval: 1000, count: 4) == ["READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1", "STOPPING=1"])
  }

  @Test func `without a watchdog there are no keep-alives`() throws {
    #expect(try sent(watchdogInterval: nil, count: 10) == ["READY=1", "STOPPING=1"])
  }

  @Test(arguments: [false, true]) func `a systemd that does not read its socket blocks no service`(isAbstract: Bool) throws {
    let directory = try Directory()
    let path = isAbstract ? "@\(directory.socket)" : directory.socket
    #expect(Notify.send("READY=1", to: path) == (isAbstract ? ECONNREFUSED : ENOENT))
    let systemd = try Receiver(at: path)
    #expect(Notify.send("READY=1", to: path) == 0 && systemd.next() == "READY=1")
    while Notify.send("WATCHDOG=1", to: path) == 0 {}
    for assignments in ["WATCHDOG=1", "STATUS=idle", "STOPPING=1"] { #expect(Notify.send(assignments, to: path) == EAGAIN) }
    systemd.close()
    #expect(Notify.send("STOPPING=1", to: path) == ECONNREFUSED)
    #expect(Notify.send("READY=1", to: String(repeating: "x", count: 200)) == ENAMETOOLONG)
  }
}
