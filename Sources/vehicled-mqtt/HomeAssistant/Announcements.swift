// What Home Assistant has been told about the devices, and what it must be told next. No I/O.
//
// Home Assistant keeps an entity until its component is sent once more with nothing but its platform, and a device until its configuration
// becomes empty. Therefore the configurations that an earlier run left at the broker are read when the bridge connects, and what is missing
// in the current ones is removed.
// Source: home-assistant.io, "MQTT discovery".

import Protocols
import Varlink

struct Announcements {
  private struct Announcement {
    /// The configuration as it was last sent on this connection; nil if it is to be sent again.
    var text: String?
    /// The entities of the configuration.
    var components: [String: DiscoveryPayload.Component]
    /// Former entities, which the configuration names with only their platform.
    var removed: [String: DiscoveryPayload.Component] = [:]
  }

  private let discovery: DiscoveryPayload
  /// By topic.
  private var announced: [String: Announcement] = [:]
  /// The entities in configurations of an earlier run whose devices have not been announced, by topic.
  private var leftovers: [String: [String: DiscoveryPayload.Component]] = [:]

  init(_ discovery: DiscoveryPayload) { self.discovery = discovery }

  /// The topic filter of configurations; those of other programs arrive as well.
  var filter: String { "\(discovery.prefix)/device/+/config" }

  /// Returns the configuration of a device if it has changed, and the messages that clear the topics of its former entities.
  mutating func announce(_ schema: Contract.Schema) -> [OutgoingMessage] {
    let topic = discovery.topic(of: schema.device)
    let components = discovery.components(schema)
    var next = announced[topic] ?? Announcement(components: components)
    let former = next.components.merging(leftovers.removeValue(forKey: topic) ?? [:]) { $1 }
    let gone = former.filter { components[$0.key] == nil }
    next.removed = next.removed.merging(gone) { $1 }.filter { components[$0.key] == nil }
    next.components = components
    let text = discovery.payload(schema, components, removed: next.removed.mapValues(\.platform))
    let isNew = next.text != text
    next.text = text
    announced[topic] = next
    return (isNew ? [.state(topic, text)] : []) + clear(gone, except: components)
  }

  /// Removes a device, unless it was never announced.
  mutating func withdraw(_ device: String) -> [OutgoingMessage] {
    let topic = discovery.topic(of: device)
    let known = announced.removeValue(forKey: topic)?.components
    let leftover = leftovers.removeValue(forKey: topic)
    guard known != nil || leftover != nil else { return [] }
    return [.state(topic, "")] + clear((known ?? [:]).merging(leftover ?? [:]) { $1 })
  }

  /// Applies a retained configuration from the broker. Those of other programs and other bridges are ignored.
  mutating func found(_ message: IncomingMessage) {
    guard message.isRetained, let text = String(validating: message.payload, as: UTF8.self), let payload = JSON(text) else { return }
    let components = discovery.components(in: payload)
    guard !components.isEmpty else { return }
    leftovers[message.topic] = components
  }

  /// Removes the devices of an earlier run that are not among these.
  mutating func removeLeftovers(except devices: [String]) -> [OutgoingMessage] {
    let current = Set(devices.map { discovery.topic(of: $0) })
    let gone = leftovers.filter { !current.contains($0.key) }
    for topic in gone.keys { leftovers[topic] = nil }
    return gone.sorted { $0.key < $1.key }.flatMap { topic, components in [.state(topic, "")] + clear(components) }
  }

  /// Sends all configurations again: the broker may have lost them.
  mutating func restart() { for topic in announced.keys { announced[topic]?.text = nil } }

  /// Clears the topics of entities, as far as others do not use them.
  private func clear(
    _ gone: [String: DiscoveryPayload.Component], except components: [String: DiscoveryPayload.Component] = [:]
  ) -> [OutgoingMessage] {
    let used = Set(components.values.flatMap(\.topics))
    return Set(gone.values.flatMap(\.topics)).subtracting(used).sorted().map { .state($0, "") }
  }
}
