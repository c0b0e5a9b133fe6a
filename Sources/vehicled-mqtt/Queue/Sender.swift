// Sends the messages of the queue over the connection: states first, then event messages in order with at most half of the window, so that
// a backlog does not delay current values. Keeps the queue on the disk up to date.

import CMosquitto
import Logging
import Protocols
import SQLite
import ServiceRuntime

final class Sender: EventSource {
  /// The time after which an unacknowledged message is stored on the disk, in µs.
  private static let storeDelay: Int64 = 10_000_000
  /// How often the disk is updated.
  private static let interval: Nanoseconds = 2 * .second
  /// The pause of event messages after the broker has rejected one.
  private static let rejectionPause: Nanoseconds = 60 * .second

  private struct Box: @unchecked Sendable { let store: QueueStore }

  private let box: Box
  private let thread: BackgroundThread
  private let logger = Logger(label: "queue")
  private let publish: (OutgoingMessage) throws(BrokerFailure) -> CInt
  private var queue: SendQueue
  private var limits: BrokerLimits?
  private var inFlight: [CInt: SendQueue.Token] = [:]
  /// Acknowledged messages that the disk still has.
  private var acknowledged: [QueuedMessage] = []
  private var isUpdating = false
  private var isLoading = false
  private var eventsPausedUntil: Instant = 0
  /// Whether the last event message was rejected.
  private var rejectsEvents = false
  /// The problems that were logged since the connection was opened.
  private var reported: Set<String> = []
  /// Why the broker rejects messages, or why the disk cannot be written, if so.
  private(set) var rejection: String? { didSet { if rejection != oldValue { changed() } } }
  private(set) var failure: StoreError? { didSet { if failure?.kind != oldValue?.kind { changed() } } }
  /// Called after the rejection or the failure has changed.
  var changed: () -> Void = {}
  /// The number of event messages that were dropped because of their age or the size of the queue.
  private(set) var dropped = 0

  /// Takes ownership of the store. `publish` sends a message while there is a connection.
  init(_ store: QueueStore, loop: EventLoop, publish: @escaping (OutgoingMessage) throws(BrokerFailure) -> CInt) throws {
    box = Box(store: store)
    thread = BackgroundThread(name: "queue", loop: loop)
    self.publish = publish
    let contents = try store.contents()
    queue = SendQueue(states: contents.states, diskCount: contents.eventCount, last: contents.lastID)
    super.init()
    wake = SystemClock.monotonic + Self.interval
    loop.add(self)
  }

  // MARK: Adding

  /// Queues messages; of the retained ones, only the newest of a topic is sent.
  func add(_ messages: [OutgoingMessage]) {
    let now = SystemClock.wall
    for message in messages {
      if message.isRetained {
        queue.add(state: QueuedMessage(created: now, message: message))
      } else {
        queue.add(event: message, at: now)
      }
    }
    if !messages.isEmpty { pump() }
  }

  // MARK: Sending

  var isConnected: Bool { limits != nil }
  var stateCount: Int { queue.stateCount }
  var eventCount: Int { queue.eventCount }
  var lostCount: Int { queue.lostCount }

  func connected(_ limits: BrokerLimits) {
    self.limits = limits
    (eventsPausedUntil, rejection, reported) = (0, nil, [])
    pump()
  }

  func disconnected() {
    limits = nil
    inFlight = [:]
    queue.connectionEnded()
  }

  func acknowledged(_ id: CInt, failure: CInt?) {
    guard let token = inFlight.removeValue(forKey: id) else { return }
    if failure == MQTT_RC_NO_MATCHING_SUBSCRIBERS.code {
      // Values without a reader are normal, but a batch is lost then: the program that stores batches does not run.
      if queue.needsSubscriber(token) { return postpone(token, "the broker has no subscriber for batches; they stay in the queue") }
    } else if let failure {
      return rejected(token, failure)
    }
    // The broker accepts event messages again.
    if case .event = token, rejectsEvents { (rejection, rejectsEvents, reported) = (nil, false, []) }
    if let stored = queue.acknowledge(token) { acknowledged.append(stored) }
    pump()
  }

