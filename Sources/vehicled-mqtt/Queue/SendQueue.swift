// The messages that the broker has not acknowledged: the newest states, the events, and the batches for a fleet. Current values are sent
// first. No I/O.

struct SendQueue {
  /// What a message in flight stands for.
  enum Token: Equatable {
    case state(topic: String, id: Int64)
    case event(Int64)
    case batch(Int64)
  }

  /// What the disk has of an earlier run.
  struct Contents: Sendable {
    var states: [QueuedMessage] = []
    var hasEvents = false
    var hasBatches = false
    /// The highest number of a message.
    var lastID: Int64 = 0
  }

  private(set) var states: StateQueue
  private(set) var events: MessageLane
  private(set) var batches: MessageLane
  private var lastID: Int64

  init(_ contents: Contents = Contents()) {
    states = StateQueue(earlier: contents.states)
    events = MessageLane(hasStored: contents.hasEvents)
    batches = MessageLane(hasStored: contents.hasBatches)
    lastID = contents.lastID
  }

  /// Queues a message at this time of the queue's clock.
  mutating func add(_ message: OutgoingMessage, at now: Int64) {
    lastID += 1
    let entry = QueuedMessage(id: lastID, created: now, message: message)
    switch entry.kind {
    case .state: states.add(entry)
    case .event: events.add(entry)
    case .batch: batches.add(entry)
    }
  }

  /// Adds the stored states of an earlier run whose topics are still current. Returns the others, to delete them from the disk.
  mutating func release(_ isCurrent: (String) -> Bool) -> [QueuedMessage] { states.release(isCurrent) }

  // MARK: Sending

  /// The number of events and batches in flight.
  var inFlightCount: Int { events.inFlightCount + batches.inFlightCount }

  /// The next state to send, which is then in flight.
  mutating func nextState(at now: Int64) -> (token: Token, message: OutgoingMessage)? {
    states.next(at: now).map { (.state(topic: $0.message.topic, id: $0.id), $0.message) }
  }

  /// The next event or batch to send, which is then in flight; nil if there is none in memory.
  mutating func nextInOrder(at now: Int64) -> (token: Token, message: OutgoingMessage)? {
    if let event = events.next(at: now) { return (.event(event.id), event.message) }
    return batches.next(at: now).map { (.batch($0.id), $0.message) }
  }

  /// Removes an acknowledged message. Returns what to delete from the disk, if it is there.
  mutating func acknowledge(_ token: Token) -> QueuedMessage? {
    switch token {
    case .state(let topic, let id): states.acknowledge(topic, id)
    case .event(let id): events.acknowledge(id)
    case .batch(let id): batches.acknowledge(id)
    }
  }

  /// Keeps a message that the broker has rejected, and the others of its topic. They are sent again at `until`, states by `retryStates`.
  mutating func reject(_ token: Token, until: Int64) {
    switch token {
    case .state(let topic, let id): states.reject(topic, id)
    case .event(let id): events.block(id, until: until)
    case .batch(let id): batches.block(id, until: until)
    }
  }

  /// Keeps one message until the next connection, because it is too large for the broker.
  mutating func setAside(_ token: Token) {
    switch token {
    case .state(let topic, let id): states.reject(topic, id)
    case .event(let id): events.setAside(id)
    case .batch(let id): batches.setAside(id)
    }
  }

  mutating func retryStates() { states.retryRejected() }

  /// Discards the states that are not in flight and not durable, because the service ends.
  mutating func discardPendingStates() { states.discardPending() }

  /// Whether events or batches of a topic wait because the broker rejects it.
  func isBlocked(_ topic: String) -> Bool { events.isBlocked(topic) || batches.isBlocked(topic) }

  /// The number of messages that were lost because they could not be stored.
  var lostCount: Int { events.lostCount + batches.lostCount }

  /// Returns all messages in flight to the queue, because the connection has ended.
  mutating func connectionEnded() {
    states.connectionEnded()
    events.connectionEnded()
    batches.connectionEnded()
  }

  // MARK: The disk

  /// The messages to store: those that were queued before `time`, and more if there are too many for the memory.
  func unstored(before time: Int64) -> [QueuedMessage] {
    states.unstored(before: time) + events.unstored(before: time) + batches.unstored(before: time)
  }

  mutating func beginStoring(_ entries: [QueuedMessage]) {
    states.beginStoring(entries.filter { $0.kind == .state })
    events.beginStoring(entries.filter { $0.kind == .event })
    batches.beginStoring(entries.filter { $0.kind == .batch })
  }

  /// Ends storing without success: the messages are stored later.
  mutating func storingFailed() {
    events.storingFailed()
    batches.storingFailed()
  }

  /// Ends storing and deleting.
  mutating func updated(stored: [QueuedMessage], deleted: [QueuedMessage]) {
    events.deleted(deleted)
    batches.deleted(deleted)
    states.stored(stored.filter { $0.kind == .state })
    events.stored(stored.filter { $0.kind == .event })
    batches.stored(stored.filter { $0.kind == .batch })
  }

  /// Reads the disk again if that has failed.
  mutating func retryLoading() {
    events.retryLoading()
    batches.retryLoading()
  }

  /// Notes that the disk has lost everything: what is in memory is stored again.
  mutating func storeLost() {
    states.storeLost()
    events.storeLost()
    batches.storeLost()
  }

  /// What to read from the disk, if there is room for it.
  var request: (kind: QueuedMessage.Kind, request: MessageLane.Request)? {
    events.request.map { (.event, $0) } ?? batches.request.map { (.batch, $0) }
  }

  /// Adds messages from the disk; nil if it could not be read.
  mutating func loaded(_ kind: QueuedMessage.Kind, _ result: (entries: [QueuedMessage], isLast: Bool)?, for request: MessageLane.Request) {
    func apply(to lane: inout MessageLane) {
      if let result { lane.loaded(result.entries, isLast: result.isLast, for: request) } else { lane.loadingFailed() }
    }
    if kind == .batch { apply(to: &batches) } else { apply(to: &events) }
  }
}
