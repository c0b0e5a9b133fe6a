// All devices with their latest values, and everybody who wants to be told of changes. What changed in a turn is encoded
// once for all who asked for the same.

import Protocols

@Loop final class Board {
  /// In the order of the configuration.
  private(set) var states: [DeviceState] = []
  private var feeds: [Feed] = []
  private var observers: [String: [Device]] = [:]
  private lazy var heartbeat = Timer { [weak self] now in self?.beat(now) }
  private static let heartbeatPeriod: Nanoseconds = 10 * .second

  func add(_ device: Device) {
    let state = DeviceState(device, board: self)
    states.append(state)
    schemaChanged(state)
    deviceChanged(state)
  }

  func remove(_ device: Device) {
    guard let index = states.firstIndex(where: { $0.device === device }) else { return }
    let state = states.remove(at: index)
    state.end()
    for feed in feeds where feed.covers(state) {
      for watcher in feed.watchers { watcher.forget(state) }
    }
    report(state, event: Contract.Event.removed, text: "configured no longer, or anew")
    for reference in observers.keys { observers[reference]?.removeAll { $0 === device } }
    tellObservers(of: device.name)
    feeds.forEach { $0.select(in: self) }
  }

  // MARK: Looking up

  func state(of device: String) throws(ContractError) -> DeviceState {
    guard let state = states.first(where: { $0.device.name == device }) else { throw .noSuchDevice(device: device) }
    return state
  }

  /// One device, or all of them.
  func states(of device: String?) throws(ContractError) -> [DeviceState] {
    if let device { [try state(of: device)] } else { states }
  }

  /// What `device.property`, or `property` where just one device has it, refers to.
  func resolve(_ reference: String) throws(ContractError) -> (state: DeviceState, index: Int) {
    if let dot = reference.firstIndex(of: ".") {
      let state = try state(of: String(reference[..<dot]))
      let property = String(reference[reference.index(after: dot)...])
      guard let index = state.index(of: property) else { throw .noSuchProperty(device: state.device.name, property: property) }
      return (state, index)
    }
    let found = states.compactMap { state in state.index(of: reference).map { (state, $0) } }
    guard let first = found.first else { throw .noSuchProperty(device: nil, property: reference) }
    guard found.count == 1 else {
      throw .ambiguous(reference: reference, candidates: found.map { "\($0.0.device.name).\(reference)" })
    }
    return first
  }

  // MARK: Telling

  /// Begins to tell a watcher of these references, or of everything. It is told a snapshot first. What a reference means
  /// now it means for as long as the watch lasts, whatever devices come.
  func subscribe(_ watcher: Watcher, to wanted: [String]?) throws(ContractError) {
    let references = try wanted?.map { reference throws(ContractError) in
      let (state, index) = try resolve(reference)
      return "\(state.device.name).\(state.schema.properties[index].name)"
    }
    let feed: Feed
    if let same = feeds.first(where: { $0.references == references }) {
      feed = same
    } else {
      feed = Feed(references: references)
      feed.select(in: self)
      feeds.append(feed)
    }
    if !feeds.contains(where: { !$0.watchers.isEmpty }) { heartbeat.set(Clock.monotonic() + Self.heartbeatPeriod) }
    feed.watchers.append(watcher)
    watcher.feed = feed
    let covered = states.filter { feed.covers($0) }
    watcher.tell(snapshot: covered.map { $0.device(only: feed.selection(of: $0)) }, of: covered)
  }

  func unsubscribe(_ watcher: Watcher) {
    for feed in feeds { feed.watchers.removeAll { $0 === watcher } }
    feeds.removeAll { $0.watchers.isEmpty }
    if feeds.isEmpty { heartbeat.set(nil) }
  }

  /// Tells everybody what changed in a device's turn.
  func flush(_ state: DeviceState) {
    guard !state.changed.isEmpty else { return }
    if !feeds.isEmpty {
      let boot = Clock.boot()
      for feed in feeds { feed.tell(state, at: boot) }
    }
    if !observers.isEmpty { tellObservers(state) }
    state.settle()
  }

  /// A link or the state of a device changed: those who watch it get its new snapshot.
  func deviceChanged(_ state: DeviceState) {
    for feed in feeds where feed.covers(state) {
      let device = state.device(only: feed.selection(of: state))
      for watcher in feed.watchers { watcher.tell(snapshot: [device], of: [state]) }
    }
  }

  func schemaChanged(_ state: DeviceState) {
    tellObservers(of: state.device.name)
    let schema = state.contractSchema
    for feed in feeds {
      feed.select(in: self)
      guard feed.covers(state) else { continue }
      for watcher in feed.watchers { watcher.tell(schema: schema, of: state) }
    }
  }

  func report(_ state: DeviceState, event: String, text: String) {
    let event = Contract.Event(device: state.device.name, name: event, text: text, time: Int(Clock.wall()))
    for feed in feeds where feed.covers(state) {
      for watcher in feed.watchers { watcher.tell(event: event) }
    }
  }

  /// Tells a device of another device's property from now on.
  func observe(_ reference: String, for device: Device) {
    guard observers[reference]?.contains(where: { $0 === device }) != true else { return }
    observers[reference, default: []].append(device)
    tell(device, of: reference)
  }

  /// A device has come or gone, or has other properties than before.
  private func tellObservers(of device: String) {
    for (reference, devices) in observers where reference.hasPrefix("\(device).") { devices.forEach { tell($0, of: reference) } }
  }

  /// In a later turn: two devices that observe each other must not call each other's machines from within.
  private func tell(_ device: Device, of reference: String) {
    let content: Reading.Content
    do throws(ContractError) {
      let (state, index) = try resolve(reference)
      content = state.content(index, at: Clock.boot())
    } catch {
      content = .absent("there is no \(reference)")
    }
    Loop.post { device.take(.observed(reference: reference, content)) }
  }

  private func tellObservers(_ state: DeviceState) {
    for index in state.changed {
      let reference = "\(state.device.name).\(state.schema.properties[index].name)"
      guard let devices = observers[reference] else { continue }
      let content = state.slots[index].content
      for device in devices { Loop.post { device.take(.observed(reference: reference, content)) } }
    }
  }

  private func beat(_ now: Instant) {
    heartbeat.set(now + Self.heartbeatPeriod)
    for feed in feeds { feed.watchers.forEach { $0.beat() } }
  }
}
