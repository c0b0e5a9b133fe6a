// The watchdog of systemd: it restarts a daemon whose loop or worker threads hang. Facts: sd_watchdog_enabled(3).

import CSystemd
import Glibc
import Protocols

/// Sends systemd's watchdog keep-alives while the loop runs and each worker thread has answered since the last one.
@Loop final class Watchdog {
  private let interval: Nanoseconds
  private let disk: Disk
  private let http: HTTPClient
  /// The number of worker threads that have not answered yet.
  private var unanswered = 0
  private lazy var timer = Timer { [weak self] now in self?.keepAlive(now) }

  /// Starts the keep-alives; returns nil if systemd has enabled no watchdog.
  init?(disk: Disk, http: HTTPClient) {
    var microseconds: UInt64 = 0
    guard sd_watchdog_enabled(0, &microseconds) > 0, microseconds > 0 else { return nil }
    interval = Int64(clamping: microseconds) &* .microsecond / 3
    self.disk = disk
    self.http = http
    timer.set(Clock.monotonic())
  }

  private func keepAlive(_ now: Instant) {
    timer.set(now + interval)
    guard unanswered == 0 else { return }
    Notify.send("WATCHDOG=1")
    unanswered = 2
    disk.run({ () throws(ValueError) in }, then: { [weak self] _ in self?.unanswered -= 1 })
    http.answer { [weak self] in self?.unanswered -= 1 }
  }
}
