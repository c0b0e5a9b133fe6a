// Periodic maintenance: merges blocks, drops blocks that exceed the configured age or size, and computes the periods of imported values.

import HistoryStore
import Logging
import Protocols
import SQLite
import ServiceRuntime

final class Maintenance: EventSource {
  private static let interval: Nanoseconds = 3600 * .second
  /// The delay after the last import for a device before its periods are computed.
  private static let importDelay: Nanoseconds = 3 * .second
  /// The number of imported blocks after which blocks are merged.
  private static let importCount = 200
  /// The maximum size of the file of imports, in bytes.
  private static let fileLimit = 1 << 16

  private let store: StoreThread
  private let keep: Int64?
  private let maxSize: Int
  /// The file that lists the devices whose periods are to be computed after an import, also after a restart.
  private let importFile: String
  private let logger = Logger(label: "maintenance")
  private var nextRun: Instant
  private var imports: [String: (range: ClosedRange<Int64>, due: Instant)] = [:]
  private var importCount = 0
  /// The number of blocks that were dropped to limit the size.
  private(set) var dropped = 0
  /// The wall-clock time in µs, with the stored offset of this boot; nil until it is certain, because a wrong clock must not cause values to
  /// be dropped.
  var wall: () -> Int64? = { nil }
  /// Recomputes the periods of a device in a range.
  var recut: (_ device: String, _ range: ClosedRange<Int64>, _ finish: @escaping () -> Void) -> Void = { _, _, _ in }

  /// Drops blocks that are older than `keep` (µs), and the oldest blocks while the data exceeds `maxSize` bytes.
  init(store: StoreThread, keep: Int64?, maxSize: Int, directory: String, loop: EventLoop) {
    (self.store, self.keep, self.maxSize) = (store, keep, maxSize)
    importFile = "\(directory)/imports"
    nextRun = SystemClock.monotonic + 60 * .second
    super.init()
    let text = (try? Files.read(importFile, limit: Self.fileLimit)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    for device in text.split(separator: "\n") { imports[String(device)] = (TimeRange.all, SystemClock.monotonic + Self.importDelay) }
    updateTimer()
    loop.add(self)
  }

  /// Stores the devices whose periods are to be computed, on the thread of the store, because the disk may be slow.
  private func storeImports() {
    let text = imports.keys.sorted().map { "\($0)\n" }.joined()
    store.run { [importFile] (_) throws(StoreError) -> String? in
      do throws(ValueError) { try Files.replace(importFile, with: Array(text.utf8)) } catch { return error.description }
      return nil
    } then: { [weak self] result in
      if case .success(let failure?) = result { self?.logger.warning("cannot store which periods are to be computed: \(failure)") }
    }
  }

  /// Merges blocks, because a trip has ended.
  func tripEnded() { compact(all: true) }

  /// Handles an import of values.
  func imported(_ device: String, _ range: ClosedRange<Int64>) {
    let known = imports[device]?.range
    let union = min(known?.lowerBound ?? .max, range.lowerBound)...max(known?.upperBound ?? .min, range.upperBound)
    imports[device] = (union, SystemClock.monotonic + Self.importDelay)
    if known == nil { storeImports() }
    importCount += 1
    if importCount % Self.importCount == 0 { compact(all: false) }
    updateTimer()
  }

  override func timerFired(at now: Instant) {
    for (device, imported) in imports where imported.due <= now {
      imports[device] = nil
      compact(all: true)
      recut(device, imported.range) { [weak self] in self?.storeImports() }
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
    store.run { (store) throws(StoreError) in
      try store.compact(all: all)
    } then: { [weak self] result in
      switch result {
      case .success(let damage): damage.forEach { self?.logger.warning("damaged block not merged: \($0)") }
      case .failure(let error): self?.logger.error("cannot merge blocks: \(error)")
      }
    }
  }

  private func dropOld() {
    let limit = keep.flatMap { keep in wall().map { $0 - keep } }
    store.run { [maxSize] (store) throws(StoreError) in
      let old = try limit.map { (limit) throws(StoreError) in try store.drop(before: limit) } ?? 0
      return (old: old, large: try store.limit(toSize: maxSize))
    } then: { [weak self] result in
      switch result {
      case .success(let count):
        if count.old > 0 { self?.logger.info("dropped \(count.old) blocks that are older than keep") }
        guard count.large > 0 else { return }
        self?.dropped += count.large
        self?.logger.notice("dropped the \(count.large) oldest blocks: the history exceeds max-size")
      case .failure(let error): self?.logger.error("cannot drop old blocks: \(error)")
      }
    }
  }
}
