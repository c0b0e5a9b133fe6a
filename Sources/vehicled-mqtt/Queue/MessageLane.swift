// Messages that are sent in order: events, or batches. The oldest are in memory; while there are many, the others are only on the disk.
// The messages of a topic that the broker rejects wait, without delaying those of other topics. No I/O.

struct MessageLane {
  /// What to read from the disk: the messages after this number whose topics are not among these.
  struct Request: Equatable, Sendable {
    var position: Int64
    var excluding: [String]
    fileprivate var generation: Int
  }

  /// A topic that the broker rejects. Its oldest message is sent from time to time.
  private struct Block {
    var oldest: QueuedMessage
    /// When to send it again.
    var until: Int64
  }

  /// The size in bytes from which messages are only on the disk.
  static let memoryLimit = 256 << 10
  /// The size of the messages that are not stored, in bytes, beyond which the oldest are lost.
  static let lossLimit = 8 << 20

  /// The messages to send next, of which the first `sentCount` are no longer there.
  private var ready: [QueuedMessage] = []
  private var sentCount = 0
  private var readySize = 0
  /// The size of the messages in `ready` and `waiting` that the disk does not have.
  private var unstoredSize = 0
  private var inFlight: [Int64: QueuedMessage] = [:]
  /// The messages that wait in memory although others are sent: for older ones on the disk, or because they are rejected. Sorted.
  private var waiting: [QueuedMessage] = []
  private var waitingSize = 0
  private var blocks: [String: Block] = [:]
  /// The messages that the broker rejects for their size on this connection.
  private var oversized: Set<Int64> = []

  /// The number up to which `ready` has the messages of the disk.
  private var position: Int64 = 0
  /// Whether the disk may have more messages after it.
  private var hasMore: Bool
  /// Changes when reading starts from the beginning.
  private var generation = 0
  /// Whether the disk could not be read.
  private var hasFailed = false
  private var storing: Set<Int64> = []
  /// Acknowledged messages that the disk still has.
  private var deleting: Set<Int64> = []
  /// The number of messages that were lost because they could not be stored.
  private(set) var lostCount = 0

  /// Starts with what an earlier run has stored.
  init(hasStored: Bool = false) { hasMore = hasStored }

  var inFlightCount: Int { inFlight.count }
  /// The number of messages in memory.
  var count: Int { inFlight.count + ready.count - sentCount + waiting.count + blocks.values.count { inFlight[$0.oldest.id] == nil } }

  // MARK: Adding

  /// Adds a message behind all others.
  mutating func add(_ entry: QueuedMessage) {
    if hasMore || !isSendable(entry) { wait(entry) } else { append(entry) }
    while unstoredSize > Self.lossLimit, loseOldest() {}
  }

  private func isSendable(_ entry: QueuedMessage) -> Bool { blocks[entry.message.topic] == nil && !oversized.contains(entry.id) }

  private mutating func append(_ entry: QueuedMessage) {
    ready.append(entry)
    readySize += entry.size
    if !entry.isStored { unstoredSize += entry.size }
    position = max(position, entry.id)
  }

  private mutating func wait(_ entry: QueuedMessage) {
    let index = waiting.lastIndex { $0.id < entry.id }.map { $0 + 1 } ?? 0
    waiting.insert(entry, at: index)
    waitingSize += entry.size
    if !entry.isStored { unstoredSize += entry.size }
  }

  /// Removes the oldest message that the disk does not have. Returns false if there is none.
  private mutating func loseOldest() -> Bool {
    let index = ready[sentCount...].firstIndex { !$0.isStored }
    if let first = waiting.first, index.map({ first.id < ready[$0].id }) ?? true {
      let size = waiting.removeFirst().size
      waitingSize -= size
      unstoredSize -= size
    } else if let index {
      let size = ready.remove(at: index).size
      readySize -= size
      unstoredSize -= size
    } else {
      return false
    }
    lostCount += 1
    return true
  }

  // MARK: Sending

  /// The next message to send, which is then in flight; nil if there is none in memory.
  mutating func next(at now: Int64) -> QueuedMessage? {
    if let block = blocks.values.first(where: { $0.until <= now && inFlight[$0.oldest.id] == nil }) {
      inFlight[block.oldest.id] = block.oldest
      return block.oldest
    }
    guard sentCount < ready.count else { return nil }
    let entry = ready[sentCount]
    sentCount += 1
    if sentCount == ready.count || sentCount > 1000 {
      ready.removeFirst(sentCount)
      sentCount = 0
    }
    readySize -= entry.size
    if !entry.isStored { unstoredSize -= entry.size }
    inFlight[entry.id] = entry
    return entry
  }

  /// Removes an acknowledged message. Returns it if it is to be deleted from the disk.
  mutating func acknowledge(_ id: Int64) -> QueuedMessage? {
    guard let entry = inFlight.removeValue(forKey: id) else { return nil }
    if blocks[entry.message.topic]?.oldest.id == id {
      blocks[entry.message.topic] = nil
      rewind()
    }
    guard entry.isStored || storing.contains(id) else { return nil }
    deleting.insert(id)
    return entry
  }

  /// Keeps the messages of the topic of this one, which the broker has rejected. Its oldest is sent again at `until`.
  mutating func block(_ id: Int64, until: Int64) {
    guard let entry = inFlight.removeValue(forKey: id) else { return }
    let topic = entry.message.topic
    guard let block = blocks[topic] else {
      blocks[topic] = Block(oldest: entry, until: until)
      let others = ready[sentCount...].filter { $0.message.topic == topic }
      setReady(ready[sentCount...].filter { $0.message.topic != topic })
      return others.forEach { keep($0) }
    }
    blocks[topic]?.until = until
    guard entry.id != block.oldest.id else { return }
    blocks[topic]?.oldest = entry.id < block.oldest.id ? entry : block.oldest
    keep(entry.id < block.oldest.id ? block.oldest : entry)
  }