  private func rejected(_ token: SendQueue.Token, _ code: CInt) {
    let reason = BrokerFailure.reason(code)
    switch token {
    case .state(let topic, _):
      let isTooLarge = code == MQTT_RC_PACKET_TOO_LARGE.code
      let remedy = isTooLarge ? "raise its maximum packet size" : "allow it for the bridge's user, or change prefix in mqtt.toml"
      report("\(code) state", "the broker rejects \(topic): \(reason); \(remedy)")
      _ = queue.acknowledge(token).map { acknowledged.append($0) }
    case .event:
      return postpone(token, "the broker rejects queued messages: \(reason); they stay in the queue")
    }
    pump()
  }

  private func postpone(_ token: SendQueue.Token, _ text: String) {
    report(text, text)
    rejectsEvents = true
    queue.postpone(token)
    eventsPausedUntil = SystemClock.monotonic + Self.rejectionPause
    pump()
  }

  /// Logs a problem once per connection, because it concerns many topics.
  private func report(_ problem: String, _ text: String) {
    guard reported.insert(problem).inserted else { return }
    logger.error("\(text)")
    rejection = rejection ?? text
  }

  private func pump() {
    guard let limits else { return }
    let now = SystemClock.wall
    while inFlight.count < limits.window, let next = queue.nextState(at: now) { guard send(next) else { return } }
    let eventWindow = max(1, limits.window / 2)
    if SystemClock.monotonic >= eventsPausedUntil {
      while inFlight.count < limits.window, queue.eventsInFlight < eventWindow, let next = queue.nextEvent(at: now) {
        guard send(next) else { return }
      }
    }
    load()
  }

  private func send(_ next: (token: SendQueue.Token, message: OutgoingMessage)) -> Bool {
    if let size = limits?.packetSize, next.message.payload.count + next.message.topic.utf8.count + 64 > size {
      report(
        "size", "\(next.message.topic) has \(next.message.payload.count) bytes, more than the broker accepts; raise its maximum packet size"
      )
      if let stored = queue.acknowledge(next.token) { acknowledged.append(stored) }
      return true
    }
    do throws(BrokerFailure) {
      inFlight[try publish(next.message)] = next.token
      return true
    } catch {
      // The client reports the end of the connection.
      queue.connectionEnded()
      inFlight = [:]
      return false
    }
  }

  // MARK: The disk

  override func timerFired(at now: Instant) {
    wake = now + Self.interval
    update()
    pump()
  }

  private func update(all: Bool = false) {
    guard !isUpdating else { return }
    let now = SystemClock.wall
    let new = queue.unstored(before: all ? .max : now - Self.storeDelay)
    guard !new.isEmpty || !acknowledged.isEmpty else { return }
    let old = acknowledged
    acknowledged = []
    isUpdating = true
    queue.beginStoring(new)
    thread.run { [box] in
      Result { () throws(StoreError) in try box.store.update(store: new, remove: old, at: now) }
    } then: { [weak self] result in
      guard let self else { return }
      isUpdating = false
      switch result {
      case .success(let count):
        if failure != nil { logger.notice("the send queue is stored again") }
        failure = nil
        queue.stored(new)
        guard count > 0 else { return }
        dropped += count
        logger.warning("dropped the \(count) oldest queued messages: the send queue exceeds queue-age or queue-size")
      case .failure(let error):
        queue.storingFailed()
        acknowledged = old + acknowledged
        if failure?.kind != error.kind { logger.error("queued messages are only in memory: \(error)") }
        failure = error
      }
    }
  }

  private func load() {
    guard !isLoading, let last = queue.wanted else { return }
    isLoading = true
    thread.run { [box] in
      Result { () throws(StoreError) in try box.store.events(after: last) }
    } then: { [weak self] result in
      guard let self else { return }
      isLoading = false
      switch result {
      case .success(let loaded):
        queue.loaded(loaded.entries, rest: loaded.rest)
        pump()
      case .failure(let error):
        if failure?.kind != error.kind { logger.error("cannot read the send queue: \(error)") }
        failure = error
      }
    }
  }

  /// Stores everything that is not acknowledged. Blocks for at most some seconds.
  func close() {
    let (new, old, now) = (queue.unstored(before: .max), acknowledged, SystemClock.wall)
    thread.run { [box] in
      Result { () throws(StoreError) in try box.store.update(store: new, remove: old, at: now) }
    } then: { _ in
    }
    if !thread.wait(seconds: 10) { logger.error("disk does not respond: queued messages may be lost") }
  }
}
