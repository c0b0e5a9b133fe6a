// Records the selected observations: assigns them to series, and passes batches of a few seconds to the queue of the store.

import HistoryStore
import Observations
import Protocols
import ServiceRuntime

final class Recorder: EventSource {
  private let queue: BatchQueue
  private let selection: Selection
  /// The devices that are being recorded.
  private var builders: [String: BatchBuilder] = [:]
  /// Whether each property is recorded, and its latest series.
  private var properties: [String: [String: (isSelected: Bool, key: SeriesKey?)]] = [:]
  /// When the daemon sent its latest reply, in µs of the boot: the latest values were valid until then.
  private var lastResponse: Int64 = 0

  init(_ queue: BatchQueue, selection: Selection, loop: EventLoop) {
    (self.queue, self.selection) = (queue, selection)
    super.init()
    loop.add(self)
  }

  /// Handles any reply of the daemon, before what it contains; `time` is when it was sent.
  func daemonResponded(at time: Int64) { lastResponse = time }

  /// Records an observation of a device of this kind, and returns whether it is selected.
  @discardableResult
  func record(_ observation: Observation, kind: String) -> Bool {
    let known = properties[observation.device]?[observation.property]
    let isSelected = known?.isSelected ?? selection.includes(observation.device, kind: kind, observation.property)
    var key = known?.key
    if case .value(let value) = observation.content {
      let new = SeriesKey(device: observation.device, property: observation.property, type: value.type, unit: observation.unit)
      if let old = key, old != new, isSelected {
        append(.absent("its type or unit has changed"), of: old, at: observation.time)
      }
      key = new
    }
    if known == nil || known?.key != key { properties[observation.device, default: [:]][observation.property] = (isSelected, key) }
    // An absence ends the last value, and belongs to its series; without a value there is nothing to end.
    if isSelected, let key { append(observation.content, of: key, at: observation.time) }
    return isSelected
  }

  private func append(_ content: Reading.Content, of key: SeriesKey, at time: Int64) {
    var builder = builders.removeValue(forKey: key.device) ?? BatchBuilder(device: key.device, at: lastResponse)
    let due = builder.due
    builder.append(content, of: key, at: time, now: lastResponse)
    let isSooner = builder.due < due || wake == nil
    builders[key.device] = builder
    if isSooner { updateTimer() }
  }

  /// Stores the collected samples of a removed device, and stops recording it.
  func remove(_ device: String) {
    cut(device)
    builders[device] = nil
    properties[device] = nil
    updateTimer()
  }

  /// Stores the collected samples. The next values follow a gap.
  func interrupt() {
    flush()
    builders = [:]
    wake = nil
  }

  /// Stores the samples collected so far.
  func flush() {
    for device in builders.keys.sorted() { cut(device) }
    updateTimer()
  }

  private func cut(_ device: String) {
    if let batch = builders[device]?.cut(at: lastResponse) { queue.append(batch) }
  }

  override func timerFired(at now: Instant) {
    let time = SystemClock.boot / 1000
    for (device, builder) in builders where builder.due <= time { cut(device) }
    updateTimer()
  }

  private func updateTimer() {
    guard let due = builders.values.map(\.due).min() else { return wake = nil }
    let delay = due == .min ? 0 : max(0, due - SystemClock.boot / 1000)
    // Wait at least 100 ms: a device can be due although it has nothing to store.
    wake = SystemClock.monotonic + max(delay * .microsecond, due == .min ? 0 : 100 * .millisecond)
  }
}
