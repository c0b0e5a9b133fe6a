// Notifications to systemd: ready, reloading, stopping, status, and the keep-alives of its watchdog, which restarts a program whose loop
// hangs. Source: sd_notify(3), sd_watchdog_enabled(3).

import CSystemd
import Glibc
import Protocols

public enum Notify {
  /// The maximum time to wait for systemd to read its socket when a change of state is sent, in microseconds. A change must not be lost:
  /// systemd ends a service that does not report its start. Status messages and keep-alives are repeated anyway, so they do not wait.
  private static let timeout = 100_000

  /// Sends the assignments to systemd; does nothing without systemd.
  public static func send(_ assignments: String) {
    guard let path = getenv("NOTIFY_SOCKET") else { return }
    _ = send(assignments, to: String(cString: path))
  }

  /// Sends the assignments to this socket. Returns 0 or the error code.
  static func send(_ assignments: String, to path: String) -> CInt {
    let isRepeated = assignments.hasPrefix("STATUS=") || assignments.hasPrefix("WATCHDOG=")
    let socket = DatagramSocket(timeout: isRepeated ? 0 : timeout)
    defer { socket.close() }
    return socket.send(assignments, to: path)
  }

  /// Sends a status. Line breaks become spaces, because they separate assignments.
  public static func status(_ text: String) {
    send("STATUS=\(text.split(separator: "\n").joined(separator: " "))")
  }

  /// The interval of keep-alives, a third of the time after which systemd's watchdog acts; nil if the watchdog is disabled.
  public static var watchdogInterval: Nanoseconds? {
    var microseconds: UInt64 = 0
    guard sd_watchdog_enabled(0, &microseconds) > 0, microseconds > 0 else { return nil }
    return Int64(clamping: microseconds) &* .microsecond / 3
  }
}

extension EventLoop {
  /// Notifies systemd that the program is ready, sends keep-alives while the loop runs, and reports the end of `run`.
  public func runAsService() throws(ValueError) {
    try runAsService(watchdogInterval: Notify.watchdogInterval, send: Notify.send)
  }

  func runAsService(watchdogInterval: Nanoseconds?, send: @escaping (String) -> Void) throws(ValueError) {
    let keepAlive = watchdogInterval.map { KeepAlive(interval: $0, send: send) }
    if let keepAlive { add(keepAlive) }
    send("READY=1")
    defer {
      keepAlive?.isClosed = true
      send("STOPPING=1")
    }
    try run()
  }
}

private final class KeepAlive: EventSource {
  private let interval: Nanoseconds
  private let send: (String) -> Void

  init(interval: Nanoseconds, send: @escaping (String) -> Void) {
    (self.interval, self.send) = (interval, send)
    super.init()
    wake = SystemClock.monotonic
  }

  override func timerFired(at now: Instant) {
    send("WATCHDOG=1")
    wake = now + interval
  }
}
