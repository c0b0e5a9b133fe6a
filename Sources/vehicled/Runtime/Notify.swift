// Notifications to systemd: ready, reloading, stopping, status. Source: sd_notify(3).

import CSystemd

enum Notify {
  /// Sends the assignments to systemd; does nothing without systemd.
  static func send(_ assignments: String) {
    sd_notify(0, assignments)
  }

  /// Sends a status. Line breaks become spaces, because they separate assignments.
  static func status(_ text: String) {
    send("STATUS=\(text.split(separator: "\n").joined(separator: " "))")
  }
}
