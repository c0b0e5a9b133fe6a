// Sends the messages of the queue over the connection: states first, then events and batches in order with at most half of the window, so
// that a backlog does not delay current values. `QueueWriter` keeps the disk up to date.

import CMosquitto
import Logging
import Protocols
import SQLite
import ServiceRuntime

final class Sender: EventSource {
  /// How often the disk is updated.
  private static let interval: Nanoseconds = 2 * .second
  /// The time after which rejected events and batches are sent again, in µs of the queue's clock, and rejected states.
  private static let rejectionPause: Int64 = 60_000_000
  private static let stateRejectionPause: Nanoseconds = 600 * .second

  /// A message in flight.
  private struct Sent {
    var token: SendQueue.Token
    var topic: String
    /// Whether it removes what the broker retains.
    var isClearing: Bool
  }

  private let logger = Logger(label: "queue")
  private let publish: (OutgoingMessage) throws(BrokerFailure) -> CInt
  private let writer: QueueWriter
  private var queue: SendQueue
  private var limits: BrokerLimits?
  /// By their ID on the connection.
  private var inFlight: [CInt: Sent] = [:]
  private let clock: QueueClock
  private var rejections = Rejections()
  private var statesRetriedAt: Instant = 0
  /// Whether only states are sent, because the service ends.
  private var isStopping = false
  /// The topics on which the broker retains something of this bridge, also of an earlier run.
  private(set) var retainedTopics: Set<String>
  /// Called after the rejection or the failure of the disk has changed.
  var changed: () -> Void = {}

  /// Takes ownership of the store, which has these contents. `publish` sends a message while there is a connection.
  init(
    _ store: QueueStore, _ contents: QueueStore.Contents, loop: EventLoop,
    publish: @escaping (OutgoingMessage) throws(BrokerFailure) -> CInt
  ) {
    self.publish = publish
    clock = QueueClock(after: contents.mark, boot: SystemClock.boot / 1000, wall: SystemClock.wall)
    queue = SendQueue(contents.queue)
    retainedTopics = contents.topics
    writer = QueueWriter(store, retained: contents.retained, loop: loop)
    super.init()
    writer.changed = { [unowned self] in changed() }
    wake = SystemClock.monotonic + Self.interval
    loop.add(self)
  }

  private var now: Int64 { clock.time(boot: SystemClock.boot / 1000) }
  private var mark: QueueClock.Mark { QueueClock.Mark(time: now, wall: SystemClock.wall) }

  // MARK: Adding

  /// Queues messages; of the retained ones, only the newest of a topic is sent.
  func add(_ messages: [OutgoingMessage]) {
    guard !messages.isEmpty else { return }
    for message in messages {
      queue.add(message, at: now)
      if message.isRetained, !message.payload.isEmpty, retainedTopics.insert(message.topic).inserted {
        writer.topicChanged(message.topic, isUsed: true)
      }
    }
    pump()
  }

  /// Notes the properties of which the broker retains a value.
  func setRetained(_ properties: Set<String>) { writer.retained = properties }

  /// Sends the stored states of an earlier run whose topics are still current, and drops the others.
  func release(_ isCurrent: (String) -> Bool) {
    queue.release(isCurrent).forEach { writer.remove($0) }
    pump()
  }

  // MARK: Sending

  var isConnected: Bool { limits != nil }
  /// Whether nothing more is to be sent now.
  var isIdle: Bool { inFlight.isEmpty }
  /// Why the broker rejects messages, or why the disk cannot be used, if so.
  var problem: String? { rejections.summary ?? writer.failure.map { "the send queue cannot be stored: \($0)" } }

  func connected(_ limits: BrokerLimits) {
    self.limits = limits
    rejections = Rejections()
    statesRetriedAt = SystemClock.monotonic
    pump()
  }

  func disconnected() {
    limits = nil
    inFlight = [:]
    queue.connectionEnded()
  }

  /// Sends only these states from now on, in this order.
  func stop(_ last: [OutgoingMessage]) {
    isStopping = true
    queue.discardPendingStates()
    add(last)
  }

  func acknowledged(_ id: CInt, failure: CInt?) {
    guard let sent = inFlight.removeValue(forKey: id) else { return }
    // Values without a reader are normal, but a batch is lost then.
    if let failure, failure != MQTT_RC_NO_MATCHING_SUBSCRIBERS.code || sent.token.isBatch {
      rejected(sent, failure)
    } else {
      accepted(sent)
    }
    pump()
  }

