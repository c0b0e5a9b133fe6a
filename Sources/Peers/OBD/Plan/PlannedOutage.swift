// A time without a connection to the planned car.

import Protocols

public struct PlannedOutage: Sendable {
  public enum Cause: Sendable {
    /// The link is down, for this reason.
    case link(String)
    /// The computer has no power. Afterwards it starts again.
    case power
  }

  var cause: Cause
  /// The times since the start of the plan.
  var start: Nanoseconds
  var end: Nanoseconds
}
