// How a speed mode comes into force: the limits are read, narrowed, written and read again, and the mode is in force when
// the VESC says so. Its own limits are on the disk before it is told others, so that `full` can give them back, even by
// another daemon; they are read anew when what the VESC says is not what it was told last: it was switched off, or set up
// anew. A VESC keeps what it is told only until it is switched off, so its mode is set again whenever it begins to answer.

struct VESCModeChange: Sendable, Equatable {
  enum Step: Sendable, Equatable {
    case read
    /// The limits are on their way to the disk.
    case keep
    case write
    case verify
    /// The mode's name is on its way to the disk.
    case remember

    var isQuestion: Bool { self == .read || self == .write || self == .verify }
  }

  var name: String
  /// nil: nobody waits; it is set because it was chosen before.
  var id: CommandID?
  var step = Step.read
  var target: VESCLimits?
  var misses = 0
}

/// What the machine knows of the VESC's limits.
struct VESCLimitsKept: Sendable {
  /// What the disk knows.
  var memory: VESCLimitsMemory?
  /// The mode that was chosen last, if any ever was.
  var chosen: String?
  /// The mode that the VESC was seen to be in.
  var inForce: String?
  /// What the VESC knows of its board.
  var geometry: VESCGeometry?
  /// How many VESCs the board has; nil: not heard yet.
  var vescs: Int?
  /// They chose a mode while there was no VESC, and wait for the disk.
  var pending: [CommandID] = []
}

extension VESCMachine {
  mutating func wishMode(_ value: Value, for id: CommandID, _ effects: inout Effects) {
    guard case .string(let name) = value, schema.properties[VESCSignal.mode.rawValue].choices.contains(name) else {
      return effects.append(.complete(id, .failure(.invalid(argument: "value", "\(value.text) is no mode of this board"))))
    }
    if reasonNotToAsk == nil { return wish(.mode(VESCModeChange(name: name, id: id)), &effects) }
    guard limits.pending.count < VESCWish.limit else {
      return effects.append(.complete(id, .failure(.refused(code: "busy", "too much is waiting: ask again later"))))
    }
    limits.chosen = name
    limits.pending.append(id)
    effects.append(.store(key: "mode", Array(name.utf8)))
    sayMode(&effects)
  }

  /// The VESC began to answer: what was chosen is to be in force, and what it knows of its board is of use.
  mutating func beginMode(_ effects: inout Effects) {
    limits.inForce = nil
    modeTrouble = nil
    wishes.removeAll { if case .mode(let change) = $0 { change.id == nil && change.step == .read } else { false } }
    // What is half done is finished first.
    let isBusy = if case .mode(let change)? = wishes.first { change.step != .read } else { false }
    wishes.insert(.mode(VESCModeChange(name: limits.chosen ?? "", id: nil)), at: isBusy ? 1 : 0)
    sayMode(&effects)
  }

  var setLimitsFrame: [UInt8]? {
    guard case .mode(let change)? = wishes.first, let target = change.target else { return nil }
    // A board with one weak motor of two would turn: where the VESC is not alone it passes its limits on, as VESC Tool has
    // it do. One that was chosen by its number is meant alone.
    let passedOn = options.can == nil && limits.vescs ?? 1 > 1
    return VESCCommand.setLimits.frame(target.command(passedOn: passedOn), can: options.can)
  }

  /// The question that a change of mode has to ask next.
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
    case "odometer": wayStored(failure, &effects)
    case "mode":
      let refusal = failure.map { CommandError.refused(code: "not-stored", "the mode cannot be kept: \($0)") }
      let text = "pending: it is set when the VESC answers"
      for id in limits.pending { effects.append(.complete(id, refusal.map { .failure($0) } ?? .success(Report(text: text)))) }
      limits.pending.removeAll()
      if case .mode(let change)? = wishes.first, change.step == .remember {
        finishWish(refusal.map { .failure($0) } ?? .success(Report()), &effects)
      }
    default: break
    }
  }

  mutating func sayMode(_ effects: inout Effects) {
    if let mode = limits.inForce, !mode.isEmpty { return publish(.mode, .string(mode), &effects) }
    let words = limits.chosen.map { modeTrouble ?? "\($0) was chosen: it is set when the VESC answers" } ?? "none was chosen"
    withdraw(VESCSignal.mode.rawValue, words, &effects)
  }
}
