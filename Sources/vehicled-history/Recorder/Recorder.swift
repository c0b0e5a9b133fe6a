// Records the selected observations: assigns them to series, and hands batches of some seconds to the store.

import HistoryStore
import Protocols
import ServiceRuntime

final class Recorder: EventSource {
  private let queue: BatchQueue
  private let selection: Selection
  /// The devices that are being recorded.
  private var builders: [String: BatchBuilder] = [:]
  /// Whether each property is recorded, and its latest series.
  private var properties: [String: [String: (isSelected: Bool, key: SeriesKey?)]] = [:]
  /// When the daemon was last heard from: the latest values were valid until then. µs of the boot.
  private var heardAt: Int64 = 0

  init(_ queue: BatchQueue, selection: Selection, loop: EventLoop) {
    (self.queue, self.selection) = (queue, selection)
    super.init()
    loop.add(self)
  }

  /// Handles that the daemon was heard from.
  func heard(at now: Int64) { heardAt = now }

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
    // An absence belongs to the series of the last value; without one there is nothing to end.
    if isSelected, let key { append(observation.content, of: key, at: observation.time) }
    return isSelected
  }

  private func append(_ content: Reading.Content, of key: SeriesKey, at time: Int64) {
    var builder = builders.removeValue(forKey: key.device) ?? BatchBuilder(device: key.device, at: heardAt)
    let due = builder.due
    builder.append(content, of: key, at: time, now: heardAt)
    let isSooner = builder.due < due || wake == nil
    builders[key.device] = builder
    if isSooner { updateTimer() }
  }

  /// Stores what was collected, and ends recording of a device that was removed.
  func remove(_ device: String) {
    cut(device)
    builders[device] = nil
    properties[device] = nil
    updateTimer()
  }

  /// Stores what was collected. The next values follow a gap.
  func interrupt() {
    flush()
    builders = [:]
    wake = nil
  }

  /// Stores what was collected until now.
  func flush() {
    for device in builders.keys.sorted() { cut(device) }
    updateTimer()
  }

  private func cut(_ device: String) {
    if let batch = builders[device]?.cut(at: heardAt) { queue.append(batch) }
  }

  override func timerFired(at now: Instant) {
    let time = SystemClock.boot / 1000
    for (device, builder) in builders where builder.due <= time { cut(device) }
    updateTimer()
  }

  private func updateTimer() {
    guard let due = builders.values.map(\.due).min() else { return wake = nil }
    let delay = due == .min ? 0 : max(0, due - SystemClock.boot / 1000)
    // A device without new values and without a heartbeat has nothing to store yet.
    wake = SystemClock.monotonic + max(delay * .microsecond, due == .min ? 0 : 100 * .millisecond)
  }
}
