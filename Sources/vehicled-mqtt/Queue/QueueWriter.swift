// Stores the send queue and reads it again, on a thread of its own: a slow disk must not delay a message. Collects what is to be changed
// until the next time.

import Logging
import Protocols
import SQLite
import ServiceRuntime

final class QueueWriter {
  enum StoreOutcome {
    /// With the acknowledged messages that were deleted.
    case stored(deleted: [QueuedMessage])
    case failed
    /// The file was damaged and replaced by an empty one.
    case lost
  }

  enum ReadOutcome {
    case read([QueuedMessage], isLast: Bool)
    case failed
    case lost
  }

  /// The time after which an unacknowledged message is stored, in µs.
  static let storeDelay: Int64 = 10_000_000
  /// The time after which reading is tried again.
  private static let readPause: Nanoseconds = 60 * .second

  /// Why the store failed.
  private struct Failure: Error {
    var error: StoreError
    /// Whether a damaged file was replaced by an empty one.
    var isReplaced = false
  }

  private struct Box: @unchecked Sendable {
    let store: QueueStore

    /// Uses the store, and replaces its file if it is damaged.
    func result<Success>(_ body: (QueueStore) throws(StoreError) -> Success) -> Result<Success, Failure> {
      do throws(StoreError) { return .success(try body(store)) } catch {
        guard error.kind == .damaged else { return .failure(Failure(error: error)) }
        do throws(StoreError) { try store.replace() } catch { return .failure(Failure(error: error)) }
        return .failure(Failure(error: error, isReplaced: true))
      }
    }
  }

  private let box: Box
  private let thread: BackgroundThread
  private let logger = Logger(label: "queue")
  /// The properties of which the broker retains a value.
  var retained: Set<String>
  private var storedRetained: Set<String>
  private var topics: [String: Bool] = [:]
  /// Acknowledged messages that the disk still has.
  private var acknowledged: [QueuedMessage] = []
  private(set) var isBusy = false
  private(set) var isReading = false
  private var readRetry: Instant?
  private var lostCount = 0
  /// Why the disk cannot be used, if so.
  private(set) var failure: StoreError? { didSet { if failure?.kind != oldValue?.kind { changed() } } }
  /// Called after the failure has changed.
  var changed: () -> Void = {}

  init(_ store: QueueStore, retained: Set<String>, loop: EventLoop) {
    box = Box(store: store)
    thread = BackgroundThread(name: "queue", loop: loop)
    (self.retained, storedRetained) = (retained, retained)
    if let damage = store.damage { reportReplacement(damage) }
  }

  /// Deletes an acknowledged message at the next time.
  func remove(_ entry: QueuedMessage) { acknowledged.append(entry) }

  /// Stores at the next time whether something is retained on a topic.
  func topicChanged(_ topic: String, isUsed: Bool) { topics[topic] = isUsed }

  private func update(_ messages: [QueuedMessage]) -> QueueStore.Update {
    QueueStore.Update(store: messages, remove: acknowledged, topics: topics, retained: retained == storedRetained ? nil : retained)
  }

  /// Stores messages and what else has changed.
  func store(_ messages: [QueuedMessage], at mark: QueueClock.Mark, then finish: @escaping (StoreOutcome) -> Void) {
    let update = update(messages)
    guard !update.isEmpty else { return }
    (acknowledged, topics, isBusy) = ([], [:], true)
    thread.run { [box] in
      box.result { (store) throws(StoreError) in try store.apply(update, at: mark) }
    } then: { [weak self] result in
      guard let self else { return }
      isBusy = false
      switch result {
      case .success(let dropped):
        if failure != nil { logger.notice("the send queue is stored again") }
        failure = nil
        storedRetained = update.retained ?? storedRetained
        if dropped > 0 { logger.warning("dropped the \(dropped) oldest queued messages: the send queue exceeds queue-age or queue-size") }
        finish(.stored(deleted: update.remove))
      case .failure(let failure):
        acknowledged = update.remove + acknowledged
        topics.merge(update.topics) { newer, _ in newer }
        finish(failed(failure, "queued messages are only in memory") ? .lost : .failed)
      }
    }
  }

  /// Reads messages.
  func read(_ kind: QueuedMessage.Kind, _ request: MessageLane.Request, then finish: @escaping (ReadOutcome) -> Void) {
    isReading = true
    thread.run { [box] in
      box.result { (store) throws(StoreError) in try store.messages(kind, request) }
    } then: { [weak self] result in
      guard let self else { return }
      isReading = false
      switch result {
      case .success(let (entries, isLast)):
        if readRetry != nil { (readRetry, failure) = (nil, nil) }
        finish(.read(entries, isLast: isLast))
      case .failure(let failure):
        readRetry = SystemClock.monotonic + Self.readPause
        finish(failed(failure, "cannot read the send queue") ? .lost : .failed)
      }
    }
  }

  /// Whether reading has failed some time ago. The next read then begins a new pause if it fails as well.
  var isTimeToRetryReading: Bool { readRetry.map { SystemClock.monotonic >= $0 } ?? false }

  /// Notes a failure. Returns whether a damaged file was replaced.
  private func failed(_ failure: Failure, _ text: String) -> Bool {
    if failure.isReplaced {
      reportReplacement(failure.error)
      (acknowledged, storedRetained) = ([], [])
      return true
    }
    if self.failure?.kind != failure.error.kind { logger.error("\(text): \(failure.error)") }
    self.failure = failure.error
    return false
  }

  private func reportReplacement(_ error: StoreError) {
    logger.error("\(error); it is now \(box.store.damagedPath), and a new send queue begins")
  }

  /// Reports messages that were lost because the disk cannot be used. `count` is that of all since the start.
  func reportLosses(_ count: Int) {
    guard count > lostCount else { return }
    logger.error("lost the \(count - lostCount) oldest queued messages: the memory for messages that cannot be stored is full")
    lostCount = count
  }

  /// Stores messages at the end. Blocks for at most some seconds.
  func close(_ messages: [QueuedMessage], at mark: QueueClock.Mark) {
    let update = update(messages)
    thread.run { [box] in
      box.result { (store) throws(StoreError) in try store.apply(update, at: mark) }
    } then: { _ in
    }
    if !thread.wait(seconds: 10) { logger.error("disk does not respond: queued messages may be lost") }
  }
}