  private func accepted(_ sent: Sent) {
    queue.acknowledge(sent.token).map { writer.remove($0) }
    if sent.isClearing, retainedTopics.remove(sent.topic) != nil { writer.topicChanged(sent.topic, isUsed: false) }
    if !queue.isBlocked(sent.topic), rejections.accepted(sent.topic) {
      logger.notice("the broker accepts all topics again")
      changed()
    }
  }

  private func rejected(_ sent: Sent, _ code: CInt) {
    let topic = sent.topic
    switch code {
    case MQTT_RC_PACKET_TOO_LARGE.code: return setAside(sent.token, topic, size: nil)
    case MQTT_RC_NO_MATCHING_SUBSCRIBERS.code:
      let text = "the broker has no subscriber for batches; they stay in the queue; start the program that stores them"
      report(topic, text, kind: "subscriber")
    default:
      let remedy = sent.token.isBatch ? "allow it for the bridge's user" : "allow it for the bridge's user, or change prefix in mqtt.toml"
      report(topic, "the broker rejects \(topic): \(BrokerFailure.reason(code)); \(remedy)", kind: "\(code)")
    }
    queue.reject(sent.token, until: now + Self.rejectionPause)
  }

  /// Keeps a message that is too large for the broker. `size` is that of its payload, if known.
  private func setAside(_ token: SendQueue.Token, _ topic: String, size: Int?) {
    let text = size.map { "a message of \($0) bytes on \(topic)" } ?? "a message on \(topic)"
    report(topic, "\(text) is larger than the broker accepts; raise its maximum packet size, then restart vehicled-mqtt", kind: "size")
    queue.setAside(token)
  }

  private func report(_ topic: String, _ text: String, kind: String) {
    if rejections.add(topic, text, kind: kind) { logger.error("\(text)") }
    changed()
  }

  private func pump() {
    guard let limits else { return }
    let now = now
    while inFlight.count < limits.window, let next = queue.nextState(at: now) { guard send(next) else { return } }
    guard !isStopping else { return }
    let window = max(1, limits.window / 2)
    while inFlight.count < limits.window, queue.inFlightCount < window, let next = queue.nextInOrder(at: now) {
      guard send(next) else { return }
    }
    load()
  }

  /// Returns whether the connection still exists.
  private func send(_ next: (token: SendQueue.Token, message: OutgoingMessage)) -> Bool {
    let (topic, size) = (next.message.topic, next.message.payload.count)
    if let limit = limits?.packetSize, size + topic.utf8.count + 64 > limit {
      setAside(next.token, topic, size: size)
      return true
    }
    do throws(BrokerFailure) {
      inFlight[try publish(next.message)] = Sent(token: next.token, topic: topic, isClearing: next.message.payload.isEmpty)
      return true
    } catch {
      guard error.isOfMessage else {
        // The client reports the end of the connection.
        disconnected()
        return false
      }
      report(topic, "cannot send a message on \(topic): \(error)", kind: "message")
      queue.setAside(next.token)
      return true
    }
  }

  // MARK: The disk

  override func timerFired(at now: Instant) {
    wake = now + Self.interval
    if now >= statesRetriedAt + Self.stateRejectionPause {
      statesRetriedAt = now
      queue.retryStates()
    }
    store()
    pump()
  }

  private func store() {
    guard !writer.isBusy else { return }
    if writer.isTimeToRetryReading { queue.retryLoading() }
    writer.reportLosses(queue.lostCount)
    let new = queue.unstored(before: now - QueueWriter.storeDelay)
    queue.beginStoring(new)
    writer.store(new, at: mark) { [weak self] outcome in
      switch outcome {
      case .stored(let deleted): self?.queue.updated(stored: new, deleted: deleted)
      case .failed: self?.queue.storingFailed()
      case .lost: self?.storeLost()
      }
    }
  }

  private func load() {
    guard !writer.isReading, let (kind, request) = queue.request else { return }
    writer.read(kind, request) { [weak self] result in
      guard let self else { return }
      switch result {
      case .read(let entries, let isLast): queue.loaded(kind, (entries, isLast), for: request)
      case .failed: queue.loaded(kind, nil, for: request)
      case .lost: storeLost()
      }
      pump()
    }
  }

  /// Stores again what is in memory.
  private func storeLost() {
    queue.storeLost()
    for topic in retainedTopics { writer.topicChanged(topic, isUsed: true) }
  }

  /// Stores everything that is not acknowledged. Blocks for at most some seconds.
  func close() { writer.close(queue.unstored(before: .max), at: mark) }
}

extension SendQueue.Token {
  fileprivate var isBatch: Bool { if case .batch = self { true } else { false } }
}
