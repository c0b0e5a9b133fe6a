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

  /// Announces a device whose properties may have changed. While they are provisional, the former ones stay: Home Assistant would forget
  /// what its user has changed in their entities.
  mutating func announce(_ schema: Contract.Schema) -> [OutgoingMessage] {
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
    return isNew ? [.state(topic, text)] : []
  }

  /// Removes a device, unless it was never announced.
  mutating func withdraw(_ device: String) -> [OutgoingMessage] {
    let topic = discovery.topic(of: device)
    let known = announced.removeValue(forKey: topic) != nil
    let isLeftover = leftovers.removeValue(forKey: topic) != nil
    return known || isLeftover ? [.state(topic, "")] : []
  }

  /// Applies a retained configuration from the broker. Those of other programs and other bridges are ignored.
  /// Returns whether it has changed anything.
  mutating func found(_ message: IncomingMessage) -> Bool {
    guard message.isRetained, discovery.isOwn(message.topic), announced[message.topic]?.text.map({ Array($0.utf8) }) != message.payload,
      let text = String(validating: message.payload, as: UTF8.self), let payload = JSON(text)
    else {
      return false
    }
    let components = discovery.components(in: payload)
    guard !components.isEmpty else { return false }
    leftovers[message.topic] = components
    return true
  }

  /// Removes the devices that are not among these, also those of an earlier run.
  mutating func removeAll(except devices: [String]) -> [OutgoingMessage] {
    let current = Set(devices.map { discovery.topic(of: $0) })
    let gone = Set(leftovers.keys).union(announced.keys).subtracting(current)
    for topic in gone { (leftovers[topic], announced[topic]) = (nil, nil) }
    return gone.sorted().map { .state($0, "") }
  }

  /// Whether a topic is that of a configuration that was announced or found.
  func isInUse(_ topic: String) -> Bool { announced[topic] != nil || leftovers[topic] != nil }

  /// Sends all configurations again: the broker may have lost them.
  mutating func restart() { for topic in announced.keys { announced[topic]?.text = nil } }
}
