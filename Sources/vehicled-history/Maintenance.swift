// What is done now and then: merges blocks, drops what is older or larger than configured, and computes the periods of imported values.

import HistoryStore
import Logging
import Protocols
import ServiceRuntime

final class Maintenance: EventSource {
  private static let interval: Nanoseconds = 3600 * .second
  /// After the last import of a device, its periods are computed.
  private static let importDelay: Nanoseconds = 3 * .second
  /// The number of imported blocks after which blocks are merged.
  private static let importCount = 200

  private let store: StoreThread
  private let keep: Int64?
  private let maxSize: Int
  private let logger = Logger(label: "maintenance")
  private var nextRun: Instant
  private var imports: [String: (range: ClosedRange<Int64>, due: Instant)] = [:]
  private var importCount = 0
  /// The number of blocks that were dropped to limit the size.
  private(set) var dropped = 0
  /// The wall-clock time in µs; nil while it is not known for sure: no value may be dropped because of a wrong clock.
  var wall: () -> Int64? = { nil }
  /// Computes the periods of a device in a range again.
  var recut: (_ device: String, _ range: ClosedRange<Int64>) -> Void = { _, _ in }

  /// Drops blocks that are older than `keep` (µs), and the oldest of more than `maxSize` bytes.
  init(store: StoreThread, keep: Int64?, maxSize: Int, loop: EventLoop) {
    (self.store, self.keep, self.maxSize) = (store, keep, maxSize)
    nextRun = SystemClock.monotonic + 60 * .second
    super.init()
    wake = nextRun
    loop.add(self)
  }

  /// Merges blocks soon: a trip has ended.
  func tripEnded() { compact(all: true) }

  /// Notes that values were imported.
  func imported(_ device: String, _ range: ClosedRange<Int64>) {
    let known = imports[device]?.range ?? range
    let union = min(known.lowerBound, range.lowerBound)...max(known.upperBound, range.upperBound)
    imports[device] = (union, SystemClock.monotonic + Self.importDelay)
    importCount += 1
    if importCount % Self.importCount == 0 { compact(all: false) }
    updateTimer()
  }

  override func timerFired(at now: Instant) {
    for (device, imported) in imports where imported.due <= now {
      imports[device] = nil
      compact(all: true)
      recut(device, imported.range)
    }
    if nextRun <= now {
      nextRun = now + Self.interval
      compact(all: false)
      dropOld()
    }
    updateTimer()
  }

  private func updateTimer() { wake = imports.values.map(\.due).reduce(nextRun, min) }

  private func compact(all: Bool) {
    store.run { (store) throws(HistoryError) in
      try store.compact(all: all)
    } then: { [weak self] result in
      switch result {
      case .success(let damage): damage.forEach { self?.logger.warning("not merged: \($0)") }
      case .failure(let error): self?.logger.error("cannot merge blocks: \(error)")
      }
    }
  }

  private func dropOld() {
    let limit = keep.flatMap { keep in wall().map { $0 - keep } }
    store.run { [maxSize] (store) throws(HistoryError) in
      let old = try limit.map { (limit) throws(HistoryError) in try store.drop(before: limit) } ?? 0
      return (old: old, large: try store.limit(toSize: maxSize))
    } then: { [weak self] result in
      switch result {
      case .success(let count):
        if count.old > 0 { self?.logger.info("\(count.old) blocks are older than keep and were dropped") }
        guard count.large > 0 else { return }
        self?.dropped += count.large
        self?.logger.notice("\(count.large) of the oldest blocks were dropped: the history is larger than max-size")
      case .failure(let error): self?.logger.error("cannot drop old blocks: \(error)")
      }
    }
  }
}
