// The messages that the broker has not acknowledged yet. Of the state messages of a topic, only the newest counts. Event messages are sent in
// order; the oldest are in memory, the others only on the disk while there are many. No I/O.

/// A message with what the queue needs to know about it.
struct QueuedMessage: Equatable, Sendable {
  /// The number of an event message, in the order of sending; 0 for a state message.
  var id: Int64 = 0
  /// When it was queued, in µs of the wall clock.
  var created: Int64
  var message: OutgoingMessage
  /// Whether the disk has it.
  var isStored = false

  /// The message as to be sent now, with the rest of its expiry; nil if it has expired.
  func message(at now: Int64) -> OutgoingMessage? {
    guard let expiry = message.expiry else { return message }
    let rest = Int64(expiry) - max(0, now - created) / 1_000_000
    guard rest > 0 else { return nil }
    var message = message
    message.expiry = UInt32(rest)
    return message
  }

  var size: Int { message.topic.utf8.count + message.payload.count + 32 }
}

struct SendQueue {
  /// What a message in flight stands for.
  enum Token: Equatable {
    case state(topic: String, version: Int)
    case event(Int64)
  }

  /// The size in bytes from which event messages are only on the disk.
  static let memoryLimit = 512 << 10
  /// The size in bytes beyond which the oldest event messages are lost if they cannot be stored.
  static let lossLimit = 16 << 20

  private struct State {
    var entry: QueuedMessage
    var version: Int
    var isInFlight = false
  }

  private var states: [String: State] = [:]
  /// The topics of which the disk may have a state, perhaps an older one.
  private var storedTopics: Set<String> = []
  /// The event messages that are being stored.
  private var storing: Set<Int64> = []
  /// The topics of states to send, in order. A topic that was removed meanwhile is skipped.
  private var pendingTopics: [String] = []
  private var firstPending = 0
  private var nextVersion = 0

  /// The oldest event messages, of which the first `inFlight` were sent.
  private var head: [QueuedMessage] = []
  /// The number of the latest message that was in `head`.
  private var headEnd: Int64 = 0
  private var inFlight = 0
  /// The number of event messages that are only on the disk, between `head` and `tail`.
  private(set) var diskCount: Int
  private var tail: [QueuedMessage] = []
  private var nextID: Int64
  private var headSize = 0
  private var tailSize = 0
  /// The number of event messages that were lost because they could not be stored.
  private(set) var lostCount = 0

  /// Starts with what the disk has: the states, and the event messages, whose highest number is `last`.
  init(states stored: [QueuedMessage] = [], diskCount: Int = 0, last: Int64 = 0) {
    (self.diskCount, nextID) = (diskCount, last + 1)
    for entry in stored {
      add(state: entry)
      storedTopics.insert(entry.message.topic)
    }
  }

  // MARK: Adding

  /// Queues the newest state of a topic.
  mutating func add(state entry: QueuedMessage) {
    nextVersion += 1
    let topic = entry.message.topic
    let isPending = states[topic].map { !$0.isInFlight } ?? false
    states[topic] = State(entry: entry, version: nextVersion)
    if !isPending { pendingTopics.append(topic) }
  }

  /// Queues an event message behind all others.
  mutating func add(event message: OutgoingMessage, at now: Int64) {
    let entry = QueuedMessage(id: nextID, created: now, message: message)
    nextID += 1
    if diskCount == 0 {
      append(entry)
    } else {
      tail.append(entry)
      tailSize += entry.size
    }
    while headSize + tailSize > Self.lossLimit { loseOldest() }
  }

  private mutating func append(_ entry: QueuedMessage) {
    head.append(entry)
    headEnd = entry.id
    headSize += entry.size
  }

  private mutating func loseOldest() {
    lostCount += 1
    if head.isEmpty {
      tailSize -= tail.removeFirst().size
    } else {
      headSize -= head.removeFirst().size
      inFlight = max(0, inFlight - 1)
    }
  }

  // MARK: Sending

  /// The next state to send, which is then in flight.
  mutating func nextState(at now: Int64) -> (token: Token, message: OutgoingMessage)? {
    while firstPending < pendingTopics.count {
      let topic = pendingTopics[firstPending]
      firstPending += 1
      if firstPending == pendingTopics.count { (pendingTopics, firstPending) = ([], 0) }
      guard let state = states[topic], !state.isInFlight else { continue }
      guard let message = state.entry.message(at: now) else {
        // A stored one is removed when it is replaced or at the next start.
        states[topic] = nil
        continue
      }
      states[topic]?.isInFlight = true
      return (.state(topic: topic, version: state.version), message)
    }
    return nil
  }

