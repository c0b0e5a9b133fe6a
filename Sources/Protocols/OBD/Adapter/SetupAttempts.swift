// Counts the failed setups of an adapter, and decides what to do next: another setup, another baud rate, or a reset of the link.

struct SetupAttempts: Sendable {
  private static let maxFailures = 3

  private(set) var baudRate: BaudRate
  /// Consecutive failed setups.
  private(set) var failures = 0

  init(link: String) { baudRate = BaudRate(of: link) }

  mutating func restore(_ stored: [UInt8]?) { baudRate.restore(stored) }

  mutating func linkCameUp(baud: Int?, _ effects: inout Effects) {
    if let baud = baudRate.linkCameUp(at: baud) { effects.append(.setBaud(.main, baud)) }
    failures = 0
  }

  /// The timeout for a reply.
  var timeout: Nanoseconds { baudRate.timeout }
  /// The error message after all rates have failed; nil if none was tried, or one worked.
  var allRatesFailedMessage: String? { baudRate.allFailedMessage }

  /// Handles a readable banner, which confirms the baud rate.
  mutating func bannerReceived(_ effects: inout Effects) {
    if let stored = baudRate.bannerReceived() { effects.append(.store(key: BaudRate.key, stored)) }
  }

  /// Resets the count: the adapter is set up and addressed, or the failure was due to an unsupported command.
  mutating func reset() { failures = 0 }

  /// Switches to the next baud rate on the same link. Returns false if there is none.
  mutating func tryNextBaudRate(_ effects: inout Effects) -> Bool {
    guard let baud = baudRate.tryNext() else { return false }
    effects.append(.note("no adapter found yet: trying \(baud) baud"))
    effects.append(.setBaud(.main, baud))
    failures = 0
    return true
  }

  /// Counts a failed setup, and returns what to do next. `isSilent`: the adapter did not reply.
  mutating func recordFailure(
    _ reason: String, isSilent: Bool, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> AdapterEvent {
    failures += 1
    if failures >= (isSilent && baudRate.isUntested ? 1 : Self.maxFailures) { return .needs(.giveUp(reason)) }
    // Bytes sent at another baud rate may have reached the adapter as the beginning of this command.
    if baudRate.isUntested { return .needs(.setUp(fault: nil)) }
    // After an unreadable reply, wait for the rest of the output. After a timeout, there is none.
    if !isSilent { return .needs(.rest(until: now &+ .second, reason)) }
    // Keep the message that all baud rates have failed, if there is one.
    if values.fault == nil || !baudRate.canChange { values.publish(fault: reason, &effects) }
    return .needs(.setUp(fault: nil))
  }
}
