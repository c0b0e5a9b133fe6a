// Queries of clients between two polls: a query waits for the command in flight and runs before the next poll. The adapter is then
// retargeted for that poll. Each query completes exactly once, unless its client has disconnected.
//
//   idle ─ begin ─▶ running ─ last command answered ─▶ idle
//                   │  ▲ the next command of its script
//                   └──┘

struct Queries: Sendable {
  static let maxWaiting = 16

  enum State: Sendable {
    case idle
    /// A command of its script is in flight or next.
    case running(OBDQuery)
  }

  private(set) var state = State.idle
  private var waiting: [OBDQuery] = []

  /// What a reply requires of other components.
  struct Outcome {
    enum Addressing {
      case unchanged
      /// The adapter is being retargeted.
      case unknownTarget
      /// The adapter has this addressing now, which is unknown (nil) if any setting may have changed.
      case changed(ECUAddressing?)
    }
    fileprivate(set) var addressing = Addressing.unchanged
    fileprivate(set) var nextAction = AdapterAction.none
    /// The query that was completed.
    fileprivate(set) var completed: CommandID?
    /// The query that has read the codes of a confirmed clear operation. The codes must be stored before they are cleared.
    fileprivate(set) var codesRead: OBDQuery?
    /// Whether codes were cleared or may have been, which changes other values.
    fileprivate(set) var hasCleared = false
  }

  var isRunning: Bool { if case .running = state { true } else { false } }
  var areWaiting: Bool { !waiting.isEmpty }
  /// The number of waiting queries.
  var count: Int { waiting.count }

  /// The next command of the running query, or nil if no query is running.
  var adapterCommand: AdapterCommand? { if case .running(let query) = state { query.adapterCommand } else { nil } }

  /// Whether the command in flight is a request to the vehicle.
  var awaitsVehicle: Bool {
    guard case .running(let query) = state, query.service != nil, case .request = query.step else { return false }
    return true
  }

  mutating func append(_ query: OBDQuery) throws(CommandError) {
    guard waiting.count < Self.maxWaiting else {
      throw .refused(code: .busy, "\(Self.maxWaiting) queries are already waiting; try again when they are done")
    }
    waiting.append(query)
  }

  /// Adds a query before all others, because it continues one that has already waited.
  mutating func prepend(_ query: OBDQuery) { waiting.insert(query, at: 0) }

  /// Begins the next query; `fastAddressing` is the addressing of the fast request (FastPoll.swift).
  mutating func begin(
    on bus: OBDProtocol, _ session: some AdapterDialogue, fastAddressing: ECUAddressing, _ effects: inout Effects
  ) {
    var query = waiting.removeFirst()
    if query.header != nil, !bus.isCAN, bus != .automatic {
      return effects.append(.complete(query.id, .failure(.refused(code: .noCAN, "\(OBDProtocol.noCAN); leave it out"))))
    }
    query.prepare(for: session, fastAddressing: fastAddressing)
    state = .running(query)
  }

  /// Handles a reply; `parsed` is its content if it is a reply of the vehicle.
  mutating func replied(
    _ parsed: ReplyReader.Outcome, _ session: some AdapterDialogue, fastAddressing: ECUAddressing, _ scales: Scales,
    _ effects: inout Effects
  ) -> Outcome {
    guard case .running(var query) = state else { return Outcome() }
    var outcome = Outcome()
    switch query.step {
    case .prepare:
      // Until the last of these commands is accepted, the addressing is unknown.
      outcome.addressing = .unknownTarget
      if session.isAcknowledged {
        if query.hasClient { query.advancePastFallback() } else { query.skipToRestore() }
        if case .request = query.step { outcome.addressing = .changed(query.addressing) }
      } else if !query.hasFallback {
        let command = String(decoding: query.command.dropLast(), as: UTF8.self)
        let message = "the adapter rejected \(command): \(printable(session.replyBody))"
        complete(query, .failure(.refused(code: .adapterRefused, message)), command: session.command, &outcome, &effects)
        query.skipToRestore()
      } else {
        query.advance()
      }
    case .request(let index):
      if query.hasClient, !query.usesLongTimeout, query.isRepeatable(index), parsed == .messages, session.reader.isPending {
        query.repeatWithLongTimeout(index, for: session, fastAddressing: fastAddressing)
        break
      }
      let result = query.process(parsed, session.replyBody, session.reader, scales, index)
      if index == CodeClearing.clearIndex, let clearing = query.multiECU as? CodeClearing, let event = clearing.event {
        effects.append(event)
        outcome.hasCleared = clearing.hasCleared || clearing.isOutcomeUnknown
      }
      if let result {
        finish(&query, result, command: session.command, &outcome, &effects)
      } else if query.hasClient {
        query.prepare(for: session, fastAddressing: fastAddressing, at: index + 1)
        reportProgress(query, after: index, &effects)
      } else {
        // Without a client no further request is sent.
        query.skipToRestore()
      }
    case .restore:
      guard session.isAcknowledged else {
        outcome.nextAction = .setUp(fault: "the adapter did not accept its previous settings: reinitialising it")
        return outcome
      }
      query.advance()
    case nil: break
    }
    proceed(query, &outcome)
    return outcome
  }

