// Sends the messages of the queue over the connection: states first, then events and batches in order with at most half of the window, so
// that a backlog does not delay current values. Keeps the queue on the disk up to date.

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
  /// The time after which rejected events and batches are sent again, in µs of the queue's clock, and rejected states.
  private static let rejectionPause: Int64 = 60_000_000
  private static let stateRejectionPause: Nanoseconds = 600 * .second

  private struct Box: @unchecked Sendable { let store: QueueStore }

  private let box: Box
  private let thread: BackgroundThread
  private let logger = Logger(label: "queue")
  private let publish: (OutgoingMessage) throws(BrokerFailure) -> CInt
  private var queue: SendQueue
  private var limits: BrokerLimits?
  /// The messages in flight by their ID on the connection.
  private var inFlight: [CInt: (token: SendQueue.Token, topic: String)] = [:]
  /// Acknowledged messages that the disk still has.
  private var acknowledged: [QueuedMessage] = []
  private var isUpdating = false
  private var isLoading = false
  private let clock: QueueClock
  private var rejections = Rejections()
  /// The properties of which the broker retains a value, also of an earlier run.
  var retained: Set<String>
  private var storedRetained: Set<String>
  private var statesRetriedAt: Instant = 0
  /// Whether only states are sent, because the service ends.
  private var isStopping = false
  /// Why the disk cannot be written or read, if so.
  private(set) var failure: StoreError? { didSet { if failure?.kind != oldValue?.kind { changed() } } }
  /// Called after the rejection or the failure has changed.
  var changed: () -> Void = {}

  /// Takes ownership of the store. `publish` sends a message while there is a connection.
  init(_ store: QueueStore, loop: EventLoop, publish: @escaping (OutgoingMessage) throws(BrokerFailure) -> CInt) throws {
    box = Box(store: store)
    thread = BackgroundThread(name: "queue", loop: loop)
    self.publish = publish
    clock = QueueClock(after: try store.mark(), boot: SystemClock.boot / 1000, wall: SystemClock.wall)
    queue = SendQueue(try store.contents())
    retained = try store.retained()
    storedRetained = retained
    super.init()
    wake = SystemClock.monotonic + Self.interval
    loop.add(self)
  }

  private var now: Int64 { clock.time(boot: SystemClock.boot / 1000) }

  // MARK: Adding

  /// Queues messages; of the retained ones, only the newest of a topic is sent.
  func add(_ messages: [OutgoingMessage]) {
    guard !messages.isEmpty else { return }
    for message in messages { queue.add(message, at: now) }
    pump()
  }

  /// Sends the stored states of an earlier run whose topics are still current, and drops the others.
  func release(_ isCurrent: (String) -> Bool) {
    acknowledged += queue.release(isCurrent)
    pump()
  }

  // MARK: Sending

  var isConnected: Bool { limits != nil }
  /// Whether nothing more is to be sent now.
  var isIdle: Bool { inFlight.isEmpty }
  /// Why the broker rejects messages, if so.
  var rejection: String? { rejections.summary }

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

  /// Sends only states from now on.
  func stop() { isStopping = true }

  func acknowledged(_ id: CInt, failure: CInt?) {
    guard let (token, topic) = inFlight.removeValue(forKey: id) else { return }
    // Values without a reader are normal, but a batch is lost then.
    if let failure, failure != MQTT_RC_NO_MATCHING_SUBSCRIBERS.code || token.isBatch {
      rejected(token, topic, failure)
    } else {
      queue.acknowledge(token).map { acknowledged.append($0) }
      if rejections.accepted(topic) {
        logger.notice("the broker accepts all topics again")
        changed()
      }
    }
    pump()
  }

  private func rejected(_ token: SendQueue.Token, _ topic: String, _ code: CInt) {
    switch code {
    case MQTT_RC_PACKET_TOO_LARGE.code: return setAside(token, topic, size: nil)
    case MQTT_RC_NO_MATCHING_SUBSCRIBERS.code:
      let text = "the broker has no subscriber for batches; they stay in the queue; start the program that stores them"
      report(topic, text, kind: "subscriber")
    default:
      let remedy = token.isBatch ? "allow it for the bridge's user" : "allow it for the bridge's user, or change prefix in mqtt.toml"
      report(topic, "the broker rejects \(topic): \(BrokerFailure.reason(code)); \(remedy)", kind: "\(code)")
    }
    queue.reject(token, until: now + Self.rejectionPause)
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

  private func send(_ next: (token: SendQueue.Token, message: OutgoingMessage)) -> Bool {
    let (topic, size) = (next.message.topic, next.message.payload.count)
    if let limit = limits?.packetSize, size + topic.utf8.count + 64 > limit {
      setAside(next.token, topic, size: size)
      return true
    }
    do throws(BrokerFailure) {
      inFlight[try publish(next.message)] = (next.token, topic)
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
    if now >= statesRetriedAt + Self.stateRejectionPause {
      statesRetriedAt = now
      queue.retryStates()
    }
    update()
    pump()
  }

  private func update() {
    guard !isUpdating else { return }
    let mark = QueueClock.Mark(time: now, wall: SystemClock.wall)
    let new = queue.unstored(before: mark.time - Self.storeDelay)
    let retained = retained == storedRetained ? nil : retained
    guard !new.isEmpty || !acknowledged.isEmpty || retained != nil else { return }
    let old = acknowledged
    acknowledged = []
    isUpdating = true
    queue.beginStoring(new)
    thread.run { [box] in
      Result { () throws(StoreError) in try box.store.update(store: new, remove: old, retained: retained, at: mark) }
    } then: { [weak self] result in
      guard let self else { return }
      isUpdating = false
      switch result {
      case .success(let dropped):
        if failure != nil { logger.notice("the send queue is stored again") }
        failure = nil
        queue.updated(stored: new, deleted: old)
        storedRetained = retained ?? storedRetained
        if dropped > 0 { logger.warning("dropped the \(dropped) oldest queued messages: the send queue exceeds queue-age or queue-size") }
      case .failure(let error):
        queue.storingFailed()
        acknowledged = old + acknowledged
        failed(error, "queued messages are only in memory")
      }
    }
  }

  private func load() {
    guard !isLoading, let (kind, request) = queue.request else { return }
    isLoading = true
    thread.run { [box] in
      Result { () throws(StoreError) in try box.store.messages(kind, request) }
    } then: { [weak self] result in
      guard let self else { return }
      isLoading = false
      switch result {
      case .success(let loaded): queue.loaded(kind, loaded, for: request)
      case .failure(let error):
        queue.loaded(kind, nil, for: request)
        failed(error, "cannot read the send queue")
      }
      pump()
    }
  }

  private func failed(_ error: StoreError, _ text: String) {
    if failure?.kind != error.kind { logger.error("\(text): \(error)") }
    failure = error
  }

  /// Stores everything that is not acknowledged. Blocks for at most some seconds.
  func close() {
    let (new, old, mark) = (queue.unstored(before: .max), acknowledged, QueueClock.Mark(time: now, wall: SystemClock.wall))
    thread.run { [box, retained] in
      Result { () throws(StoreError) in try box.store.update(store: new, remove: old, retained: retained, at: mark) }
    } then: { _ in
    }
    if !thread.wait(seconds: 10) { logger.error("disk does not respond: queued messages may be lost") }
  }
}

extension SendQueue.Token {
  fileprivate var isBatch: Bool { if case .batch = self { true } else { false } }
}
