// One activation of a speed mode. The limits are read, reduced, written and read again; the mode is active when the VESC reports the
// written limits. The VESC's own limits are stored first, so that the mode `full` can restore them, even after a restart of the daemon.
// If the VESC does not report the limits that were written last, it was switched off or reconfigured, and the reported limits are its own.
//
//   reading ── the limits already fit ──────────────────────────────┐
//      │ limits read                                                ▼
//      └─▶ storingLimits ──▶ writing ──▶ verifying ── within ──▶ active ──▶ storingMode
//
// The change fails if a request times out twice, if the VESC reports limits other than those requested, or if the VESC's own limits cannot
// be stored.

struct VESCModeChange: Sendable, Equatable {
  enum State: Sendable, Equatable {
    case reading(timeouts: Int)
    /// The VESC's own limits are being stored.
    case storingLimits(VESCLimits)
    case writing(VESCLimits, timeouts: Int)
    case verifying(VESCLimits, timeouts: Int)
    /// The mode is active; its name is being stored.
    case storingMode
  }

  /// What the change requires next.
  enum Action: Sendable, Equatable {
    /// Nothing: wait for the next response or store.
    case none
    /// No mode was selected: only the drivetrain was read.
    case completed
    /// Store these limits, and report when they are stored.
    case storeLimits(VESCStoredLimits)
    /// The VESC is in the mode, and reports these limits. `own`: its own limits; nil if they are already stored.
    case activated(VESCLimits, own: VESCLimits?)
    /// The VESC does not report the number of VESCs: assume one.
    case assumeOneVESC
    case failed(CommandError)
  }

  /// The name of the mode; empty if no mode is selected, and only the drivetrain of the board is read.
  let name: String
  /// The command that selected the mode; nil if the mode is reactivated without a command, or the caller has disconnected.
  private(set) var commandID: CommandID?
  private(set) var state = State.reading(timeouts: 0)

  init(_ name: String, commandID: CommandID?) { (self.name, self.commandID) = (name, commandID) }

  var isReading: Bool { if case .reading = state { true } else { false } }

  /// Whether the VESC may have limits other than those of the last mode.
  var hasWritten: Bool {
    switch state {
    case .writing, .verifying: true
    case .reading, .storingLimits, .storingMode: false
    }
  }

  /// The next request; nil while a store is pending. `needsCount`: the number of VESCs is unknown, and can be read.
  func request(needsCount: Bool) -> VESCCommand? {
    switch state {
    case .reading: !name.isEmpty && needsCount ? .setupValues : .limits
    case .writing: .setLimits
    case .verifying: .limits
    case .storingLimits, .storingMode: nil
    }
  }

  /// The limits to write; nil in other states.
  var target: VESCLimits? { if case .writing(let target, _) = state { target } else { nil } }

  mutating func callerDisconnected() { commandID = nil }

  /// Handles the limits that the VESC has reported. `mode`: nil to restore its own limits; `drivetrain`: the known part of the drivetrain.
  mutating func limitsReceived(
    _ limits: VESCLimits, mode: VESCMode?, storedLimits: VESCStoredLimits?, _ drivetrain: VESCDrivetrain
  ) -> Action {
    switch state {
    case .reading where name.isEmpty: return .completed
    case .reading:
      state = .reading(timeouts: 0)
      let own = storedLimits.flatMap { limits.isClose(to: $0.applied) ? $0.own : nil } ?? limits
      var target = own
      if let mode {
        if mode.speed != nil, drivetrain.metresPerElectricalRevolution == nil {
          let message = "the drivetrain of the board is unknown: set \(drivetrain.missing)"
          return .failed(.refused(code: .notConfigured, message))
        }
        let erpm = mode.speed.flatMap { speed in drivetrain.metresPerElectricalRevolution.map { speed / 3.6 / $0 * 60 } }
        target = own.reduced(current: mode.current, erpm: erpm)
      }
      if target.isClose(to: limits) { return .activated(limits, own: own) }
      state = .storingLimits(target)
      return .storeLimits(VESCStoredLimits(own: own, applied: target))
    case .verifying(let target, _):
      state = .verifying(target, timeouts: 0)
      guard limits.isWithin(target) else {
        return .failed(.refused(code: .rejected, "the VESC reports limits other than those set"))
      }
      return .activated(limits, own: nil)
    case .storingLimits, .writing, .storingMode: return .none
    }
  }

  mutating func limitsStored(_ failure: String?) -> Action {
    guard case .storingLimits(let target) = state else { return .none }
    if let failure { return .failed(.refused(code: .notStored, "cannot store the VESC's own limits: \(failure)")) }
    state = .writing(target, timeouts: 0)
    return .none
  }

  /// Handles the acknowledgement of written limits: they are read next, to verify them.
  mutating func writeAcknowledged() {
    if case .writing(let target, _) = state { state = .verifying(target, timeouts: 0) }
  }

  /// Notes that the mode is active and its name is being stored.
  mutating func activated() { state = .storingMode }

  /// Handles the timeout of a request of this change. `timeout` is the timeout of one request.
  mutating func timedOut(_ command: VESCCommand, timeout: Nanoseconds) -> Action {
    switch state {
    case .reading(0): state = .reading(timeouts: 1)
    case .writing(let target, 0): state = .writing(target, timeouts: 1)
    case .verifying(let target, 0): state = .verifying(target, timeouts: 1)
    case .reading where command == .setupValues:
      state = .reading(timeouts: 0)
      return .assumeOneVESC
    case .reading:
      let message = "the VESC does not report its limits: a mode requires firmware 5.02 or newer"
      return .failed(.refused(code: .notSupported, message))
    // Only the acknowledgement may be lost, so read the limits to check.
    case .writing: writeAcknowledged()
    case .verifying: return .failed(.timeout(milliseconds: Int(2 * timeout / .millisecond)))
    case .storingLimits, .storingMode: break
    }
    return .none
  }
}
