// Turns the replies of Watch into messages: values, their attributes, states and links of the devices. No I/O.

import Protocols
import VSS
import Varlink

struct ValuePublisher {
  private struct Device {
    let kind: String
    var state: String?
    var link: String?
    var schema: Contract.Schema?
    /// The names of all properties, also of those that are not published.
    var propertyNames: Set<String> = []
    /// Whether any property is published. Otherwise, nothing of the device is: neither its link and state nor its events.
    var isPublished = false
    var properties: [String: PropertyState] = [:]
    /// When the daemon removed the device; nil if it has not, or has added it again.
    var removedAt: Instant?
  }

  /// How long a removed device may be missing before its topics are cleared: a device whose configuration changes is removed and added.
  private static let removalDelay: Nanoseconds = 2 * .second

  /// The names under which values are published.
  struct Names: Equatable, Sendable {
    /// Whether values are published as VSS signals, where there are some.
    var vss = false
    /// Whether these are published under their own names as well.
    var own = true
  }

  private let topics: Topics
  private let timing: PropertyState.Timing
  private let names: Names
  private let selects: (_ device: String, _ kind: String, _ property: String) -> Bool
  private var devices: [String: Device] = [:]
  /// The properties whose values keep their meaning and are retained by the broker, also those of an earlier run, as `DEVICE.PROPERTY`.
  private(set) var retained: Set<String>

  /// `selects` decides which properties are published; `retained` are those of an earlier run.
  init(
    _ topics: Topics, timing: PropertyState.Timing, names: Names = Names(), retained: Set<String> = [],
    selects: @escaping (_ device: String, _ kind: String, _ property: String) -> Bool
  ) {
    (self.topics, self.timing, self.names, self.retained, self.selects) = (topics, timing, names, retained, selects)
  }

  /// The names of the devices.
  var deviceNames: [String] { devices.keys.sorted() }

  private var publishedNames: [String] { deviceNames.filter { devices[$0]?.isPublished == true } }

  /// Returns whether something is published on a topic, or may be once its device has been detected. With `onlyDurable`, only values that
  /// keep their meaning count. Call it after all devices were declared.
  func topicsInUse(onlyDurable: Bool = false) -> (_ topic: String) -> Bool {
    let used = devices.flatMap { name, device in
      device.properties.filter { !onlyDurable || $1.isRetained }.flatMap { valueTopics(name, $0, $1) }
        + (onlyDurable || !device.isPublished ? [] : [topics.link(name), topics.state(name)])
    }
    let undetected = deviceNames.filter { devices[$0]?.schema?.provisional == true }
    return { [self, used = Set(used)] topic in used.contains(topic) || undetected.contains { mayUse(topic, $0) } }
  }

  /// Whether a device may publish something on a topic after its detection.
  private func mayUse(_ topic: String, _ name: String) -> Bool {
    guard topic.hasPrefix(topics.value(name, "")), let kind = devices[name]?.kind else { return false }
    let own = topic.dropFirst(topics.value(name, "").count).split(separator: "/").first.map(String.init)
    let property = names.vss ? VSSTable.all.first { topics.signal(name, $0.signal.path) == topic }?.property ?? own : own
    return property.map { selects(name, kind, $0) } ?? false
  }

  /// Whether a property is published.
  func publishes(_ device: String, _ property: String) -> Bool { devices[device]?.properties[property] != nil }

  // MARK: Input

  /// Declares the properties of a device, before or after its values. Those that no longer exist are forgotten.
  mutating func declare(_ schema: Contract.Schema) {
    devices[schema.device] = device(schema.device, kind: schema.kind)
    devices[schema.device]?.schema = schema
    for property in schema.properties {
      let declaration = declaration(of: property.name, schema.device, unit: nil)
      devices[schema.device]?.properties[property.name]?.declare(
        unit: declaration.unit, isRetained: declaration.isRetained, signals: declaration.signals)
    }
    guard schema.provisional != true else { return }
    let names = Set(schema.properties.map(\.name))
    for name in devices[schema.device]?.properties.keys.filter({ !names.contains($0) }) ?? [] {
      devices[schema.device]?.properties[name] = nil
    }
  }

