// What a device declares: properties, actions, and the values they take. Status, get, set, describe, validation,
// help and completion are all derived from these tables; nothing else in the house knows what a device can do.

/// The type of a property or argument, as the control socket names it.
public enum ValueType: String, Sendable, CaseIterable {
  case bool, int, float, string, list
}

/// One value. A value that is not known is absent (see `Reading`), never zero.
public enum Value: Sendable, Equatable {
  case bool(Bool)
  case int(Int)
  case float(Double)
  case string(String)
  case list([String])

  /// The type this value has.
  public var type: ValueType {
    switch self {
    case .bool: .bool
    case .int: .int
    case .float: .float
    case .string: .string
    case .list: .list
    }
  }

  /// The value as a number, where it is one.
  public var number: Double? {
    switch self {
    case .int(let value): Double(value)
    case .float(let value): value
    default: nil
    }
  }
}

/// A declared property: its name, type, unit and range, whether it can be set, and how long a value stays fresh.
public struct Property: Sendable, Equatable {
  /// Who may write the property.
  public enum Access: Sendable, Equatable {
    /// Only the device changes it.
    case read
    /// Anybody with the right to control may set it.
    case write
    /// It moves the vehicle: writable only under a lease.
    case motion
  }

  /// What becomes of the value when it is past `freshFor`, or when the link is down.
  public enum Lifetime: Sendable, Equatable {
    /// The value is withdrawn after this long without a new one (nanoseconds), and at once when the link goes down.
    case fresh(Nanoseconds)
    /// The value stays, with its age (odometer, VIN, an LED that was set).
    case retained

    /// True until something else is said or the link goes down: the device tells changes and nothing else. A century.
    public static let whileUp = Lifetime.fresh(100 * 365 * 86_400 * .second)
  }

  /// Lower case, dashes, the field's own term: `state-of-charge`.
  public var name: String
  /// The type of its values.
  public var type: ValueType
  /// SI or the automotive norm: km/h, °C, V, A, %, rpm, kW, km.
  public var unit: String?
  /// The numbers it can take, in `unit`.
  public var range: ClosedRange<Double>?
  /// The strings it can take, where they are a closed set.
  public var choices: [String]
  /// Who may write it.
  public var access: Access
  /// Set while the link is down: kept, answered with reason `pending`, sent at connect.
  public var remembered: Bool
  /// How long a value is shown.
  public var lifetime: Lifetime
  /// One line for a person.
  public var help: String

  /// Declares a property. Without a lifetime a value is fresh for two seconds.
  public init(
    _ name: String, _ type: ValueType, unit: String? = nil, range: ClosedRange<Double>? = nil, choices: [String] = [],
    access: Access = .read, remembered: Bool = false, lifetime: Lifetime = .fresh(2 * .second), help: String
  ) {
    self.name = name
    self.type = type
    self.unit = unit
    self.range = range
    self.choices = choices
    self.access = access
    self.remembered = remembered
    self.lifetime = lifetime
    self.help = help
  }
}

/// An argument of an action. Required arguments come before optional ones; a person gives them by position.
public struct Argument: Sendable, Equatable {
  public var name: String
  public var type: ValueType
  public var optional: Bool
  /// Read from a prompt or standard input, never from argv; never logged.
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

/// Something a device can be asked to do.
public struct Action: Sendable, Equatable {
  public var name: String
  public var arguments: [Argument]
  /// It moves the vehicle: allowed only under a lease.
  public var motion: Bool
  /// It reports progress, text and rows as it goes, where the caller asks for more than one reply.
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

/// All that a device declares. A machine that learns more while it runs declares a new schema (`Effects.declare`).
public struct Schema: Sendable, Equatable {
  public var properties: [Property]
  public var actions: [Action]

  /// A schema of these properties and actions; names are unique.
  public init(properties: [Property] = [], actions: [Action] = []) {
    self.properties = properties
    self.actions = actions
  }

  /// Whether anything in it moves the vehicle.
  public var moves: Bool { properties.contains { $0.access == .motion } || actions.contains(where: \.motion) }
}

/// What a machine says of one property: a value, or why there is none.
public struct Reading: Sendable, Equatable {
  /// A value, or the reason in a person's words ("not reported by this car").
  public enum Content: Sendable, Equatable {
    case value(Value)
    case absent(String)
  }

  /// The position of the property in the machine's schema.
  public var property: Int
  public var content: Content
  /// How long ago the value was measured: it was kept over a restart, or comes late. It is shown as that old, and counts as fresh
  /// from then on.
  public var age: Nanoseconds

  /// A reading of the property at this position of the schema.
  public init(_ property: Int, _ content: Content, age: Nanoseconds = 0) {
    self.property = property
    self.content = content
    self.age = age
  }
}
