// The published state of the device.

enum VESCStatus: String {
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
  /// The data is invalid, or the selected speed mode is not active.
  case degraded

  init(_ session: VESCSession, isDriven: Bool, hasProblem: Bool) {
    self =
      switch session.contact {
      case _ where !session.isUp: .waiting
      case .lost(_, let isNoise): isNoise ? .degraded : .silent
      case .none: isDriven ? .driving : .starting
      case .established: isDriven ? .driving : hasProblem ? .degraded : .polling
      }
  }
}