  /// What is known of a device. One with another kind than before is a new device.
  private mutating func device(_ name: String, kind: String) -> Device {
    guard let device = devices[name] else { return Device(kind: kind) }
    guard device.kind != kind else { return device }
    retained = retained.filter { !$0.hasPrefix("\(name).") }
    return Device(kind: kind)
  }

  /// What is known of a property. `unit` is that of its value, if it has one.
  private func declaration(
    of property: String, _ name: String, unit: String?
  ) -> (unit: String?, isRetained: Bool, signals: [VSSSignal]) {
    let device = devices[name]
    let declared = device?.schema?.properties.first { $0.name == property }
    let unit = unit ?? declared?.unit
    let signals = names.vss ? VSSTable.signals(for: property, unit: unit, of: device?.propertyNames ?? []) : []
    return (unit, declared?.retained ?? false, signals)
  }

  /// Applies a reply of Watch. Returns the messages that cannot wait.
  mutating func apply(_ result: Contract.Watch.Result, at now: Instant) -> [OutgoingMessage] {
    var messages: [OutgoingMessage] = []
    let isRemoval = { (event: Contract.Event) in event.name == Contract.Event.removed }
    for event in result.events ?? [] where isRemoval(event) { devices[event.device]?.removedAt = now }
    for device in result.snapshot ?? [] { messages += apply(device, at: now) }
    for event in result.events ?? [] where !isRemoval(event) && devices[event.device]?.isPublished == true {
      let text = JSON.members(["text": .string(event.text), "time": .string(WallTime.isoTime(Int64(event.time)))]).text
      messages.append(OutgoingMessage(topics.event(event.device, event.name), text.utf8))
    }
    for reading in result.changes ?? [] { observe(reading) }
    return messages + publications(at: now)
  }

  private mutating func apply(_ snapshot: Contract.Device, at now: Instant) -> [OutgoingMessage] {
    var device = device(snapshot.name, kind: snapshot.kind)
    var messages: [OutgoingMessage] = []
    // A property can be missing until the device is detected.
    device.propertyNames = Set(snapshot.readings.map(\.property))
    device.isPublished = device.isPublished || device.propertyNames.contains { selects(snapshot.name, device.kind, $0) }
    let link = Self.link(of: snapshot)
    if device.isPublished {
      if device.state != snapshot.state { messages.append(.state(topics.state(snapshot.name), snapshot.state)) }
      if device.link != link { messages.append(.state(topics.link(snapshot.name), link)) }
      (device.state, device.link) = (snapshot.state, link)
    }
    device.removedAt = nil
    for (name, state) in device.properties where !device.propertyNames.contains(name) && !state.isRetained {
      device.properties[name]?.observe(CurrentReading(value: nil, reason: "not detected yet", time: nil))
    }
    devices[snapshot.name] = device
    for reading in snapshot.readings { observe(reading) }
    return messages
  }

  /// The link of a device as one word: up only if all are.
  private static func link(of device: Contract.Device) -> String {
    let states = device.links.map(\.state)
    return states.first { $0 == "down" } ?? states.first { $0 == "connecting" } ?? "up"
  }

  private mutating func observe(_ reading: Contract.Reading) {
    // Their topics are those of the device's own link and state.
    guard !["link", "state"].contains(reading.property) else { return }
    guard let device = devices[reading.device], selects(reading.device, device.kind, reading.property) else { return }
    let current = CurrentReading(
      value: reading.value, reason: reading.reason ?? (reading.value == nil ? "unknown" : nil), time: reading.time)
    if devices[reading.device]?.properties[reading.property]?.observe(current) == nil {
      let declaration = declaration(of: reading.property, reading.device, unit: reading.unit)
      devices[reading.device]?.properties[reading.property] = PropertyState(
        current, unit: declaration.unit, isRetained: declaration.isRetained, signals: declaration.signals,
        isKnown: retained.contains("\(reading.device).\(reading.property)"))
    }
  }

