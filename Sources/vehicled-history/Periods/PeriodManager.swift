// Manages the periods of all devices: passes observations to the trackers, stores the resulting periods, and recomputes periods from
// recorded values.

import HistoryStore
import Logging
import Observations
import Protocols
import SQLite
import ServiceRuntime
import Trips
import Varlink

final class PeriodManager: EventSource {
  private static let interval: Nanoseconds = 10 * .second

  private struct Device {
    var tracker = PeriodTracker()
    var axis: LiveAxis
    var numbers = PeriodNumbers()
    /// The time zones of the open periods, by the IDs of the detector.
    var zones: [Int: String] = [:]
    /// The number of replays and resets so far: the result of an outdated replay is ignored.
    var generation = 0
    /// Whether a period could not be stored, so that the periods must be recomputed.
    var hasFailed = false
  }

  private let store: StoreThread
  private let replays: ReaderThread
  private let rules: PeriodRules
  private let logger = Logger(label: "periods")
  private var axis: LiveAxis
  private var devices: [String: Device] = [:]

  /// Stores all observed values, so that a replay can read them.
  var flush: () -> Void = {}
  /// Whether the store is writable.
  var canStore: () -> Bool = { true }
  /// Called when a period of a device has started or ended.
  var changed: (_ device: String, _ kind: DetectedPeriod.Kind, _ hasEnded: Bool) -> Void = { _, _, _ in }

  init(store: StoreThread, replays: ReaderThread, rules: PeriodRules, axis: LiveAxis, loop: EventLoop) {
    (self.store, self.replays, self.rules, self.axis) = (store, replays, rules, axis)
    super.init()
    wake = SystemClock.monotonic + Self.interval
    loop.add(self)
  }

  /// Handles a recorded observation.
  func observe(_ observation: Observation) {
    if devices[observation.device] == nil {
      devices[observation.device] = Device(axis: axis)
      replay(observation.device)
    }
    guard let device = devices[observation.device] else { return }
    perform(device.tracker.observe(observation, at: device.axis.wall(observation.time)), observation.device)
  }

  /// Handles a new clock offset of this boot. If it differs by more than a second, the times of the detectors are wrong.
  func setOffset(_ offset: Int64) {
    axis.offset = offset
    for (name, device) in devices where abs(device.axis.offset - offset) > 1_000_000 { replay(name) }
  }

  override func timerFired(at now: Instant) {
    wake = now + Self.interval
    let time = SystemClock.boot / 1000
    for (name, device) in devices {
      // Periods that could not be stored are recomputed once the store is writable.
      if device.hasFailed {
        if canStore() { replay(name) }
      } else {
        perform(device.tracker.advance(to: device.axis.wall(time)), name)
      }
    }
  }

  /// The open periods of all devices as of now.
  var openPeriods: [HistoryContract.PeriodMethod.Result] {
    devices.flatMap { name, device in
      device.tracker.openPeriods.map { details($0, name, at: device.tracker.latest) }
    }
  }

  /// Stores the open periods as of now.
  func saveOpen() {
    for (name, device) in devices { for period in device.tracker.openPeriods { save(period, name) } }
  }

  // MARK: Storing

  private func perform(_ actions: [PeriodTracker.Action], _ name: String) {
    for action in actions {
      switch action {
      case .save(let period):
        let isNew = devices[name]?.zones[period.id] == nil
        if isNew, period.end == nil { devices[name]?.zones[period.id] = LocalZone.current() }
        save(period, name)
        if isNew, period.end == nil { changed(name, period.kind, false) }
        if !isNew, period.end != nil { changed(name, period.kind, true) }
        if period.end != nil { devices[name]?.zones[period.id] = nil }
      case .remove(let id):
        devices[name]?.zones[id] = nil
        guard let numbers = devices[name]?.numbers else { continue }
        store.run { (store) throws(StoreError) in
          try store.remove(id, numbers)
        } then: { [weak self] in
          self?.finish($0, name)
        }
      }
    }
  }

  private func details(_ period: DetectedPeriod, _ name: String, at now: Int64) -> HistoryContract.PeriodMethod.Result {
    let zone = devices[name]?.zones[period.id] ?? LocalZone.current()
    return PeriodMapping.details(period, device: name, zone: zone, end: period.end ?? max(period.start, now))
  }

  private func save(_ period: DetectedPeriod, _ name: String) {
    guard let device = devices[name] else { return }
    let record = PeriodRecord(detected: period.id, details: details(period, name, at: device.tracker.latest))
    store.run { [numbers = device.numbers, axis = device.axis] (store) throws(StoreError) in
      try store.save(record, numbers, axis)
    } then: { [weak self] in
      self?.finish($0, name)
    }
  }

  private func finish(_ result: Result<Void, StoreError>, _ name: String) {
    guard case .failure(let error) = result, devices[name]?.hasFailed == false else { return }
    logger.error("cannot store a period of \(name): \(error)")
    devices[name]?.hasFailed = true
  }

  // MARK: Recomputing

  /// Resets a device whose values were deleted: its next period starts now.
  func reset(_ name: String) {
    guard devices[name] != nil else { return }
    devices[name] = Device(axis: axis, generation: (devices[name]?.generation ?? 0) + 1)
    devices[name]?.tracker.beginReplay()
    perform(devices[name]?.tracker.goLive(with: PeriodDetector(rules: rules), periods: [], at: .min) ?? [], name)
  }

  /// Recomputes the periods of a device that can still change, if it is observed.
  func replayIfObserved(_ name: String) { if devices[name] != nil { replay(name) } }

