// The actions on the adapter that the other components or the adapter session itself require.

/// What must be done with the adapter next.
enum AdapterAction: Sendable {
  case none
  /// Resynchronise, because another reply may follow an unusable one.
  case resynchronise
  /// Count this failure, and react if it is repeated.
  case count(AdapterFailure)
  /// Reinitialise the adapter, which has lost its settings or rejects them, and publish this fault, if any.
  case setUp(fault: String?)
  /// Reinitialise the adapter, because its echo is on again.
  case restoreEcho
  /// Send nothing until this time, for this reason.
  case rest(until: Instant, String)
  case identifyProtocol
  /// Let the adapter sleep until this time, because polling pauses.
  case enterLowPower(until: Instant)
  /// Try the next baud rate, or reset the link for this reason: the setup has failed repeatedly.
  case giveUp(String)

  /// The time that an adapter needs to fall asleep.
  private static let sleepDelay: Nanoseconds = 3 * .second

  /// The action after a status of an adapter that has lost its settings or is about to lose them.
  static func settingsLost(_ status: ELMStatus, at now: Instant) -> AdapterAction {
    status.consequence == .wake ? .rest(until: now &+ sleepDelay, status.message) : .setUp(fault: status.message)
  }
}