  /// Keeps one message until the next connection, because it is too large for the broker.
  mutating func setAside(_ id: Int64) {
    guard let entry = inFlight.removeValue(forKey: id) else { return }
    oversized.insert(id)
    keep(entry)
  }

  /// Keeps a message that is not to be sent now in memory, unless the disk has it.
  private mutating func keep(_ entry: QueuedMessage) { if !entry.isStored { wait(entry) } }

  /// Returns all messages in flight to the queue, because the connection has ended. The next one may accept what this one has rejected.
  mutating func connectionEnded() {
    let unsent = blocks.values.map(\.oldest).filter { inFlight[$0.id] == nil }
    setReady((ready[sentCount...] + inFlight.values + unsent).sorted { $0.id < $1.id })
    inFlight = [:]
    guard !blocks.isEmpty || !oversized.isEmpty else { return }
    (blocks, oversized) = ([:], [])
    rewind()
  }

  private mutating func setReady(_ entries: [QueuedMessage]) {
    (ready, sentCount) = (entries, 0)
    measure()
  }

  private mutating func measure() {
    readySize = ready[sentCount...].reduce(0) { $0 + $1.size }
    waitingSize = waiting.reduce(0) { $0 + $1.size }
    unstoredSize = (ready[sentCount...] + waiting).reduce(0) { $1.isStored ? $0 : $0 + $1.size }
  }

  // MARK: The disk

  /// Reads the disk from the beginning.
  private mutating func rewind() {
    let entries = ready[sentCount...]
    setReady([])
    entries.forEach { keep($0) }
    (position, hasMore) = (0, true)
    generation += 1
  }

  /// What to read from the disk, if there is room for it.
  var request: Request? {
    guard hasMore, readySize < Self.memoryLimit / 2 else { return nil }
    return Request(position: position, excluding: blocks.keys.sorted(), generation: generation)
  }

  /// Adds messages from the disk. `isLast` is whether it has no more.
  mutating func loaded(_ entries: [QueuedMessage], isLast: Bool, for request: Request) {
    guard request.generation == generation else { return }
    for entry in entries where entry.id > position {
      if inFlight[entry.id] == nil, !deleting.contains(entry.id), isSendable(entry) { append(entry) }
      position = entry.id
    }
    if isLast { reachedEnd() }
  }

  /// Continues with the messages in memory, because the disk cannot be read.
  mutating func loadingFailed() {
    hasFailed = true
    reachedEnd()
  }

  private mutating func reachedEnd() {
    hasMore = false
    let entries = waiting
    waiting = []
    measure()
    for entry in entries { if isSendable(entry) { append(entry) } else { wait(entry) } }
  }

  /// The messages to store: those that were queued before `time`, or all if there are too many for the memory.
  func unstored(before time: Int64) -> [QueuedMessage] {
    let isLarge = unstoredSize > 0 && readySize + waitingSize > Self.memoryLimit
    let blocked = blocks.values.map(\.oldest).filter { inFlight[$0.id] == nil }
    return (inFlight.values + blocked + ready[sentCount...] + waiting)
      .filter { !$0.isStored && (isLarge || $0.created < time) }.sorted { $0.id < $1.id }
  }

  /// Notes that messages are being stored: if they are acknowledged meanwhile, they must be deleted from the disk.
  mutating func beginStoring(_ entries: [QueuedMessage]) { storing = Set(entries.map(\.id)) }

  /// Ends storing without success: the messages are stored later.
  mutating func storingFailed() { storing = [] }

  /// Marks messages as stored, and removes from memory what does not have to be there.
  mutating func stored(_ entries: [QueuedMessage]) {
    storing = []
    let ids = Set(entries.map(\.id))
    for id in ids { inFlight[id]?.isStored = true }
    for (topic, block) in blocks where ids.contains(block.oldest.id) { blocks[topic]?.oldest.isStored = true }
    for index in ready.indices where ids.contains(ready[index].id) { ready[index].isStored = true }
    waiting.removeAll { ids.contains($0.id) }
    measure()
    trim()
  }

  /// Reads the disk again if that has failed.
  mutating func retryLoading() {
    guard hasFailed else { return }
    hasFailed = false
    rewind()
  }

  /// Notes that the disk has lost everything: what is in memory is stored again.
  mutating func storeLost() {
    for id in inFlight.keys { inFlight[id]?.isStored = false }
    for topic in blocks.keys { blocks[topic]?.oldest.isStored = false }
    for index in ready.indices { ready[index].isStored = false }
    (storing, deleting, hasFailed) = ([], [], false)
    measure()
    reachedEnd()
  }

  /// Whether the broker rejects a topic.
  func isBlocked(_ topic: String) -> Bool { blocks[topic] != nil }

  /// Notes that the disk no longer has these messages.
  mutating func deleted(_ entries: [QueuedMessage]) { deleting.subtract(entries.map(\.id)) }

  /// Removes stored messages at the end of `ready` beyond the limit from memory. What follows them waits.
  private mutating func trim() {
    guard readySize > Self.memoryLimit, let last = ready[sentCount...].lastIndex(where: \.isStored) else { return }
    var (first, size) = (ready.count, readySize)
    while first > sentCount, first > last + 1 || size > Self.memoryLimit {
      first -= 1
      size -= ready[first].size
    }
    guard first <= last else { return }
    let rest = ready[first...]
    position = rest[first].id - 1
    hasMore = true
    setReady(Array(ready[sentCount..<first]))
    rest.forEach { keep($0) }
  }
}