  /// Continues the periods of a renamed device. If a device with the old name is still observed, its first period starts with its next value.
  func rename(_ name: String, to new: String) {
    let wasObserved = devices.removeValue(forKey: name) != nil
    if wasObserved || devices[new] != nil { replay(new) }
  }

  /// Recomputes the periods of a device since `start` (µs since the epoch) or, without `start`, those that can continue after a restart.
  func replay(
    _ name: String, from start: Int64? = nil, progress: Progress = Progress(),
    finish: @escaping (Result<Int, any Error>) -> Void = { _ in }
  ) {
    flush()
    let old = devices[name]
    let device = Device(tracker: old?.tracker ?? PeriodTracker(), axis: axis, generation: (old?.generation ?? 0) + 1)
    device.tracker.beginReplay()
    devices[name] = device
    let (axis, rules, generation) = (axis, rules, device.generation)
    let now = axis.wall(SystemClock.boot / 1000)
    // Wait until the flushed values are stored.
    store.run { (_) throws(StoreError) in
    } then: { [weak self] _ in
      self?.replays.run { reader in
        let replayRange = try ReplayRange(reader, device: name, from: start, boot: axis.boot)
        var replay = PeriodReplay(rules: rules)
        if replayRange.start <= now {
          try replay.read(reader, device: name, in: replayRange.start...now) { progress.set($0, in: replayRange.start...now) }
        }
        let periods = replay.finish(at: nil)
        return (replay: replay, periods: periods, replayRange: replayRange)
      } then: { [weak self] result in
        guard let self, self.devices[name]?.generation == generation else { return finish(.success(0)) }
        switch result {
        case .success(let found):
          found.replay.damage.forEach { self.logger.warning("skipped damaged block: \($0)") }
          self.finishReplay(name, found.replay, found.periods, found.replayRange, at: now, finish)
        case .failure(let error):
          self.logger.error("cannot recompute the periods of \(name): \(error)")
          self.perform(self.devices[name]?.tracker.goLive(with: PeriodDetector(rules: rules), periods: [], at: .min) ?? [], name)
          finish(.failure(error))
        }
      }
    }
  }

  private func finishReplay(
    _ name: String, _ replay: PeriodReplay, _ periods: [DetectedPeriod], _ replayRange: ReplayRange, at now: Int64,
    _ finish: @escaping (Result<Int, any Error>) -> Void
  ) {
    guard let device = devices[name] else { return finish(.success(0)) }
    let records = periods.map { period in
      let zone = replayRange.zone(at: period.start)
      if period.end == nil { devices[name]?.zones[period.id] = zone }
      return PeriodRecord(
        detected: period.id,
        details: PeriodMapping.details(period, device: name, zone: zone, end: period.end ?? max(period.start, now)))
    }
    if !records.isEmpty {
      // Preserve a period that ends exactly when the first new one starts.
      let range = min(replayRange.start, now - 1) &+ 1...Int64.max
      store.run { [numbers = device.numbers, axis = device.axis, damaged = replay.damagedRanges] (store) throws(StoreError) in
        try store.replace(name, in: range, with: records, numbers, axis, damaged: damaged)
      } then: { [weak self] result in
        self?.finish(result.map { _ in }, name)
        finish(result.mapError { $0 })
      }
    } else {
      finish(.success(0))
    }
    perform(device.tracker.goLive(with: replay.detector, periods: periods, at: now), name)
  }

  /// Recomputes the periods of a device that overlap a range of wall-clock time (µs). `finish` receives their number.
  func recut(
    _ name: String, in range: ClosedRange<Int64>, progress: Progress, finish: @escaping (Result<Int, any Error>) -> Void
  ) {
    let (axis, rules, isLive) = (axis, rules, devices[name] != nil)
    flush()
    store.run { (_) throws(StoreError) in
    } then: { [weak self] _ in
      self?.replays.run { reader -> (range: ClosedRange<Int64>, records: [PeriodRecord], replay: PeriodReplay)? in
        guard let extended = try ReplayRange.extended(reader, device: name, range, isLive: isLive) else { return nil }
        let replayRange = try ReplayRange(reader, device: name, from: extended.lowerBound, boot: axis.boot)
        var replay = PeriodReplay(rules: rules)
        try replay.read(reader, device: name, in: extended) { progress.set($0, in: extended) }
        let last = min(extended.upperBound, replay.end ?? extended.upperBound)
        // Values that no period depends on may follow the last ones that one does.
        let records = replay.finish(at: last).map { period in
          // A period that is still open at the end of the range ends there: the next stored period, if any, follows.
          var period = period
          period.end = period.end ?? max(period.start, last)
          return PeriodRecord(
            detected: period.id,
            details: PeriodMapping.details(period, device: name, zone: replayRange.zone(at: period.start), end: period.end ?? period.start))
        }
        return (extended, records, replay)
      } then: { [weak self] result in
        guard let self else { return }
        switch result {
        case .success(nil): self.replay(name, from: range.lowerBound, progress: progress, finish: finish)
        case .success(let found?):
          let first = found.range.lowerBound &+ 1
          let inner = first...max(first, found.range.upperBound - 1)
          found.replay.damage.forEach { self.logger.warning("skipped damaged block, and kept its periods: \($0)") }
          self.store.run { (store) throws(StoreError) in
            try store.replace(name, in: inner, with: found.records, PeriodNumbers(), axis, damaged: found.replay.damagedRanges)
          } then: {
            finish($0.mapError { $0 })
          }
        case .failure(let error): finish(.failure(error))
        }
      }
    }
  }
}
