// Keep-alives for systemd's watchdog, which restarts a daemon whose loop or worker threads hang. Source: sd_watchdog_enabled(3).

import Protocols
import ServiceRuntime

/// Sends a keep-alive in every interval in which the loop runs and the disk and HTTP threads have responded to the previous check.
@Loop final class Watchdog {
  private let interval: Nanoseconds
  private let disk: Disk
  private let http: HTTPClient
  /// The number of worker threads that have not responded to the last check.
  private var pendingReplies = 0
  private lazy var timer = Timer { [weak self] now in self?.keepAlive(now) }

  /// Starts the keep-alives; returns nil if systemd has not enabled its watchdog.
  init?(disk: Disk, http: HTTPClient) {
    guard let interval = Notify.watchdogInterval else { return nil }
    self.interval = interval
    self.disk = disk
    self.http = http
    timer.set(Clock.monotonic())
  }

  private func keepAlive(_ now: Instant) {
    timer.set(now + interval)
    guard pendingReplies == 0 else { return }
    Notify.send("WATCHDOG=1")
    pendingReplies = 2
    disk.run({ () throws(ValueError) in }, then: { [weak self] _ in self?.pendingReplies -= 1 })
    http.ping { [weak self] in self?.pendingReplies -= 1 }
  }
}
