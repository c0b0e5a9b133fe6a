// Activation of a speed mode: the limits are read, reduced, written and read again, and the mode is active once the VESC reports them.
// Its own limits are stored before others are written, so that `full` can restore them, even after a restart of the daemon. They are
// read again if the VESC does not report the limits that were written last: it was switched off, or set up again. A VESC keeps written
// limits only until it is switched off, so the mode is written again whenever it starts to respond.

struct VESCModeChange: Sendable, Equatable {
  enum Step: Sendable, Equatable {
    case read
    /// The limits are being stored.
    case keep
    case write
    case verify
    /// The mode's name is being stored.
    case remember

    var isQuestion: Bool { self == .read || self == .write || self == .verify }
  }

  var name: String
  /// nil: no command; the stored mode is activated again.
  var id: CommandID?
  var step = Step.read
  var target: VESCLimits?
  var misses = 0
}

/// The known limits of the VESC.
struct VESCLimitsKept: Sendable {
  /// The stored limits.
  var memory: VESCLimitsMemory?
  /// The mode that was selected last, if any.
  var chosen: String?
  /// The mode that the VESC was last verified to be in.
  var inForce: String?
  /// The number of VESCs of the board; nil: unknown.
  var vescs: Int?
  /// Commands that selected a mode without a VESC, and wait for the store.
  var pending: [CommandID] = []
}

extension VESCMachine {
  mutating func wishMode(_ value: Value, for id: CommandID, _ effects: inout Effects) {
    guard case .string(let name) = value, schema.properties[VESCSignal.mode.rawValue].choices.contains(name) else {
      return effects.append(.complete(id, .failure(.invalid(argument: "value", "\(value.text) is not a mode of this board"))))
    }
    if reasonNotToAsk == nil { return wish(.mode(VESCModeChange(name: name, id: id)), &effects) }
    guard limits.pending.count < VESCWish.limit else {
      return effects.append(.complete(id, .failure(.refused(code: "busy", "too many queued commands: try again later"))))
    }
    limits.chosen = name
    limits.pending.append(id)
    effects.append(.store(key: "mode", Array(name.utf8)))
    sayMode(&effects)
  }

  /// The VESC responds: the selected mode is activated, and its geometry is read.
  mutating func beginMode(_ effects: inout Effects) {
    limits.inForce = nil
    modeTrouble = nil
    wishes.removeAll { if case .mode(let change) = $0 { change.id == nil && change.step == .read } else { false } }
    // An unfinished change is finished first.
    let isBusy = if case .mode(let change)? = wishes.first { change.step != .read } else { false }
    wishes.insert(.mode(VESCModeChange(name: limits.chosen ?? "", id: nil)), at: isBusy ? 1 : 0)
    sayMode(&effects)
  }

  var setLimitsFrame: [UInt8]? {
    guard case .mode(let change)? = wishes.first, let target = change.target else { return nil }
    // With reduced limits on only one of two motors the board would turn, so the VESC forwards them, as in VESC Tool. A VESC that is
    // configured by its CAN ID is limited alone.
    let passedOn = options.can == nil && limits.vescs ?? 1 > 1
    return VESCCommand.setLimits.frame(target.command(passedOn: passedOn), can: options.can)
  }

  /// The next request of a mode change.
  func question(of change: VESCModeChange) -> VESCCommand? {
    switch change.step {
    case .read: !change.name.isEmpty && limits.vescs == nil && talk.setup != .lacking ? .setup : .limits
    case .write: .setLimits
    case .verify: .limits
    case .keep, .remember: nil
    }
  }

  mutating func stored(_ key: String, _ failure: String?, _ effects: inout Effects) {
    switch key {
    case "limits": limitsKept(failure, &effects)
    case "odometer": odometer.stored(key, failure, &publisher, &effects)
    case "mode":
      let refusal = failure.map { CommandError.refused(code: "not-stored", "cannot store the mode: \($0)") }
      let text = "pending: set when the VESC responds"
      for id in limits.pending { effects.append(.complete(id, refusal.map { .failure($0) } ?? .success(Report(text: text)))) }
      limits.pending.removeAll()
      if case .mode(let change)? = wishes.first, change.step == .remember {
        finishWish(refusal.map { .failure($0) } ?? .success(Report()), &effects)
      }
    default: break
    }
  }

  mutating func sayMode(_ effects: inout Effects) {
    if let mode = limits.inForce, !mode.isEmpty { return publisher.publish(.mode, .string(mode), &effects) }
    let message = limits.chosen.map { modeTrouble ?? "\($0) is pending: set when the VESC responds" } ?? "not set"
    publisher.withdraw(.mode, message, &effects)
  }
}