  /// Handles the end of the connection to the daemon: all values but retained ones are unknown.
  mutating func daemonLost(_ reason: String, at now: Instant) -> [OutgoingMessage] {
    var messages: [OutgoingMessage] = []
    for name in publishedNames {
      devices[name]?.link = "down"
      devices[name]?.state = nil
      messages += [.state(topics.link(name), "down"), .state(topics.state(name), PayloadText.absent)]
      for (property, state) in devices[name]?.properties ?? [:] where !state.isRetained {
        devices[name]?.properties[property]?.observe(CurrentReading(value: nil, reason: reason, time: nil))
      }
    }
    return messages + publications(at: now)
  }

  /// Removes the devices that are not among these, because the daemon no longer has them after a restart.
  mutating func remove(except names: Set<String>, at now: Instant) {
    for name in deviceNames where !names.contains(name) && devices[name]?.removedAt == nil { devices[name]?.removedAt = now }
  }

  /// Forgets the devices that the daemon has removed for good. Returns whether there were some.
  mutating func forgetRemoved(at now: Instant) -> Bool {
    let gone = devices.filter { _, device in device.removedAt.map { now >= $0 + Self.removalDelay } ?? false }.keys
    for name in gone {
      devices[name] = nil
      retained = retained.filter { !$0.hasPrefix("\(name).") }
    }
    return !gone.isEmpty
  }

  /// All topics on which a property may have been published.
  private func valueTopics(_ device: String, _ property: String, _ state: PropertyState) -> [String] {
    [topics.value(device, property), topics.attributes(device, property)] + state.signals.map { topics.signal(device, $0.path) }
  }

  // MARK: Output

  /// The schema of a device, also with what is not published; nil until it is known.
  func declaration(of device: String) -> Contract.Schema? { devices[device]?.schema }

  /// The schema of a device with only the published properties; nil until it is known.
  func schema(of device: String) -> Contract.Schema? {
    guard var schema = devices[device]?.schema else { return nil }
    schema.properties.removeAll { devices[device]?.properties[$0.name] == nil }
    return schema
  }

  /// What is due now: values that have changed, and those that would expire. Nothing of a device before its declaration, which decides
  /// whether values expire.
  mutating func publications(at now: Instant) -> [OutgoingMessage] {
    var messages: [OutgoingMessage] = []
    for name in deviceNames where devices[name]?.removedAt == nil && devices[name]?.schema != nil {
      for property in devices[name]?.properties.keys.sorted() ?? [] {
        guard var state = devices[name]?.properties[property] else { continue }
        let publication = state.publish(timing, at: now)
        guard publication.value || publication.attributes else { continue }
        devices[name]?.properties[property] = state
        if publication.value {
          let hasValue = state.isRetained && state.current.value != nil
          if hasValue { retained.insert("\(name).\(property)") } else { retained.remove("\(name).\(property)") }
        }
        let expiry = state.isRetained || state.current.value == nil ? nil : timing.expiry
        let isOwn = names.own || state.signals.isEmpty
        if publication.value {
          if isOwn {
            messages.append(
              .state(
                topics.value(name, property), PayloadText.value(state.current.value, unit: state.unit), expiry: expiry,
                isDurable: state.isRetained))
          }
          for signal in state.signals {
            let text = PayloadText.value(state.current.value.flatMap { signal.value($0) }, unit: signal.unit)
            messages.append(.state(topics.signal(name, signal.path), text, expiry: expiry, isDurable: state.isRetained))
          }
        }
        if publication.attributes, isOwn {
          let text = PayloadText.attributes(state.current, unit: state.unit)
          messages.append(.state(topics.attributes(name, property), text, isDurable: state.isRetained))
        }
      }
    }
    return messages
  }

  /// When something is due next, if nothing changes.
  var due: Instant? {
    devices.values.flatMap { device in
      device.removedAt.map { [$0 + Self.removalDelay] }
        ?? (device.schema == nil ? [] : device.properties.values.map { $0.due(timing) })
    }.min()
  }

  /// Publishes everything again, because the broker may have lost it. Returns the states and links.
  mutating func restart() -> [OutgoingMessage] {
    var messages: [OutgoingMessage] = []
    for name in publishedNames {
      for property in devices[name]?.properties.keys.sorted() ?? [] { devices[name]?.properties[property]?.reset() }
      messages.append(.state(topics.state(name), devices[name]?.state ?? PayloadText.absent))
      if let link = devices[name]?.link { messages.append(.state(topics.link(name), link)) }
    }
    return messages
  }
}
