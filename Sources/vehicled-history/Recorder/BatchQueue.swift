// The batches that wait for the store. While the disk is full or read-only they wait in memory, up to a limit; then the oldest are lost.

import HistoryStore
import Logging
import Protocols
import ServiceRuntime

final class BatchQueue: EventSource {
  /// The number of samples that wait at most: some minutes of a car, 16 MB.
  static let maxWaiting = 200_000
  private static let retryInterval: Nanoseconds = 10 * .second

  private let store: StoreThread
  private let boot: Int
  private let logger = Logger(label: "recorder")
  private var waiting: [SampleBatch] = []
  private var isWriting = false
  /// The devices whose next batch follows a lost one.
  private var interrupted: Set<String> = []
  private var lostCount = 0
  /// Why nothing can be stored.
  private(set) var failure: HistoryError?
  /// The number of blocks that the store has dropped because the disk was full.
  private(set) var dropped = 0
  /// Called after each batch that was stored.
  var stored: () -> Void = {}

  init(_ store: StoreThread, boot: Int, loop: EventLoop) {
    (self.store, self.boot) = (store, boot)
    super.init()
    loop.add(self)
  }

  func append(_ batch: SampleBatch) {
    waiting.append(batch)
    limit()
    write()
  }

  private func limit() {
    var count = waiting.reduce(0) { $0 + $1.entries.count }
    // The first batch may be with the store.
    let first = isWriting ? 1 : 0
    while count > Self.maxWaiting, waiting.count > first + 1 {
      let lost = waiting.remove(at: first)
      count -= lost.entries.count
      lostCount += lost.entries.count
      if let next = waiting.firstIndex(where: { $0.device == lost.device }) {
        waiting[next].continues = false
      } else {
        interrupted.insert(lost.device)
      }
    }
  }

  private func write() {
    guard !isWriting, wake == nil, var batch = waiting.first else { return }
    if interrupted.remove(batch.device) != nil {
      batch.continues = false
      waiting[0] = batch
    }
    isWriting = true
    store.run { [batch, boot] (store) throws(HistoryError) in
      try store.append(batch, boot: boot)
    } then: { [weak self] in
      self?.finish($0)
    }
  }

  private func finish(_ result: Result<Int, HistoryError>) {
    isWriting = false
    switch result {
    case .success(let count):
      if !waiting.isEmpty { waiting.removeFirst() }
      if count > 0 { logger.warning("disk full: \(count) of the oldest blocks were dropped; free some space or lower max-size") }
      dropped += count
      if failure != nil {
        let lost = lostCount == 0 ? "nothing was lost" : "\(lostCount) samples were lost"
        logger.notice("values are stored again; \(lost)")
        (failure, lostCount) = (nil, 0)
      }
      stored()
      write()
    case .failure(let error):
      if failure?.kind != error.kind { logger.error("values wait in memory: \(error)") }
      failure = error
      wake = SystemClock.monotonic + Self.retryInterval
    }
  }

  override func timerFired(at now: Instant) {
    wake = nil
    write()
  }

  /// Hands everything to the store at once: the service ends.
  func submitAll() {
    for batch in waiting.dropFirst(isWriting ? 1 : 0) {
      store.run { [boot] (store) throws(HistoryError) in try store.append(batch, boot: boot) }
    }
    waiting = []
  }
}
