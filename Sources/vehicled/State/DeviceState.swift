// What is known of one device: the latest value of each property, when it came, and until when it may be shown. A value
// past its time, or from behind a dead link, is absent with a reason; it is never shown as if it were new.

import Protocols

@Loop final class DeviceState: DeviceObserver {
  /// One property's place.
  struct Slot {
    var content: Reading.Content
    /// How long a value may be shown, or nil where it is retained.
    var freshFor: Nanoseconds?
    /// When the value was measured: CLOCK_BOOTTIME, and the wall in microseconds. 0: never.
    var boot: Int64 = 0
    var wall: Int64 = 0
    /// When subscribers were last told (boot time), and whether they are to be told at the end of this turn.
    var told: Int64 = 0
    var changed = false
  }

  let device: Device
  /// The kind's own word for what it is doing.
  private(set) var word = "starting"
  private(set) var schema: Schema
  private(set) var slots: ContiguousArray<Slot> = []
  /// The positions that changed in this turn.
  private(set) var changed: [Int] = []
  private var indexes: [String: Int] = [:]
  /// What never changes in the readings of each property; made when the first client wants them.
  private(set) lazy var heads = makeHeads()

  private unowned let board: Board
  private lazy var expiry = Timer { [weak self] _ in self?.expire() }
  private var expiryIsSet = false
  /// An unchanged value is told again after this long, so that its age on a screen is right.
  private static let retell: Nanoseconds = .second

  init(_ device: Device, board: Board) {
    self.device = device
    self.board = board
    schema = device.schema
    placeSlots(keeping: [:])
    device.observer = self
  }

  /// The device is gone from the configuration.
  func end() {
    expiry.set(nil)
    device.observer = nil
  }

  /// The position of a property, where the device has it.
  func index(of property: String) -> Int? { indexes[property] }

  /// What is known of a property at this moment of boot time; a value past its time is absent even before the timer says so.
  func content(_ index: Int, at boot: Int64) -> Reading.Content {
    let slot = slots[index]
    if case .value = slot.content, let time = slot.freshFor, boot - slot.boot >= time { return .absent("stale") }
    return slot.content
  }

  // MARK: What the device tells

  func deviceLearned(_ readings: [Reading]) {
    let boot = Clock.boot()
    let wall = Clock.wall()
    var perishable = false
    for reading in readings where slots.indices.contains(reading.property) {
      let index = reading.property
      let same = slots[index].content == reading.content
      if case .value = reading.content {
        slots[index].boot = boot - max(0, reading.age)
        slots[index].wall = wall - max(0, reading.age) / .microsecond
        perishable = true
        if same, boot - slots[index].told < Self.retell { continue }
      } else if same {
        continue
      }
      slots[index].content = reading.content
      mark(index, boot)
    }
    if perishable, !expiryIsSet { scheduleExpiry(boot) }
  }

  func deviceSays(_ word: String) {
    guard word != self.word else { return }
    self.word = word
    board.deviceChanged(self)
  }

  func deviceDeclares(_ new: Schema) {
    var kept: [String: Slot] = [:]
    for (property, slot) in zip(schema.properties, slots) {
      if new.properties.contains(where: { $0.name == property.name && $0.type == property.type }) { kept[property.name] = slot }
    }
    schema = new
    placeSlots(keeping: kept)
    heads = makeHeads()
    board.schemaChanged(self)
    board.deviceChanged(self)
  }

  func deviceReports(event: String, text: String) { board.report(self, event: event, text: text) }
  func deviceObserves(_ reference: String) { board.observe(reference, for: device) }

  private static let (unknown, linkDown) = ("not known yet", "link down: ")

  func deviceLinkChanged(_ port: Port) {
    if port.name == .main, case .down(let reason) = port.state {
      let boot = Clock.boot()
      for index in slots.indices where slots[index].freshFor != nil { withdraw(index, Self.linkDown + reason, boot) }
    }
    if port.name == .main, port.isUp {
      let boot = Clock.boot()
      for index in slots.indices {
        if case .absent(let reason) = slots[index].content, reason.hasPrefix(Self.linkDown) { withdraw(index, Self.unknown, boot) }
      }
    }
    board.deviceChanged(self)
    board.flush(self)
  }

  func deviceStandingChanged() { board.deviceChanged(self) }

  func deviceTurnEnded() {
    if !changed.isEmpty { board.flush(self) }
  }

  /// The board has told the subscribers of everything in `changed`.
  func settle() {
    for index in changed { slots[index].changed = false }
    changed.removeAll(keepingCapacity: true)
  }

  // MARK: Freshness

  private func mark(_ index: Int, _ boot: Int64) {
    slots[index].told = boot
    guard !slots[index].changed else { return }
    slots[index].changed = true
    changed.append(index)
  }

  private func withdraw(_ index: Int, _ reason: String, _ boot: Int64) {
    guard slots[index].content != .absent(reason) else { return }
    slots[index].content = .absent(reason)
    mark(index, boot)
  }

  /// Withdraws what is past its time and looks again when the next value will be. While values keep coming this runs once
  /// per lifetime, not once per value.
  private func expire() {
    let boot = Clock.boot()
    for index in slots.indices where content(index, at: boot) == .absent("stale") { withdraw(index, "stale", boot) }
    scheduleExpiry(boot)
    deviceTurnEnded()
  }

  private func scheduleExpiry(_ boot: Int64) {
    var next: Int64?
    for slot in slots {
      guard case .value = slot.content, let time = slot.freshFor else { continue }
      next = min(next ?? .max, slot.boot + time)
    }
    expiryIsSet = next != nil
    expiry.set(next.map { Clock.monotonic() + max($0 - boot, 0) + .millisecond })
  }

  private func makeHeads() -> [ReadingHead] {
    schema.properties.map { ReadingHead(device: device.name, property: $0.name, unit: $0.unit) }
  }

  private func placeSlots(keeping kept: [String: Slot]) {
    changed.removeAll()
    indexes = [:]
    slots = []
    for (index, property) in schema.properties.enumerated() {
      indexes[property.name] = index
      var slot = kept[property.name] ?? Slot(content: .absent(Self.unknown))
      slot.changed = false
      if case .fresh(let time) = property.lifetime { slot.freshFor = time } else { slot.freshFor = nil }
      slots.append(slot)
    }
  }
}
