// Detects with rtnetlink(7) that the network may have come back. Without permission to open a netlink socket, links wait for their
// next scheduled attempt.

import CLinux
import Glibc
import Logging
import Protocols
import ServiceRuntime

@Loop final class NetworkWatcher {
  static let shared = NetworkWatcher()

  private var clients: [ObjectIdentifier: @Loop () -> Void] = [:]
  private var changes = NetworkChanges()
  private var source: KernelEventReader?
  private var hasFailed = false
  private let open: @Loop () -> CInt
  private lazy var timer = Timer { [weak self] _ in self?.clients.values.forEach { $0() } }

  /// The delay before clients are notified: when the network comes back, several messages follow (interface, address, routes).
  private static let delay: Nanoseconds = 100 * .millisecond

  /// `open` returns a netlink socket, or -errno.
  init(open: @escaping @Loop () -> CInt = { clinux_network_changes() }) { self.open = open }

  /// Calls `changed` in a later turn whenever the network may have come back, until `stop`.
  func watch(for client: AnyObject, _ changed: @escaping @Loop () -> Void) {
    clients[ObjectIdentifier(client)] = changed
    guard source == nil, !hasFailed else { return }
    let descriptor = open()
    if descriptor >= 0 {
      source = KernelEventReader(descriptor) { [weak self] in self?.received($0) }
    } else {
      hasFailed = true
      Logger(label: "vehicled").warning(
        "cannot watch the network: \(errnoMessage(-descriptor)); links reconnect only after their delay")
    }
  }

  func stop(for client: AnyObject) { clients[ObjectIdentifier(client)] = nil }

  private func received(_ bytes: [UInt8]) {
    guard changes.process(bytes), !clients.isEmpty, !timer.isSet else { return }
    timer.set(Clock.monotonic() + Self.delay)
  }
}
