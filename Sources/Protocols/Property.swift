// The declarations of a device: properties, actions, and their values. Status, get, set, describe, validation, help and
// completion are all derived from these tables.

/// The type of a property or argument, as the control socket names it.
public enum ValueType: String, Sendable, CaseIterable {
  case bool, int, float, string, list
}

/// One value. An unknown value is absent (see `Reading`), never zero.
public enum Value: Sendable, Equatable {
  case bool(Bool)
  case int(Int)
  case float(Double)
  case string(String)
  case list([String])

  /// The type of this value.
  public var type: ValueType {
    switch self {
    case .bool: .bool
    case .int: .int
    case .float: .float
    case .string: .string
    case .list: .list
    }
  }

  /// The value as a number, or nil if it is not one.
  public var number: Double? {
    switch self {
    case .int(let value): Double(value)
    case .float(let value): value
    default: nil
    }
  }
}

/// A declared property: name, type, unit, range, access, and how long a value stays valid.
public struct Property: Sendable, Equatable {
  /// Who can change the property.
  public enum Access: Sendable, Equatable {
    /// Only the device changes it.
    case read
    /// A client with the right to control can set it.
    case write
    /// The property moves the vehicle: a client can set it only under a motion lease.
    case motion
  }

  /// When a value becomes stale.
  public enum Lifetime: Sendable, Equatable {
    /// The value is withdrawn after this time without a new one (nanoseconds), and at once when the link goes down.
    case fresh(Nanoseconds)
    /// The value stays valid, and is shown with its age (odometer, VIN, an LED that was set).
    case retained

    /// Valid until it changes or the link goes down, for devices that report changes only: a lifetime of a century.
    public static let whileUp = Lifetime.fresh(100 * 365 * 86_400 * .second)
  }

  private struct Definition: Sendable, Equatable {
    var name: String
    var type: ValueType
    var unit: String?
    var range: ClosedRange<Double>?
    var choices: [String]
    var access: Access
    var persisted: Bool
    var group: PropertyGroup
    var rank: PropertyRank
    var help: String
  }

  private final class Shared: Sendable {
    let definition: Definition
    init(_ definition: Definition) { self.definition = definition }
  }

  /// The copies of a property share one definition: a thousand devices have the same tables.
  private var shared: Shared

  private var definition: Definition {
    get { shared.definition }
    set { shared = Shared(newValue) }
  }

  /// The standard term, in lower case with dashes, such as `state-of-charge`.
  public var name: String { definition.name }
  /// The type of its values.
  public var type: ValueType { definition.type }
  /// The unit, by SI or automotive convention: km/h, °C, V, A, %, rpm, kW, km.
  public var unit: String? { definition.unit }
  /// The valid numbers, in `unit`.
  public var range: ClosedRange<Double>? { definition.range }
  /// The valid strings; empty if any string is valid.
  public var choices: [String] {
    get { definition.choices }
    set { definition.choices = newValue }
  }
  /// Who can change it.
  public var access: Access {
    get { definition.access }
    set { definition.access = newValue }
  }
  /// Whether the property is a setting: `PersistedSettings` stores it in a file with the property's name, and it can be set while the link
  /// is down.
  public var persisted: Bool {
    get { definition.persisted }
    set { definition.persisted = newValue }
  }
  /// The group that clients show it in.
  public var group: PropertyGroup {
    get { definition.group }
    set { definition.group = newValue }
  }
  /// Its importance within the group.
  public var rank: PropertyRank {
    get { definition.rank }
    set { definition.rank = newValue }
  }
  /// A description in one line.
  public var help: String { definition.help }
  /// How long a value is valid.
  public var lifetime: Lifetime

  /// Declares a property. By default a value is valid for two seconds.
  public init(
    _ name: String, _ type: ValueType, unit: String? = nil, range: ClosedRange<Double>? = nil, choices: [String] = [],
    access: Access = .read, persisted: Bool = false, lifetime: Lifetime = .fresh(2 * .second), group: PropertyGroup = .general,
    rank: PropertyRank = .main, help: String
  ) {
    shared = Shared(
      Definition(
        name: name, type: type, unit: unit, range: range, choices: choices, access: access, persisted: persisted, group: group,
        rank: rank, help: help))
    self.lifetime = lifetime
  }

  public static func == (lhs: Property, rhs: Property) -> Bool {
    lhs.lifetime == rhs.lifetime && (lhs.shared === rhs.shared || lhs.definition == rhs.definition)
  }
}

/// An argument of an action. Required arguments come before optional ones; on the command line they are positional.
public struct Argument: Sendable, Equatable {
  public var name: String
  public var type: ValueType
  public var optional: Bool
  /// Whether the argument is secret: read from a prompt or standard input, never from the command line, and never logged.
  public var secret: Bool
  public var help: String

  /// Declares an argument.
  public init(_ name: String, _ type: ValueType, optional: Bool = false, secret: Bool = false, help: String) {
    self.name = name
    self.type = type
    self.optional = optional
    self.secret = secret
    self.help = help
  }
}

/// An action of a device.
public struct Action: Sendable, Equatable {
  public var name: String
  public var arguments: [Argument]
  /// Whether the action moves the vehicle, and is therefore allowed only under a motion lease.
  public var motion: Bool
  /// Whether the action streams progress, text and rows to callers that accept more than one reply.
  public var streams: Bool
  public var help: String

  /// Declares an action.
  public init(_ name: String, arguments: [Argument] = [], motion: Bool = false, streams: Bool = false, help: String) {
    self.name = name
    self.arguments = arguments
    self.motion = motion
    self.streams = streams
    self.help = help
  }
}

/// All declarations of a device. A machine that discovers more at run time declares a new schema (`Effects.declare`).
public struct Schema: Sendable, Equatable {
  public var properties: [Property]
  public var actions: [Action]
  /// Whether the device has not been detected yet, so that properties can be missing.
  public var isProvisional: Bool

  /// Creates a schema; names must be unique.
  public init(properties: [Property] = [], actions: [Action] = [], isProvisional: Bool = false) {
    self.properties = properties
    self.actions = actions
    self.isProvisional = isProvisional
  }

  /// Whether a property or action moves the vehicle.
  public var moves: Bool { properties.contains { $0.access == .motion } || actions.contains(where: \.motion) }
}

/// The reading of one property: a value, or why there is none.
public struct Reading: Sendable, Equatable {
  /// A value, or the reason for its absence ("not reported by this car").
  public enum Content: Sendable, Equatable {
    case value(Value)
    case absent(String)
  }

  /// The position of the property in the machine's schema.
  public var property: Int
  public var content: Content
  /// The time since the value was measured, if it was restored from disk or arrived late. The value is shown with this age, but is
  /// valid for its full lifetime from now on.
  public var age: Nanoseconds

  /// A reading of the property at this position of the schema; `age` in nanoseconds.
  public init(_ property: Int, _ content: Content, age: Nanoseconds = 0) {
    self.property = property
    self.content = content
    self.age = age
  }
}
