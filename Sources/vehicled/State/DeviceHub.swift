// All devices with their latest values, and the watchers and devices that observe them. Changes made in one turn of the event
// loop are encoded once for all watchers of the same references.

import Protocols
import Varlink

@Loop final class DeviceHub {
  /// In the order of the configuration.
  private(set) var states: [DeviceState] = []
  private var feeds: [Feed] = []
  private var observers: [String: [Device]] = [:]
  private lazy var heartbeat = Timer { [weak self] now in self?.sendHeartbeats(now) }
  private static let heartbeatPeriod: Nanoseconds = 10 * .second

  func add(_ device: Device) {
    let state = DeviceState(device, hub: self)
    states.append(state)
    schemaChanged(state)
    deviceChanged(state)
  }

  func remove(_ device: Device) {
    guard let index = states.firstIndex(where: { $0.device === device }) else { return }
    let state = states.remove(at: index)
    state.end()
    for feed in feeds where feed.covers(state) {
      for watcher in feed.watchers { watcher.discardPending(of: state) }
    }
    report(state, event: Contract.Event.removed, text: "device reconfigured or removed")
    for reference in observers.keys { observers[reference]?.removeAll { $0 === device } }
    notifyObservers(of: device.name)
    feeds.forEach { $0.resolveReferences(in: self) }
  }

  /// Puts the devices in the order of these names.
  func sort(by names: [String]) {
    let positions = Dictionary(uniqueKeysWithValues: zip(names, 0...))
    states.sort { positions[$0.device.name] ?? .max < positions[$1.device.name] ?? .max }
  }

  /// Returns the instance that other devices use for an equal schema, or a new one.
  func sharedSchema(_ schema: Schema) -> SharedSchema {
    states.lazy.map(\.sharedSchema).first { $0.schema == schema } ?? SharedSchema(schema)
  }

  // MARK: Lookup

  func state(of device: String) throws(ContractError) -> DeviceState {
    guard let state = states.first(where: { $0.device.name == device }) else { throw .noSuchDevice(device: device) }
    return state
  }

  /// Resolves `device.property`, or `property` if only one of `devices` has it. If `devices` is nil, all devices are searched.
  func resolve(_ reference: String, among devices: Set<String>? = nil) throws(ContractError) -> (state: DeviceState, index: Int) {
    if let dot = reference.firstIndex(of: ".") {
      let state = try state(of: String(reference[..<dot]))
      let property = String(reference[reference.index(after: dot)...])
      guard let index = state.index(of: property) else { throw .noSuchProperty(device: state.device.name, property: property) }
      return (state, index)
    }
    let matches = states.compactMap { state in
      devices?.contains(state.device.name) == false ? nil : state.index(of: reference).map { (state, $0) }
    }
    guard let first = matches.first else { throw .noSuchProperty(device: nil, property: reference) }
    guard matches.count == 1 else {
      throw .ambiguous(reference: reference, candidates: matches.map { "\($0.0.device.name).\(reference)" })
    }
    return first
  }

  // MARK: Publishing

  /// Subscribes a watcher to the requested references, or to all properties if `requested` is nil, and sends it a snapshot. Includes only
  /// `devices`, unless it is nil. References are resolved now and keep their meaning when devices are added later.
  func subscribe(_ watcher: Watcher, to requested: [String]?, of devices: Set<String>? = nil) throws(ContractError) {
    let references = try requested?.map { reference throws(ContractError) in
      let (state, index) = try resolve(reference, among: devices)
      return "\(state.device.name).\(state.schema.properties[index].name)"
    }
    subscribe(watcher, toResolved: references, of: devices)
  }

  /// Changes the devices of a watcher that is subscribed to all properties, and sends it a new snapshot. If `devices` is nil, the watcher
  /// gets all devices.
  func resubscribe(_ watcher: Watcher, to devices: Set<String>?) {
    unsubscribe(watcher)
    subscribe(watcher, toResolved: nil, of: devices)
  }