  /// The next event message to send, which is then in flight; nil if there is none in memory.
  mutating func nextEvent(at now: Int64) -> (token: Token, message: OutgoingMessage)? {
    guard inFlight < head.count else { return nil }
    let entry = head[inFlight]
    inFlight += 1
    return (.event(entry.id), entry.message)
  }

  /// The number of event messages in flight, and of all.
  var eventsInFlight: Int { inFlight }
  var eventCount: Int { head.count + diskCount + tail.count }
  var stateCount: Int { states.count }

  /// Removes an acknowledged message. Returns what to delete from the disk, if it is there.
  mutating func acknowledge(_ token: Token) -> QueuedMessage? {
    switch token {
    case .state(let topic, let version):
      guard let state = states[topic], state.version == version else { return nil }
      states[topic] = nil
      return storedTopics.remove(topic) == nil ? nil : state.entry
    case .event(let id):
      guard let index = head.prefix(inFlight).firstIndex(where: { $0.id == id }) else { return nil }
      let entry = head.remove(at: index)
      headSize -= entry.size
      inFlight -= 1
      return entry.isStored || storing.contains(id) ? entry : nil
    }
  }

  /// Returns all messages in flight to the queue, because the connection has ended.
  mutating func connectionEnded() {
    inFlight = 0
    for (topic, state) in states where state.isInFlight {
      states[topic]?.isInFlight = false
      pendingTopics.append(topic)
    }
  }

  /// Whether a message in flight is lost if it has no subscriber.
  func needsSubscriber(_ token: Token) -> Bool {
    guard case .event(let id) = token else { return false }
    return head.prefix(inFlight).first { $0.id == id }.map { Topics.isBatch($0.message.topic) } ?? false
  }

  /// Returns the event messages in flight from this one on to the queue, because the broker has rejected it for now.
  mutating func postpone(_ token: Token) {
    guard case .event(let id) = token, let index = head.prefix(inFlight).firstIndex(where: { $0.id == id }) else { return }
    inFlight = index
  }

  // MARK: The disk

  /// The messages to store: those that were queued before `time`, or all if there are too many for the memory.
  func unstored(before time: Int64) -> [QueuedMessage] {
    let isLarge = headSize + tailSize > Self.memoryLimit
    let events = (head + tail).filter { !$0.isStored && (isLarge || $0.created < time) }
    return states.values.map(\.entry).filter { !$0.isStored && $0.created < time } + events
  }

  /// Marks messages as being stored: if they are acknowledged meanwhile, they must be deleted from the disk.
  mutating func beginStoring(_ entries: [QueuedMessage]) {
    for entry in entries {
      if entry.id == 0 { storedTopics.insert(entry.message.topic) } else { storing.insert(entry.id) }
    }
  }

  /// Ends storing without success: the messages are stored later.
  mutating func storingFailed() { storing = [] }

  /// Marks messages as stored, and removes from memory what does not have to be there.
  mutating func stored(_ entries: [QueuedMessage]) {
    storing = []
    let ids = Set(entries.map(\.id))
    for entry in entries where entry.id == 0 {
      if states[entry.message.topic]?.entry == entry { states[entry.message.topic]?.entry.isStored = true }
    }
    for index in head.indices where ids.contains(head[index].id) { head[index].isStored = true }
    let kept = tail.drop { ids.contains($0.id) }
    diskCount += tail.count - kept.count
    tail = Array(kept)
    tailSize = tail.reduce(0) { $0 + $1.size }
    trim()
  }

  /// Removes the stored messages at the end of `head` beyond the limit from memory. What is not stored yet and follows them moves to `tail`.
  private mutating func trim() {
    guard headSize > Self.memoryLimit, diskCount > 0 || tail.isEmpty else { return }
    let stored = head.lastIndex(where: \.isStored).map { $0 + 1 } ?? 0
    let unstored = Array(head[stored...])
    var count = stored
    var size = headSize - unstored.reduce(0) { $0 + $1.size }
    while size > Self.memoryLimit, count > inFlight + 1, head[count - 1].isStored {
      count -= 1
      size -= head[count].size
    }
    guard count < stored, stored > inFlight else { return }
    diskCount += stored - count
    headEnd = head[count].id - 1
    head.removeSubrange(count...)
    headSize = size
    tail = unstored + tail
    tailSize = tail.reduce(0) { $0 + $1.size }
  }

  /// The number after which to read event messages from the disk, if there is room for some.
  var wanted: Int64? {
    guard diskCount > 0, headSize < Self.memoryLimit / 2 else { return nil }
    return headEnd
  }

  /// Adds event messages from the disk, of which `rest` remain there.
  mutating func loaded(_ entries: [QueuedMessage], rest: Int) {
    for entry in entries where entry.id > headEnd { append(entry) }
    diskCount = rest
    guard diskCount == 0 else { return }
    for entry in tail { append(entry) }
    (tail, tailSize) = ([], 0)
  }
}
