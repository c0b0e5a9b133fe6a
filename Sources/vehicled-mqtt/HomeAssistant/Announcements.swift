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

  /// What to do after a change.
  struct Changes: Equatable {
    var messages: [OutgoingMessage] = []
    /// The topics of entities that no longer exist.
    var topics: [String] = []
  }

  /// Announces a device whose properties may have changed. While they are provisional, the former ones stay: Home Assistant would forget
  /// what its user has changed in their entities.
  mutating func announce(_ schema: Contract.Schema) -> Changes {
    let topic = discovery.topic(of: schema.device)
    var components = discovery.components(schema)
    var next = announced[topic] ?? Announcement(components: components)
    let former = next.components.merging(leftovers.removeValue(forKey: topic) ?? [:]) { $1 }
    if schema.provisional == true { components.merge(former) { current, _ in current } }
    let gone = former.filter { components[$0.key] == nil }
    next.removed = next.removed.merging(gone) { $1 }.filter { components[$0.key] == nil }
    next.components = components
    let text = discovery.payload(schema, components, removed: next.removed.mapValues(\.platform))
    let isNew = next.text != text
    next.text = text
    announced[topic] = next
    return Changes(messages: isNew ? [.state(topic, text)] : [], topics: topics(of: gone))
  }

  /// Removes a device, unless it was never announced.
  mutating func withdraw(_ device: String) -> Changes {
    let topic = discovery.topic(of: device)
    let known = announced.removeValue(forKey: topic)?.components
    let leftover = leftovers.removeValue(forKey: topic)
    guard known != nil || leftover != nil else { return Changes() }
    return Changes(messages: [.state(topic, "")], topics: topics(of: (known ?? [:]).merging(leftover ?? [:]) { $1 }))
  }

  /// Applies a retained configuration from the broker. Those of other programs and other bridges are ignored.
  mutating func found(_ message: IncomingMessage) {
    guard message.isRetained, let text = String(validating: message.payload, as: UTF8.self), let payload = JSON(text) else { return }
    let components = discovery.components(in: payload)
    guard !components.isEmpty else { return }
    leftovers[message.topic] = components
  }

  /// Removes the devices that are not among these, also those of an earlier run.
  mutating func removeAll(except devices: [String]) -> Changes {
    let current = Set(devices.map { discovery.topic(of: $0) })
    let gone = leftovers.merging(announced.mapValues(\.components)) { $0.merging($1) { $1 } }.filter { !current.contains($0.key) }
    for topic in gone.keys { (leftovers[topic], announced[topic]) = (nil, nil) }
    return Changes(
      messages: gone.keys.sorted().map { .state($0, "") },
      topics: gone.sorted { $0.key < $1.key }.flatMap { topics(of: $0.value) })
  }

  /// Sends all configurations again: the broker may have lost them.
  mutating func restart() { for topic in announced.keys { announced[topic]?.text = nil } }

  /// The topics of entities, as far as no current one uses them: another client can have written a configuration that names any topic.
  private func topics(of gone: [String: DiscoveryPayload.Component]) -> [String] {
    let used = Set(announced.values.flatMap { $0.components.values.flatMap(\.topics) }).union([discovery.topics.status])
    return Set(gone.values.flatMap(\.topics)).subtracting(used).sorted()
  }
}