  private func subscribe(_ watcher: Watcher, toResolved references: [String]?, of devices: Set<String>?) {
    let feed: Feed
    if let same = feeds.first(where: { $0.references == references && $0.devices == devices }) {
      feed = same
    } else {
      feed = Feed(references: references, of: devices)
      feed.resolveReferences(in: self)
      feeds.append(feed)
    }
    feed.watchers.append(watcher)
    updateHeartbeat()
    watcher.feed = feed
    let covered = states.filter { feed.covers($0) }
    watcher.notify(snapshot: covered.map { $0.wireDevice(only: feed.selection(of: $0)) }, of: covered)
  }

  func unsubscribe(_ watcher: Watcher) {
    for feed in feeds { feed.watchers.removeAll { $0 === watcher } }
    feeds.removeAll { $0.watchers.isEmpty }
    updateHeartbeat()
  }

  /// Publishes what the device changed in this turn of the event loop.
  func flush(_ state: DeviceState) {
    guard !state.changed.isEmpty else { return }
    if !feeds.isEmpty {
      let boot = Clock.boot()
      for feed in feeds { feed.publish(state, at: boot) }
    }
    if !observers.isEmpty { notifyObservers(state) }
    state.clearChanges()
  }

  /// Sends a new snapshot of a device after a change of its links or state.
  func deviceChanged(_ state: DeviceState) {
    for feed in feeds where feed.covers(state) {
      let device = state.wireDevice(only: feed.selection(of: state))
      for watcher in feed.watchers { watcher.notify(snapshot: [device], of: [state]) }
    }
  }

  func schemaChanged(_ state: DeviceState) {
    notifyObservers(of: state.device.name)
    for feed in feeds {
      feed.resolveReferences(in: self)
      guard feed.covers(state) else { continue }
      let schema = state.wireSchema
      for watcher in feed.watchers { watcher.notify(schema: schema, of: state) }
    }
  }

  func report(_ state: DeviceState, event: String, text: String) {
    let event = Contract.Event(device: state.device.name, name: event, text: text, time: Int(Clock.wall()))
    for feed in feeds where feed.covers(state) {
      for watcher in feed.watchers { watcher.notify(event: event) }
    }
  }

  /// Subscribes `device` to a property of another device, and reports the current value to it.
  func observe(_ reference: String, for device: Device) {
    guard observers[reference]?.contains(where: { $0 === device }) != true else { return }
    observers[reference, default: []].append(device)
    updateHeartbeat()
    notify(device, of: reference)
  }

  /// Notifies the observers of a device that was added or removed or has a new schema.
  private func notifyObservers(of device: String) {
    for (reference, devices) in observers where reference.hasPrefix("\(device).") { devices.forEach { notify($0, of: reference) } }
  }

  /// Notifies an observer in a later turn, so that devices that observe each other do not call each other recursively.
  private func notify(_ device: Device, of reference: String) {
    let content: Reading.Content
    do throws(ContractError) {
      let (state, index) = try resolve(reference)
      content = state.content(index, at: Clock.boot())
    } catch {
      content = .absent("no property \(reference)")
    }
    Loop.post { device.handle(.observed(reference: reference, content)) }
  }

  private func notifyObservers(_ state: DeviceState) {
    for index in state.changed {
      let reference = "\(state.device.name).\(state.schema.properties[index].name)"
      guard let devices = observers[reference] else { continue }
      let content = state.slots[index].content
      for device in devices { Loop.post { device.handle(.observed(reference: reference, content)) } }
    }
  }

  var isHeartbeatRunning: Bool { heartbeat.isSet }

  /// Runs the heartbeat while values are watched or observed: it also withdraws those that became stale while the computer was suspended.
  private func updateHeartbeat() {
    if feeds.isEmpty, observers.isEmpty {
      heartbeat.set(nil)
    } else if !heartbeat.isSet {
      heartbeat.set(Clock.monotonic() + Self.heartbeatPeriod)
    }
  }

  func sendHeartbeats(_ now: Instant) {
    heartbeat.set(now + Self.heartbeatPeriod)
    states.forEach { $0.expire() }
    for feed in feeds { feed.watchers.forEach { $0.sendHeartbeat() } }
  }
}
