// What systemd is told: ready, reloading, stopping, a line of status, and that the watchdog need not bite.

import CSystemd
import Glibc
import Protocols

enum Notify {
  /// Sends the assignments to systemd; does nothing outside it.
  static func send(_ assignments: String) {
    sd_notify(0, assignments)
  }

  /// Protects the line breaks of the protocol.
  static func status(_ text: String) {
    send("STATUS=\(text.split(separator: "\n").joined(separator: " "))")
  }
}

/// Feeds systemd's watchdog, but only while the loop turns and every thread beside it has answered since the last feed.
@Loop final class Watchdog {
  private let interval: Nanoseconds
  private let disk: Disk
  private let http: HTTPClient
  /// Of the threads that were asked, how many have yet to answer.
  private var unanswered = 0
  private lazy var timer = Timer { [weak self] now in self?.feed(now) }

  /// Begins to feed, or returns nil where systemd wants no feeding.
  init?(disk: Disk, http: HTTPClient) {
    var microseconds: UInt64 = 0
    guard sd_watchdog_enabled(0, &microseconds) > 0, microseconds > 0 else { return nil }
    interval = Int64(clamping: microseconds) &* .microsecond / 3
    self.disk = disk
    self.http = http
    timer.set(Clock.monotonic())
  }

  private func feed(_ now: Instant) {
    timer.set(now + interval)
    guard unanswered == 0 else { return }
    Notify.send("WATCHDOG=1")
    unanswered = 2
    disk.run({ () throws(ValueError) in }, then: { [weak self] _ in self?.unanswered -= 1 })
    http.answer { [weak self] in self?.unanswered -= 1 }
  }
}
