// The queue of batches for the store. While the disk is full or read-only, they are buffered in memory up to a limit; beyond it, the oldest
// are lost.

import HistoryStore
import Logging
import Protocols
import SQLite
import ServiceRuntime

final class BatchQueue: EventSource {
  /// The maximum number of buffered samples: a few minutes of a car's values, 16 MB.
  static let maxWaiting = 200_000
  private static let retryInterval: Nanoseconds = 10 * .second

  private let store: StoreThread
  private let boot: Int
  private let logger = Logger(label: "recorder")
  private var waiting: [SampleBatch] = []
  private var isWriting = false
  /// The devices whose next batch follows a lost one, and thus a gap.
  private var interrupted: Set<String> = []
  private var lostCount = 0
  /// The reason why nothing can be stored, if any.
  private(set) var failure: StoreError?
  /// The number of blocks that the store dropped because the disk was full.
  private(set) var dropped = 0
  /// Called after each stored batch.
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
    // The first batch may be in use by the store.
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
    store.run { [batch, boot] (store) throws(StoreError) in
      try store.append(batch, boot: boot)
    } then: { [weak self] in
      self?.finish($0)
    }
  }

  private func finish(_ result: Result<Int, StoreError>) {
    isWriting = false
    switch result {
    case .success(let count):
      if !waiting.isEmpty { waiting.removeFirst() }
      if count > 0 { logger.warning("disk full: dropped the \(count) oldest blocks; free some space, or lower max-size") }
      dropped += count
      if failure != nil {
        let lost = lostCount == 0 ? "nothing was lost" : "\(lostCount) samples were lost"
        logger.notice("values are stored again; \(lost)")
        (failure, lostCount) = (nil, 0)
      }
      stored()
      write()
    case .failure(let error):
      if failure?.kind != error.kind { logger.error("values are buffered in memory: \(error)") }
      failure = error
      wake = SystemClock.monotonic + Self.retryInterval
    }
  }

  override func timerFired(at now: Instant) {
    wake = nil
    write()
  }

  /// Submits all batches to the store at once, because the service is stopping.
  func submitAll() {
    for batch in waiting.dropFirst(isWriting ? 1 : 0) {
      store.run { [boot] (store) throws(StoreError) in try store.append(batch, boot: boot) }
    }
    waiting = []
  }
}
