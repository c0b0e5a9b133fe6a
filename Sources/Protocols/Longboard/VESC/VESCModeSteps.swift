// The steps of a mode change, each after the response to the previous one: read and reduce, store, write, verify.

extension VESCMachine {
  mutating func limitsAnswered(_ board: VESCBoard, _ effects: inout Effects) {
    guard case .mode(var change)? = wishes.first else { return }
    change.misses = 0
    switch change.step {
    case .read where change.name.isEmpty: wishes.removeFirst()
    case .read: aim(change, board, &effects)
    case .verify:
      guard let target = change.target, board.limits.isWithin(target) else {
        return fail(change, .refused(code: "rejected", "the VESC reports other limits than were set"), &effects)
      }
      if let memory = limits.memory, change.name != VESCMode.full, !memory.applied.isClose(to: board.limits) {
        keep(VESCLimitsMemory(own: memory.own, applied: board.limits), &effects)
      }
      cameIntoForce(change, &effects)
    case .keep, .write, .remember: break
    }
  }

  /// Computes the limits to write.
  private mutating func aim(_ change: VESCModeChange, _ board: VESCBoard, _ effects: inout Effects) {
    var change = change
    let own = limits.memory.flatMap { board.limits.isClose(to: $0.applied) ? $0.own : nil } ?? board.limits
    switch options.modes.first(where: { $0.name == change.name }) {
    case nil: change.target = own
    case let mode?:
      let geometry = options.geometry.completed(by: board.geometry)
      if mode.speed != nil, geometry.metres == nil {
        let message = "the geometry of the board is unknown: set \(geometry.missing)"
        return fail(change, .refused(code: "not-configured", message), &effects)
      }
      let erpm = mode.speed.flatMap { speed in geometry.metres.map { speed / 3.6 / $0 * 60 } }
      change.target = own.narrowed(current: mode.current, erpm: erpm)
    }
    guard let target = change.target else { return }
    if target.isClose(to: board.limits) {
      keep(change.name == VESCMode.full ? nil : VESCLimitsMemory(own: own, applied: board.limits), &effects)
      return cameIntoForce(change, &effects)
    }
    change.step = .keep
    wishes[0] = .mode(change)
    let memory = VESCLimitsMemory(own: own, applied: target)
    if limits.memory == memory { return limitsKept(nil, &effects) }
    keep(memory, &effects)
  }

  private mutating func keep(_ memory: VESCLimitsMemory?, _ effects: inout Effects) {
    guard memory != limits.memory else { return }
    limits.memory = memory
    effects.append(.store(key: "limits", memory?.stored ?? []))
  }

  mutating func limitsKept(_ failure: String?, _ effects: inout Effects) {
    guard case .mode(var change)? = wishes.first, change.step == .keep else { return }
    if let failure { return fail(change, .refused(code: "not-stored", "cannot store the VESC's own limits: \(failure)"), &effects) }
    change.step = .write
    wishes[0] = .mode(change)
  }

  /// The VESC has acknowledged; the limits are read to verify it.
  mutating func limitsTaken() {
    guard case .mode(var change)? = wishes.first, change.step == .write else { return }
    change.step = .verify
    change.misses = 0
    wishes[0] = .mode(change)
  }

  mutating func limitsMissed(_ command: VESCCommand, _ effects: inout Effects) {
    guard case .mode(var change)? = wishes.first, change.step.isQuestion else { return }
    change.misses += 1
    wishes[0] = .mode(change)
    guard change.misses >= 2 else { return }
    if command == .setup {
      limits.vescs = 1
      change.misses = 0
      return wishes[0] = .mode(change)
    }
    if command == .setLimits { return limitsTaken() }
    if change.step == .read {
      let message = "the VESC does not report its limits: a mode requires firmware 5.02 or newer"
      return fail(change, .refused(code: "not-supported", message), &effects)
    }
    fail(change, .timeout(milliseconds: Int(2 * Self.timeout / .millisecond)), &effects)
  }

  private mutating func cameIntoForce(_ change: VESCModeChange, _ effects: inout Effects) {
    var change = change
    if change.name == VESCMode.full { keep(nil, &effects) }
    modeTrouble = nil
    limits.inForce = change.name
    sayMode(&effects)
    if limits.chosen == change.name && change.id == nil { return finishWish(.success(Report()), &effects) }
    limits.chosen = change.name
    change.step = .remember
    wishes[0] = .mode(change)
    effects.append(.store(key: "mode", Array(change.name.utf8)))
  }

  private mutating func fail(_ change: VESCModeChange, _ error: CommandError, _ effects: inout Effects) {
    if change.id == nil, !change.name.isEmpty { modeTrouble = "the mode \(change.name) is not active: \(error.message)" }
    if change.step == .write || change.step == .verify { limits.inForce = nil }
    finishWish(.failure(error), &effects)
    sayMode(&effects)
  }
}

extension CommandError {
  /// The cause, as part of a message.
  fileprivate var message: String {
    switch self {
    case .notConnected(let message), .invalid(_, let message), .refused(_, let message): message
    case .timeout(let milliseconds): "no response within \(milliseconds) ms"
    }
  }
}
