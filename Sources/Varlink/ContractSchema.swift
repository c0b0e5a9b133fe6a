// Declarations of devices on the wire, converted to and from the schemas of the protocol state machines. A received declaration is
// untrusted: an invalid type or range is rejected.

import Protocols

extension Contract {
  /// A declared property.
  public struct Property: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable {
      case name, type, unit, minimum, maximum, choices, writable, motion, help, group, rank, lifetime, retained
    }

    public var name: String
    public var type: String
    public var unit: String?
    public private(set) var minimum: Double?
    public private(set) var maximum: Double?
    public var choices: [String]?
    public var writable: Bool
    /// Whether the property is writable only under a motion lease.
    public var motion: Bool
    public var help: String
    /// The group in which to show the property; nil if the daemon is too old to report groups.
    public var group: String?
    /// The importance of the property: 1 (headline) to 4 (statistic).
    public var rank: Int?
    /// The time in seconds without a new value after which a value is withdrawn.
    public private(set) var lifetime: Double?
    /// True if a value stays valid; nil otherwise. Without `lifetime`, a value is then valid until it changes or the link goes down.
    public var retained: Bool?

    /// Converts a machine's declaration.
    public init(_ property: Protocols.Property) {
      name = property.name
      type = property.type.rawValue
      unit = property.unit
      minimum = property.range?.lowerBound.finite
      maximum = property.range?.upperBound.finite
      choices = property.choices.isEmpty ? nil : property.choices
      writable = property.access != .read
      motion = property.access == .motion
      help = property.help
      group = property.group.rawValue
      rank = property.rank.rawValue
      switch property.lifetime {
      case .retained: retained = true
      case .whileUp: break
      case .fresh(let time): lifetime = Double(time) / 1e9
      }
    }
  }

  /// An argument of an action.
  public struct Argument: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case name, type, optional, secret, help }

    public var name: String
    public var type: String
    public var optional: Bool
    public var secret: Bool
    public var help: String

    /// Converts a machine's declaration.
    public init(_ argument: Protocols.Argument) {
      name = argument.name
      type = argument.type.rawValue
      optional = argument.optional
      secret = argument.secret
      help = argument.help
    }
  }

  /// An action of a device.
  public struct Action: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case name, arguments, motion, streams, help }

    public var name: String
    public var arguments: [Argument]
    public var motion: Bool
    public var streams: Bool
    public var help: String

    /// Converts a machine's declaration.
    public init(_ action: Protocols.Action) {
      name = action.name
      arguments = action.arguments.map(Argument.init)
      motion = action.motion
      streams = action.streams
      help = action.help
    }
  }

  /// All declarations of one device.
  public struct Schema: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case device, kind, properties, actions, provisional }

    public var device: String
    public var kind: String
    public var properties: [Property]
    public var actions: [Action]
    public var provisional: Bool?

    /// Converts the schema of this device's machine.
    public init(device: String, kind: String, _ schema: Protocols.Schema) {
      self.device = device
      self.kind = kind
      properties = schema.properties.map(Property.init)
      actions = schema.actions.map(Action.init)
      provisional = schema.isProvisional ? true : nil
    }
  }
}

extension Property {
  /// The property as a machine declares it, without its lifetime; nil if the declaration is invalid.
  public init?(_ property: Contract.Property) {
    guard let type = ValueType(rawValue: property.type) else { return nil }
    var range: ClosedRange<Double>?
    if property.minimum != nil || property.maximum != nil {
      let lower = property.minimum ?? -.infinity
      let upper = property.maximum ?? .infinity
      guard lower <= upper else { return nil }
      range = lower...upper
    }
    self.init(
      property.name, type, unit: property.unit, range: range, choices: property.choices ?? [],
      access: property.motion ? .motion : property.writable ? .write : .read, help: property.help)
  }
}

extension Argument {
  /// The argument as a machine declares it; nil if its type is unknown.
  public init?(_ argument: Contract.Argument) {
    guard let type = ValueType(rawValue: argument.type) else { return nil }
    self.init(argument.name, type, optional: argument.optional, secret: argument.secret, help: argument.help)
  }
}

extension Action {
  /// The action as a machine declares it; nil if the type of an argument is unknown.
  public init?(_ action: Contract.Action) {
    let arguments = action.arguments.compactMap(Argument.init)
    guard arguments.count == action.arguments.count else { return nil }
    self.init(action.name, arguments: arguments, motion: action.motion, streams: action.streams, help: action.help)
  }
}

extension Value: Codable {
  private enum CodingKeys: CodingKey, CaseIterable { case bool, int, float, string, list }

  public init(from decoder: any Decoder) throws {
    let object = try JSONNode.object(decoder)
    let document = object.document
    var found: Value?
    var key = object.index + 1
    while key < document.nodes[object.index].after {
      let node = JSONNode(document, key + 1, outermost: object.outermost)
      let name = try document.text(key)
      guard let type = CodingKeys(stringValue: name) else { throw object.decodingError("a value has no field \"\(name)\"") }
      key = document.nodes[key + 1].after
      if node.kind == .null { continue }
      guard found == nil else { throw object.decodingError("a value has exactly one field") }
      found =
        switch type {
        case .bool: .bool(try node.decode(Bool.self))
        case .int: .int(try node.decode(Int.self))
        case .float: .float(try node.decode(Double.self))
        case .string: .string(try node.decode(String.self))
        case .list: .list(try node.decode([String].self))
        }
    }
    guard let found else { throw object.decodingError("a value has exactly one field") }
    self = found
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch self {
    case .bool(let value): try container.encode(value, forKey: .bool)
    case .int(let value): try container.encode(value, forKey: .int)
    case .float(let value): try container.encode(value, forKey: .float)
    case .string(let value): try container.encode(value, forKey: .string)
    case .list(let value): try container.encode(value, forKey: .list)
    }
  }

  /// The value, or nil if it is a number that JSON cannot express.
  var finite: Value? {
    if case .float(let number) = self, !number.isFinite { nil } else { self }
  }
}
