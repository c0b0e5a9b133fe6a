// The configuration of a device for Home Assistant: one retained message with all its entities. No I/O.
// Source: home-assistant.io, "MQTT discovery" (device discovery and its abbreviations).

import Protocols
import Varlink

struct DiscoveryPayload {
  let topics: Topics
  /// The discovery prefix of Home Assistant.
  let prefix: String
  let timing: PropertyState.Timing
  /// Whether a property may be set, and an action be run, by clients of the broker.
  let allows: (_ device: String, _ name: String) -> Bool

  /// The topic of a device's configuration. An empty message removes the device.
  func topic(of device: String) -> String { "\(prefix)/device/\(identifier(device))/config" }

  /// Whether the topic is that of a configuration of this bridge.
  func isOwn(_ topic: String) -> Bool { topic.hasPrefix("\(prefix)/device/\(identifier(""))") && topic.hasSuffix("/config") }

  private func identifier(_ device: String) -> String {
    "vehicled_\(topics.host)_\(device)".map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") ? $0 : "_" }
      .reduce(into: "") { $0.append($1) }
  }

  /// An entity in a configuration.
  struct Component: Equatable {
    var platform: String
    var definition: JSON

    init(_ definition: JSON, platform: Entity.Platform) { (self.platform, self.definition) = (platform.rawValue, definition) }

    /// Reads a component of a configuration; nil if it defines no entity.
    init?(_ found: JSON) {
      guard let platform = found["p"]?.string, found["uniq_id"] != nil else { return nil }
      (self.platform, definition) = (platform, found)
    }
  }

  /// The entities of a device with these published properties. Their keys contain the platform, because Home Assistant cannot change it.
  func components(_ schema: Contract.Schema) -> [String: Component] {
    let id = identifier(schema.device)
    var components = [
      "binary_sensor-link": Component(link(schema.device, id), platform: .binarySensor),
      "sensor-state": Component(state(schema.device, id), platform: .sensor),
    ]
    for property in schema.properties where !["link", "state"].contains(property.name) {
      let entity = EntityModel.entity(for: property, isWritable: allows(schema.device, property.name))
      let definition = component(property, entity, of: schema.device, id)
      components["\(entity.platform.rawValue)-\(property.name)"] = Component(definition, platform: entity.platform)
    }
    for action in schema.actions where !action.motion && action.arguments.allSatisfy(\.optional) && allows(schema.device, action.name) {
      components["button-\(action.name)"] = Component(button(action, of: schema.device, id), platform: .button)
    }
    return components
  }

  /// The entities in a configuration that this bridge has published; empty if another program has.
  func components(in payload: JSON) -> [String: Component] {
    guard case .array(let availability)? = payload["avty"], availability.first?["t"]?.string == topics.status,
      case .object(let members)? = payload["cmps"]
    else {
      return [:]
    }
    var components: [String: Component] = [:]
    for member in members {
      components[member.key] = Component(member.value)
    }
    return components
  }

  /// The configuration of a device with these entities. `removed`: the platforms of former entities, by key.
  func payload(_ schema: Contract.Schema, _ components: [String: Component], removed: [String: String] = [:]) -> String {
    let id = identifier(schema.device)
    let definitions = components.mapValues(\.definition).merging(removed.mapValues { .members(["p": .string($0)]) }) { $1 }
    return JSON.members([
      "dev": .members([
        "ids": .string(id), "name": .string(schema.device), "mf": .string("vehicled"), "mdl": .string(schema.kind),
        "sw": .string(Protocols.version),
      ]),
      "o": .members(["name": .string("vehicled-mqtt"), "sw": .string(Protocols.version)]),
      // Those of the components, unless they have their own.
      "avty": .array([bridge, up(schema.device)]),
      "avty_mode": .string("all"),
      "cmps": .object(definitions.sorted { $0.key < $1.key }.map { JSON.Member(key: $0.key, value: $0.value) }),
    ]).text
  }

  private func component(_ property: Contract.Property, _ entity: Entity, of device: String, _ id: String) -> JSON {
    let isCommand = ![Entity.Platform.sensor, .binarySensor].contains(entity.platform)
    let isFresh = property.retained != true
    let isBool = entity.platform == .binarySensor || entity.platform == .switchable
    return .members([
      "p": .string(entity.platform.rawValue),
      "uniq_id": .string("\(id)_\(property.name)"),
      "name": .string(Self.name(property.name)),
      "stat_t": .string(topics.value(device, property.name)),
      "json_attr_t": .string(topics.attributes(device, property.name)),
      "cmd_t": isCommand ? .string(topics.set(device, property.name)) : nil,
      "qos": isCommand ? .int(1) : nil,
      "avty": isFresh ? nil : .array([bridge]),
      "exp_aft": isFresh && !isCommand ? .int(Int(timing.expiry)) : nil,
      "dev_cla": entity.deviceClass.map { .string($0) },
      "stat_cla": entity.stateClass.map { .string($0) },
      "unit_of_meas": entity.unit.map { .string($0) },
      "sug_dsp_prc": entity.precision.map { .int($0) },
      "ent_cat": entity.category.map { .string($0) },
      "en": entity.isEnabled ? nil : .bool(false),
      "ops": entity.options.isEmpty ? nil : .array(entity.options.map { .string($0) }),
      "min": entity.range.map { .float($0.lowerBound) },
      "max": entity.range.map { .float($0.upperBound) },
      "step": entity.step.map { .float($0) },
      "pl_on": isBool ? .string("true") : nil,
      "pl_off": isBool ? .string("false") : nil,
      "stat_on": entity.platform == .switchable ? .string("true") : nil,
      "stat_off": entity.platform == .switchable ? .string("false") : nil,
    ])
  }

  /// The connection of the device, which stays available while it is down.
  private func link(_ device: String, _ id: String) -> JSON {
    .members([
      "p": .string("binary_sensor"), "uniq_id": .string("\(id)_link"), "name": .string("Link"), "stat_t": .string(topics.link(device)),
      "avty": .array([bridge]), "dev_cla": .string("connectivity"), "ent_cat": .string("diagnostic"), "pl_on": .string("up"),
      "pl_off": .string("down"), "val_tpl": .string("{{ 'up' if value == 'up' else 'down' }}"),
    ])
  }

  private func state(_ device: String, _ id: String) -> JSON {
    .members([
      "p": .string("sensor"), "uniq_id": .string("\(id)_state"), "name": .string("State"), "stat_t": .string(topics.state(device)),
      "avty": .array([bridge]),
    ])
  }

  private func button(_ action: Contract.Action, of device: String, _ id: String) -> JSON {
    .members([
      "p": .string("button"), "uniq_id": .string("\(id)_do_\(action.name)"), "name": .string(Self.name(action.name)),
      "cmd_t": .string(topics.action(device, action.name)), "qos": .int(1),
    ])
  }

  /// A retained value is available while the bridge is, a fresh one only while the link is up as well.
  private var bridge: JSON { .members(["t": .string(topics.status)]) }
  private func up(_ device: String) -> JSON {
    .members([
      "t": .string(topics.link(device)), "pl_avail": .string("up"), "pl_not_avail": .string("down"),
      "val_tpl": .string("{{ 'up' if value == 'up' else 'down' }}"),
    ])
  }

  /// `state-of-charge` as a name: State of charge.
  private static func name(_ name: String) -> String {
    let words = name.split(separator: "-").joined(separator: " ")
    return words.prefix(1).uppercased() + words.dropFirst()
  }
}
