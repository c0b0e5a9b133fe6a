// What the other components require of the adapter session, and what the session requires of its owner.

/// What must be done with the adapter next.
enum AdapterAction: Sendable {
  case none
  /// Another reply may follow an unusable one.
  case resynchronise
  /// Count this failure, and react if it is repeated.
  case count(AdapterFailure)
  /// Reinitialise the adapter, which has lost its settings or rejects them, and publish this fault.
  case setUp(fault: String?)
  /// Reinitialise the adapter, because its echo is on again.
  case restoreEcho
  /// Send nothing until this time, for this reason.
  case rest(until: Instant, String)
  case identifyProtocol
  /// Polling pauses until this time: the adapter may sleep.
  case enterLowPower(until: Instant)
  /// Try the next baud rate, or reset the link for this reason: the setup has failed repeatedly.
  case giveUp(String)

  /// The time that an adapter needs to fall asleep.
  private static let sleepDelay: Nanoseconds = 3 * .second

  /// The action after a status that shows that the adapter has lost its settings or is about to lose them.
  static func settingsLost(_ status: ELMStatus, at now: Instant) -> AdapterAction {
    status.consequence == .wake ? .rest(until: now &+ sleepDelay, status.message) : .setUp(fault: status.message)
  }
}
