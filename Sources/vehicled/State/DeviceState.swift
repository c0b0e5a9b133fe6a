// The state of one device: the latest value of each property, its time, and how long it is fresh. A value that is stale or
// whose link is down is absent with a reason, never shown as current.

import Protocols
import Varlink

@Loop final class DeviceState: DeviceObserver {
  /// The state of one property.
  struct Slot {
    var content: Reading.Content
    /// Whether subscribers must be notified at the end of this turn of the loop.
    var isChanged = false
    /// When the value was measured (CLOCK_BOOTTIME, ns), or 0 if there has been none.
    var measuredAt: Int64 = 0
    /// When the value was measured, or since when it is absent for this reason (wall time, µs); 0 if nothing was reported.
    var wall: Int64 = 0
    /// When subscribers were last notified (CLOCK_BOOTTIME, ns).
    var notified: Int64 = 0

    /// Marks the property as changed at this time (CLOCK_BOOTTIME, ns), so that subscribers are notified at the end of this turn. Returns
    /// false if it was marked before.
    mutating func markChanged(at now: Int64) -> Bool {
      notified = now
      defer { isChanged = true }
      return !isChanged
    }
  }

  let device: Device
  /// The name of the state that the device's protocol state machine reports, such as `polling`.
  private(set) var status = "starting"
  private(set) var sharedSchema: SharedSchema
  private(set) var slots: ContiguousArray<Slot> = []
  /// The indices of the slots that changed in this turn.
  private(set) var changed: [Int] = []
  /// The constant start of each encoded reading.
  private(set) lazy var readingStart = EncodedDevice(device: device.name)

  private unowned let hub: DeviceHub
  private lazy var expiry = Timer { [weak self] _ in self?.expire() }
  /// The boot time of the next check for stale values.
  private var nextExpiry: Int64?
  /// An unchanged value is published again once in each interval, so that clients can show its age.
  private static let republishInterval: Nanoseconds = .second
  /// The offset of the intervals. Those of a device are the same for all values, so that unchanged values are sent and recorded together.
  private let republishPhase = Nanoseconds.random(in: 0..<DeviceState.republishInterval)

  init(_ device: Device, hub: DeviceHub) {
    self.device = device
    self.hub = hub
    sharedSchema = hub.sharedSchema(device.schema)
    createSlots(preserving: [:])
    device.observer = self
  }

  /// Stops the timer and stops observing the device, which has been removed.
  func end() {
    expiry.set(nil)
    device.observer = nil
  }

  var schema: Schema { sharedSchema.schema }

  /// The slot index of a property, or nil if the device has no such property.
  func index(of property: String) -> Int? { sharedSchema.index(of: property) }

  /// The content of a property at this time (CLOCK_BOOTTIME, ns). A stale value is absent even before the expiry timer fires.
  func content(_ index: Int, at now: Int64) -> Reading.Content {
    let slot = slots[index]
    if case .value = slot.content, let time = sharedSchema.freshness(index), now - slot.measuredAt >= time { return .absent("stale") }
    return slot.content
  }

  /// Since when a property is absent for the current reason (wall time, µs), or nil if nothing was reported.
  func absentSince(_ index: Int) -> Int? {
    let slot = slots[index]
    if case .value = slot.content, let time = sharedSchema.freshness(index) { return Int(slot.wall + time / .microsecond) }
    return slot.wall == 0 ? nil : Int(slot.wall)
  }

  // MARK: DeviceObserver

  func deviceUpdated(_ readings: [Reading]) {
    let boot = Clock.boot()
    let wall = Clock.wall()
    // The first of the new values to become stale.
    var first = Int64.max
    slots.withUnsafeMutableBufferPointer { slots in
      for reading in readings where slots.indices.contains(reading.property) {
        let index = reading.property
        let isSame = slots[index].content == reading.content
        if case .value = reading.content {
          slots[index].measuredAt = boot - max(0, reading.age)
          slots[index].wall = wall - max(0, reading.age) / .microsecond
          if let time = sharedSchema.freshness(index) { first = min(first, slots[index].measuredAt + time) }
          if isSame, interval(boot) == interval(slots[index].notified) { continue }
        } else if isSame {
          continue
        } else {
          slots[index].wall = wall
        }
        slots[index].content = reading.content
        if slots[index].markChanged(at: boot) { changed.append(index) }
      }
    }
    if first < nextExpiry ?? .max { scheduleExpiry(boot) }
  }

