// The published state and fault of the device; changes only.

struct VESCStatus: Sendable {
  /// The states of the kind.
  private enum Word: String {
    /// There is no link.
    case waiting
    /// The VESC has not responded yet.
    case starting
    /// The VESC responds.
    case polling
    /// The VESC responds, and is driven.
    case driving
    /// The VESC does not respond.
    case silent
    /// The data is invalid, or the VESC does not execute its commands.
    case degraded
  }

  private var word: Word?
  private var fault: String?

  mutating func reportState(_ session: VESCSession, isDriven: Bool, hasProblem: Bool, _ effects: inout Effects) {
    let new: Word =
      switch session.contact {
      case _ where !session.isUp: .waiting
      case .lost(_, let isNoise): isNoise ? .degraded : .silent
      case .none: isDriven ? .driving : .starting
      case .established: isDriven ? .driving : hasProblem ? .degraded : .polling
      }
    guard word != new else { return }
    word = new
    effects.append(.status(new.rawValue))
  }

  mutating func reportFault(_ message: String?, _ effects: inout Effects) {
    guard fault != message else { return }
    fault = message
    effects.append(.fault(message))
  }
}
