// The newest state of each topic that the broker has not acknowledged. Only durable ones are stored: the others are published again by each
// run. No I/O.

struct StateQueue {
  private struct State {
    var entry: QueuedMessage
    var isInFlight = false
    /// Whether the broker has rejected it.
    var isRejected = false
  }

  private var states: [String: State] = [:]
  /// The states that an earlier run has stored. It is not known yet whether their devices still exist.
  private var earlier: [String: QueuedMessage] = [:]
  /// The topics of which the disk may have a state, perhaps an older one.
  private var storedTopics: Set<String> = []
  /// The topics of states to send, in order. One whose state is gone or in flight is skipped.
  private var pending: [String] = []
  private var firstPending = 0

  /// Starts with what the disk has.
  init(earlier stored: [QueuedMessage] = []) {
    for entry in stored { earlier[entry.message.topic] = entry }
    storedTopics = Set(earlier.keys)
  }

  var count: Int { states.count }

  mutating func add(_ entry: QueuedMessage) {
    let topic = entry.message.topic
    let isPending = states[topic].map { !$0.isInFlight && !$0.isRejected } ?? false
    states[topic] = State(entry: entry)
    earlier[topic] = nil
    if !isPending { pending.append(topic) }
  }

  /// Adds the states of an earlier run whose topics are still current. Returns the others, to delete them from the disk.
  mutating func release(_ isCurrent: (String) -> Bool) -> [QueuedMessage] {
    let (entries, others) = (earlier.values.sorted { $0.id < $1.id }, earlier.values.filter { !isCurrent($0.message.topic) })
    earlier = [:]
    for entry in entries where isCurrent(entry.message.topic) { add(entry) }
    storedTopics.subtract(others.map(\.message.topic))
    return others
  }

  /// Discards what is not in flight, because the service ends: durable states are stored, the others would be out of date.
  mutating func discardPending() {
    for (topic, state) in states where !state.isInFlight && !state.entry.message.isDurable { states[topic] = nil }
    (pending, firstPending) = ([], 0)
  }

  /// Notes that the disk has lost everything.
  mutating func storeLost() {
    storedTopics = []
    for topic in states.keys { states[topic]?.entry.isStored = false }
  }

  // MARK: Sending

  /// The next state to send, which is then in flight, with the rest of its expiry.
  mutating func next(at now: Int64) -> (id: Int64, message: OutgoingMessage)? {
    while firstPending < pending.count {
      let topic = pending[firstPending]
      firstPending += 1
      if firstPending == pending.count { (pending, firstPending) = ([], 0) }
      guard let state = states[topic], !state.isInFlight, !state.isRejected else { continue }
      guard let message = state.entry.message(at: now) else {
        states[topic] = nil
        continue
      }
      states[topic]?.isInFlight = true
      return (state.entry.id, message)
    }
    return nil
  }

  /// Removes an acknowledged state. Returns what to delete from the disk, if it has one of the topic.
  mutating func acknowledge(_ topic: String, _ id: Int64) -> QueuedMessage? {
    guard let state = states[topic], state.entry.id == id else { return nil }
    states[topic] = nil
    return storedTopics.remove(topic) == nil ? nil : state.entry
  }

  /// Keeps a rejected state until it is replaced or tried again.
  mutating func reject(_ topic: String, _ id: Int64) {
    guard states[topic]?.entry.id == id else { return }
    states[topic]?.isInFlight = false
    states[topic]?.isRejected = true
  }

  /// Sends the rejected states again.
  mutating func retryRejected() {
    for (topic, state) in states where state.isRejected {
      states[topic]?.isRejected = false
      pending.append(topic)
    }
  }

  /// Returns all states in flight to the queue, because the connection has ended.
  mutating func connectionEnded() {
    retryRejected()
    for (topic, state) in states where state.isInFlight {
      states[topic]?.isInFlight = false
      pending.append(topic)
    }
  }

  // MARK: The disk

  /// The durable states to store: those that were queued before `time`.
  func unstored(before time: Int64) -> [QueuedMessage] {
    states.values.map(\.entry).filter { $0.message.isDurable && !$0.isStored && $0.created < time }
  }

  /// Notes that states are being stored: if they are acknowledged meanwhile, they must be deleted from the disk.
  mutating func beginStoring(_ entries: [QueuedMessage]) { storedTopics.formUnion(entries.map(\.message.topic)) }

  mutating func stored(_ entries: [QueuedMessage]) {
    for entry in entries where states[entry.message.topic]?.entry.id == entry.id { states[entry.message.topic]?.entry.isStored = true }
  }
}
