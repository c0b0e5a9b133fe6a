// Commands other than set-points: a speed mode, and the list of VESCs on the CAN bus. They are executed one at a time, between polls.
// Every command ends in exactly one `complete`, unless its caller has disconnected.

enum VESCWish: Sendable, Equatable {
  case mode(VESCModeChange)
  case ping(id: CommandID?, asked: Instant?, told: Int)

  static let limit = 16
  /// The bus is scanned one ID after the other.
  static let pingTimeout: Nanoseconds = 5 * .second

  /// The waiting command.
  var id: CommandID? {
    get {
      switch self {
      case .mode(let change): change.id
      case .ping(let id, _, _): id
      }
    }
    set {
      switch self {
      case .mode(var change):
        change.id = newValue
        self = .mode(change)
      case .ping(_, let asked, let told): self = .ping(id: newValue, asked: asked, told: told)
      }
    }
  }
}

extension VESCMachine {
  mutating func perform(_ id: CommandID, _ command: Command, at now: Instant, _ effects: inout Effects) {
    if isEnding { return effects.append(.complete(id, .failure(.notConnected("the link is being closed")))) }
    switch command {
    case .set(let property, let value):
      switch VESCSignal(rawValue: property) {
      case .mode: wishMode(value, for: id, &effects)
      case .some(let signal) where VESCSignal.targets.contains(signal): motion.set(signal, value, for: id, at: now, &effects)
      default: effects.append(.complete(id, .failure(.refused(code: "read-only", "the property is read-only"))))
      }
    case .run(action: 0, _):
      if let reason = reasonNotToAsk { return effects.append(.complete(id, .failure(.notConnected(reason)))) }
      wish(.ping(id: id, asked: nil, told: 0), &effects)
    case .run: effects.append(.complete(id, .failure(.refused(code: "no-action", "no such action"))))
    }
  }

  /// Why no request can be sent to the VESC now.
  var reasonNotToAsk: String? {
    if isEnding { return "the link is being closed" }
    return switch state {
    case .down(let reason): reason
    case .silent: silence ?? "the VESC does not respond"
    case .ready, .asking: silence ?? (talk.isSettled ? nil : "the VESC has not responded yet")
    }
  }

  mutating func wish(_ wish: VESCWish, _ effects: inout Effects) {
    guard wishes.count < VESCWish.limit else {
      if let id = wish.id { effects.append(.complete(id, .failure(.refused(code: "busy", "too many queued commands: try again later")))) }
      return
    }
    wishes.append(wish)
  }

  /// The caller has disconnected: the command is finished without a reply.
  mutating func forget(_ id: CommandID) {
    motion.cancel(id)
    for index in wishes.indices where wishes[index].id == id { wishes[index].id = nil }
    for index in limits.pending.indices.reversed() where limits.pending[index] == id { limits.pending.remove(at: index) }
  }

  mutating func failWishes(_ error: CommandError, _ effects: inout Effects) {
    for wish in wishes { if let id = wish.id { effects.append(.complete(id, .failure(error))) } }
    wishes.removeAll()
  }

  mutating func finishWish(_ result: Result<Report, CommandError>, _ effects: inout Effects) {
    guard !wishes.isEmpty else { return }
    if let id = wishes.removeFirst().id { effects.append(.complete(id, result)) }
  }

  /// Whether the current command has a request to send.
  var hasWish: Bool {
    switch wishes.first {
    case .mode(let change): change.step.isQuestion
    case .ping: true
    case nil: false
    }
  }

  /// The request of the current command.
  mutating func wishedQuestion(at now: Instant, _ effects: inout Effects) -> VESCCommand? {
    guard talk.isSettled else { return nil }
    switch wishes.first {
    case .mode(let change): return question(of: change)
    case .ping(let id, _, let told):
      if id == nil {
        wishes.removeFirst()
        return nil
      }
      wishes[0] = .ping(id: id, asked: now, told: told)
      return .pingCAN
    case nil: return nil
    }
  }

  /// A request of the current command got no response.
  mutating func wishMissed(_ command: VESCCommand, _ effects: inout Effects) {
    guard case .mode(let change)? = wishes.first, command == question(of: change) else { return }
    limitsMissed(command, &effects)
  }

  // MARK: The CAN bus

  /// The interval of progress reports.
  func progressDue(_ question: Question) -> Instant? {
    guard case .ping(.some, let asked?, let told)? = wishes.first, question.command == .pingCAN else { return nil }
    return asked &+ Int64(told + 1) * .second
  }

  mutating func reportProgress(_ question: Question, at now: Instant, _ effects: inout Effects) {
    guard case .ping(let id?, let asked?, _)? = wishes.first else { return }
    let told = Int((now &- asked) / .second)
    wishes[0] = .ping(id: id, asked: asked, told: told)
    let part = Double(told) / Double(VESCWish.pingTimeout / .second)
    effects.append(.progress(id, Report(text: "scanning the CAN bus: \(told) s", progress: part)))
  }

  mutating func pingAnswered(_ payload: ArraySlice<UInt8>, _ effects: inout Effects) {
    guard case .ping? = wishes.first else { return }
    let rows = payload.prefix(255).map { [String($0)] }
    finishWish(.success(Report(text: rows.isEmpty ? "no other VESC on the CAN bus" : nil, columns: ["can-id"], rows: rows)), &effects)
  }

  mutating func pingTimedOut(_ effects: inout Effects) {
    guard case .ping? = wishes.first else { return }
    finishWish(.failure(.timeout(milliseconds: Int(VESCWish.pingTimeout / .millisecond))), &effects)
  }
}
