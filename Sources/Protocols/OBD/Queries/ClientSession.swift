// The session with the clients: their queries, and the clearing of trouble codes, which consists of two queries.

struct ClientSession: Sendable {
  private(set) var queries = Queries()
  private(set) var clearingSequence = CodeClearingSequence()

  mutating func restore(_ stored: [String: [UInt8]]) { clearingSequence.restore(stored[CodeClearingSequence.key]) }

  mutating func append(_ query: OBDQuery) throws(CommandError) {
    try queries.append(query)
    if query.confirmedPreview != nil { clearingSequence.begin(query.id) }
  }

  /// Cancels the query of a client that has disconnected.
  mutating func cancel(_ id: CommandID) {
    queries.cancel(id)
    clearingSequence.cancelled(id)
  }

  /// Handles the requested wall-clock time.
  mutating func timeReceived(_ wall: WallTime, _ effects: inout Effects) { clearingSequence.timeReceived(wall, &effects) }

  /// Handles the result of storing a value.
  mutating func stored(_ key: String, _ failure: String?, _ motion: Motion, on bus: OBDProtocol, _ effects: inout Effects) {
    if let query = clearingSequence.stored(key, failure, motion, requiresResponse: bus.isCAN, &effects) { queries.prepend(query) }
  }

  /// Begins the next query, unless it is rejected; `fastAddressing` is the addressing of the fast request.
  mutating func begin(
    on bus: OBDProtocol, _ session: some AdapterDialogue, fastAddressing: ECUAddressing, _ effects: inout Effects
  ) {
    queries.begin(on: bus, session, fastAddressing: fastAddressing, &effects)
  }

  /// Handles a reply; `parsed` is its content if it is a reply of the vehicle.
  mutating func replied(
    _ parsed: ReplyReader.Outcome, _ session: some AdapterDialogue, fastAddressing: ECUAddressing, _ scales: Scales,
    _ effects: inout Effects
  ) -> Queries.Outcome {
    notifyClearingSequence(of: queries.replied(parsed, session, fastAddressing: fastAddressing, scales, &effects), &effects)
  }

  /// Handles a `command` whose reply is missing or too long.
  mutating func failed(_ failure: AdapterFailure, _ command: [UInt8], _ effects: inout Effects) -> Queries.Outcome {
    if case .timeout = failure {
      return notifyClearingSequence(of: queries.timedOut(command, after: AdapterSession.timeout, &effects), &effects)
    }
    return notifyClearingSequence(of: queries.overflowed(command, &effects), &effects)
  }

  private mutating func notifyClearingSequence(of outcome: Queries.Outcome, _ effects: inout Effects) -> Queries.Outcome {
    if let id = outcome.completed { clearingSequence.completed(id) }
    if let query = outcome.codesRead { clearingSequence.codesRead(by: query, &effects) }
    return outcome
  }

  /// Ends the running query, because the adapter is initialised again. `command` is the command in flight.
  mutating func interrupt(_ error: CommandError, _ command: [UInt8], _ effects: inout Effects) {
    if let id = queries.failRunning(error, command: command, &effects) { clearingSequence.completed(id) }
  }

  /// Ends all queries, because the adapter cannot be used.
  mutating func failAll(_ error: CommandError, _ command: [UInt8], _ effects: inout Effects) {
    interrupt(error, command, &effects)
    for id in queries.failWaiting(error, &effects) { clearingSequence.completed(id) }
    clearingSequence.linkLost(error, &effects)
  }
}