  private func interval(_ time: Int64) -> Int64 { (time &+ republishPhase) / Self.republishInterval }

  func deviceStateChanged(_ state: String) {
    status = state
    hub.deviceChanged(self)
  }

  func deviceSchemaChanged(_ new: Schema) {
    var earlier: [String: Slot] = [:]
    let old = schema.properties
    sharedSchema = hub.sharedSchema(new)
    for (property, slot) in zip(old, slots) {
      if let index = sharedSchema.index(of: property.name), new.properties[index].type == property.type { earlier[property.name] = slot }
    }
    createSlots(preserving: earlier)
    scheduleExpiry(Clock.boot())
    hub.schemaChanged(self)
    hub.deviceChanged(self)
  }

  func deviceReports(event: String, text: String) { hub.report(self, event: event, text: text) }
  func deviceObserves(_ reference: String) { hub.observe(reference, for: device) }

  private static let (unknown, linkDown) = ("not known yet", "link down: ")

  func deviceLinkChanged(_ port: LinkSupervisor) {
    if port.name == .main, case .down(let reason) = port.state {
      let (boot, wall) = (Clock.boot(), Clock.wall())
      for index in slots.indices where sharedSchema.freshness(index) != nil { withdraw(index, Self.linkDown + reason, since: wall, boot) }
    }
    if port.name == .main, port.isUp {
      let (boot, wall) = (Clock.boot(), Clock.wall())
      for index in slots.indices {
        if case .absent(let reason) = slots[index].content, reason.hasPrefix(Self.linkDown) {
          withdraw(index, Self.unknown, since: wall, boot)
        }
      }
    }
    hub.deviceChanged(self)
    hub.flush(self)
  }

  func deviceFaultOrLeaseChanged() { hub.deviceChanged(self) }

  func deviceTurnEnded() {
    if !changed.isEmpty { hub.flush(self) }
  }

  /// Clears `changed` after its publication.
  func clearChanges() {
    for index in changed { slots[index].isChanged = false }
    changed.removeAll(keepingCapacity: true)
  }

  // MARK: Freshness

  /// Makes a property absent for this reason since this wall time (µs).
  private func withdraw(_ index: Int, _ reason: String, since wall: Int64, _ boot: Int64) {
    guard slots[index].content != .absent(reason) else { return }
    (slots[index].content, slots[index].wall) = (.absent(reason), wall)
    if slots[index].markChanged(at: boot) { changed.append(index) }
  }

  /// Withdraws stale values and schedules the next check. While values keep arriving, this runs once per freshness period, not once per
  /// value. The timer does not count the time for which the computer is suspended, so it also runs with each heartbeat.
  func expire() {
    let boot = Clock.boot()
    for index in slots.indices where content(index, at: boot) == .absent("stale") {
      withdraw(index, "stale", since: absentSince(index).map(Int64.init) ?? 0, boot)
    }
    scheduleExpiry(boot)
    deviceTurnEnded()
  }

  private func scheduleExpiry(_ boot: Int64) {
    var next: Int64?
    for (index, slot) in slots.enumerated() {
      guard case .value = slot.content, let time = sharedSchema.freshness(index) else { continue }
      next = min(next ?? .max, slot.measuredAt + time)
    }
    nextExpiry = next
    expiry.set(next.map { Clock.monotonic() + max($0 - boot, 0) + .millisecond })
  }

  /// Creates the slots of the current schema. Properties in `earlier` keep their state.
  private func createSlots(preserving earlier: [String: Slot]) {
    changed.removeAll()
    slots = ContiguousArray(
      schema.properties.map { property in
        var slot = earlier[property.name] ?? Slot(content: .absent(Self.unknown))
        slot.isChanged = false
        return slot
      })
  }
}
