// The attempts to set up an adapter: after a failure the next one follows, at another baud rate if that is not known, and finally the link is
// reset.

struct SetupAttempts: Sendable {
  private static let maxFailures = 3

  private(set) var line: LineSpeed
  /// Consecutive failed setups.
  private(set) var failures = 0

  init(link: String) { line = LineSpeed(of: link) }

  mutating func restore(_ stored: [UInt8]?) { line.restore(stored) }

  mutating func linkCameUp(baud: Int?, _ effects: inout Effects) {
    if let baud = line.lineCameUp(at: baud) { effects.append(.setBaud(.main, baud)) }
    failures = 0
  }

  /// The timeout for a reply.
  var timeout: Nanoseconds { line.timeout }
  /// The error if no rate is left; nil: none was tried.
  var speedMessage: String? { line.message }

  /// The adapter has sent a readable banner.
  mutating func answered(_ effects: inout Effects) {
    if let stored = line.answered() { effects.append(.store(key: LineSpeed.key, stored)) }
  }

  /// The adapter is set up and addressed; or a command turned out to be unsupported, which does not count as a failure.
  mutating func reset() { failures = 0 }

  /// Switches to the next rate on the same link. Returns false if there is none.
  mutating func nextSpeed(_ effects: inout Effects) -> Bool {
    guard let baud = line.next() else { return false }
    effects.append(.note("no adapter found yet: trying \(baud) baud"))
    effects.append(.setBaud(.main, baud))
    failures = 0
    return true
  }

  /// A setup has failed: what follows.
  mutating func failed(
    _ reason: String, isSilent: Bool, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> AdapterEvent {
    failures += 1
    if failures >= (isSilent && line.isGuess ? 1 : Self.maxFailures) { return .gaveUp(reason) }
    // The adapter may have taken bytes at another speed for the beginning of this command.
    if line.isGuess { return .needsSetup }
    // After unreadable replies the rest of a start may follow, so wait; a timeout has waited already.
    if !isSilent { return .needsRest(until: now &+ .second, reason) }
    // If all speeds have failed before, keep that message.
    if values.fault == nil || !line.isOurs { values.publish(fault: reason, &effects) }
    return .needsSetup
  }
}