  /// Handles the result of the query: completes it, or passes on the codes of a confirmed clear operation.
  private mutating func finish(
    _ query: inout OBDQuery, _ result: Result<Report, CommandError>, command: [UInt8], _ outcome: inout Outcome, _ effects: inout Effects
  ) {
    if case .success = result, query.hasClient, query.confirmedPreview != nil {
      outcome.codesRead = query
    } else {
      complete(query, result, command: command, &outcome, &effects)
    }
    query.skipToRestore()
    guard case .failure(.refused(let code, let message)) = result else { return }
    if code == .badReply { outcome.nextAction = .resynchronise }
    if code == .adapterRestarted { outcome.nextAction = .setUp(fault: message) }
  }

  /// Reports the progress of a long query, so that clients do not time out.
  private func reportProgress(_ query: OBDQuery, after index: Int, _ effects: inout Effects) {
    guard query.multiECU?.isLong ?? false else { return }
    let progress = Double(index + 1) / Double(query.requestStrings.count)
    effects.append(.progress(query.id, Report(text: "\(index + 1) of \(query.requestStrings.count) requests", progress: progress)))
  }

  /// Keeps the query running while it has further commands.
  private mutating func proceed(_ query: OBDQuery, _ outcome: inout Outcome) {
    if query.step != nil { return state = .running(query) }
    state = .idle
    // A raw command may have changed any setting: retarget the adapter.
    if query.isRaw { outcome.addressing = .changed(nil) }
  }

  /// Handles a command without a reply.
  mutating func timedOut(_ command: [UInt8], after timeout: Nanoseconds, _ effects: inout Effects) -> Outcome {
    guard case .running(var query) = state else { return Outcome() }
    var outcome = Outcome()
    if case .prepare? = query.step {
      let text = String(decoding: query.command.dropLast(), as: UTF8.self)
      let error = CommandError.refused(code: .adapterSilent, "the adapter does not respond to \(text); try again")
      complete(query, .failure(error), command: command, &outcome, &effects)
    } else {
      complete(query, .failure(.timeout(milliseconds: Int(timeout / .millisecond))), command: command, &outcome, &effects)
    }
    if query.isRestoring {
      outcome.nextAction = .setUp(fault: nil)
    } else {
      outcome.nextAction = .count(.timeout)
      query.skipToRestore()
      proceed(query, &outcome)
    }
    return outcome
  }

  /// Handles a reply that is too long.
  mutating func overflowed(_ command: [UInt8], _ effects: inout Effects) -> Outcome {
    guard case .running(var query) = state else { return Outcome() }
    var outcome = Outcome()
    complete(query, .failure(.refused(code: .badReply, AdapterSession.unreadableMessage)), command: command, &outcome, &effects)
    outcome.nextAction = .resynchronise
    query.skipToRestore()
    proceed(query, &outcome)
    return outcome
  }

  // MARK: Completion

  /// Completes the query, unless it was completed before.
  private func complete(
    _ query: OBDQuery, _ result: Result<Report, CommandError>, command: [UInt8], _ outcome: inout Outcome, _ effects: inout Effects
  ) {
    guard query.hasClient && query.isPending else { return }
    effects.append(.complete(query.id, query.reported(result, lastCommand: command)))
    outcome.completed = query.id
  }

  /// Removes the query of a client that has disconnected, or discards its result.
  mutating func cancel(_ id: CommandID) {
    waiting.removeAll { $0.id == id }
    guard case .running(var query) = state, query.id == id else { return }
    query.cancel()
    state = .running(query)
  }

  /// Ends the running query with an error. Returns its ID, or nil if there was no query to complete.
  mutating func failRunning(_ error: CommandError, command: [UInt8], _ effects: inout Effects) -> CommandID? {
    guard case .running(let query) = state else { return nil }
    var outcome = Outcome()
    complete(query, .failure(error), command: command, &outcome, &effects)
    state = .idle
    return outcome.completed
  }

  /// Ends the waiting queries with an error. Returns their IDs.
  mutating func failWaiting(_ error: CommandError, _ effects: inout Effects) -> [CommandID] {
    defer { waiting.removeAll() }
    for query in waiting { effects.append(.complete(query.id, .failure(error))) }
    return waiting.map(\.id)
  }
}
