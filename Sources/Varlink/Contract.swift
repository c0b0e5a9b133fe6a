// The types of the interface io.vehicled, shared by the daemon and the client. The definition in io.vehicled.varlink is the contract; a
// test compares these structs with it. Numbers that are not finite are omitted, because JSON cannot express them.

import Protocols

/// The types that the control socket carries.
public enum Contract {
  /// The interface that the methods belong to.
  public static let interface = "io.vehicled"

  /// One value: on the wire an object with exactly one field, whose name is the type.
  public typealias Value = Protocols.Value

  /// The current reading of one property.
  public struct Reading: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case device, property, value, unit, time, age, reason }

    public let device: String
    public let property: String
    public let value: Value?
    public let unit: String?
    /// When the value was measured, or since when it is absent for this reason, in microseconds since the Unix epoch.
    public let time: Int?
    /// The age of the value in seconds.
    public let age: Double?
    /// Why there is no value, or a remark on the value (`pending`).
    public var reason: String?

    public init(from decoder: any Decoder) throws {
      let node = try JSONNode.object(decoder)
      device = try node.required(String.self, CodingKeys.device)
      property = try node.required(String.self, CodingKeys.property)
      value = try node.optional(Value.self, CodingKeys.value)
      unit = try node.optional(String.self, CodingKeys.unit)
      time = try node.optional(Int.self, CodingKeys.time)
      age = try node.optional(Double.self, CodingKeys.age)
      reason = try node.optional(String.self, CodingKeys.reason)
    }

    /// Creates a reading. A number that is not finite is omitted.
    public init(
      device: String, property: String, value: Value? = nil, unit: String? = nil, time: Int? = nil, age: Double? = nil,
      reason: String? = nil
    ) {
      self.device = device
      self.property = property
      self.value = value?.finite
      self.unit = unit
      self.time = time
      self.age = age?.finite
      self.reason = value != nil && self.value == nil ? reason ?? "not a number" : reason
    }

    /// `device.property`.
    public var reference: String { "\(device).\(property)" }
  }

  /// One link of a device.
  public struct Link: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case name, url, state, reason, since, nextAttempt, details }

    public var name: String
    public var url: String
    /// down, connecting, up.
    public var state: String
    public var reason: String?
    /// Microseconds since the Unix epoch.
    public var since: Int
    /// Microseconds since the Unix epoch.
    public var nextAttempt: Int?
    /// Additional details, by key.
    public var details: [String: String]?

    public init(
      name: String, url: String, state: String, reason: String? = nil, since: Int, nextAttempt: Int? = nil, details: [String: String]? = nil
    ) {
      self.name = name
      self.url = url
      self.state = state
      self.reason = reason
      self.since = since
      self.nextAttempt = nextAttempt
      self.details = details
    }
  }

  /// One configured device.
  public struct Device: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case name, kind, state, links, holder, readings, fault }

    public var name: String
    public var kind: String
    /// The state, a word that the kind defines.
    public var state: String
    public var links: [Link]
    /// The owner of the motion lease.
    public var holder: String?
    public var readings: [Reading]
    /// The current problem, as a message.
    public var fault: String?

    public init(
      name: String, kind: String, state: String, links: [Link] = [], holder: String? = nil, readings: [Reading] = [], fault: String? = nil
    ) {
      self.name = name
      self.kind = kind
      self.state = state
      self.links = links
      self.holder = holder
      self.readings = readings
      self.fault = fault
    }
  }

  /// An occurrence that is not a property.
  public struct Event: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case device, name, text, time }

    /// The name of the event for a device that is no longer configured.
    public static let removed = "removed"

    public var device: String
    public var name: String
    public var text: String
    /// Microseconds since the Unix epoch.
    public var time: Int

    public init(device: String, name: String, text: String, time: Int) {
      self.device = device
      self.name = name
      self.text = text
      self.time = time
    }
  }

  /// One row of the result of an action.
  public struct Row: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case cells }

    public var cells: [String]

    public init(cells: [String]) { self.cells = cells }
  }

  /// A device found by Scan.
  public struct Discovery: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case transport, address, name, rssi, kind, time }

    public var transport: String
    public var address: String
    public var name: String?
    public var rssi: Int?
    public var kind: String?
    /// Microseconds since the Unix epoch.
    public var time: Int

    public init(transport: String, address: String, name: String? = nil, rssi: Int? = nil, kind: String? = nil, time: Int) {
      self.transport = transport
      self.address = address
      self.name = name
      self.rssi = rssi
      self.kind = kind
      self.time = time
    }
  }

  /// One metric of the daemon.
  public struct Statistic: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case name, kind, help, unit, labels, value }

    /// The OpenMetrics name, with unit: `vehicled_memory_resident_bytes`.
    public var name: String
    /// counter, gauge.
    public var kind: String
    public var help: String
    /// The OpenMetrics unit: `bytes`.
    public var unit: String?
    public var labels: [String: String]?
    public var value: Double

    public init(_ name: String, _ kind: String, _ help: String, unit: String? = nil, labels: [String: String]? = nil, _ value: Double) {
      (self.name, self.kind, self.help, self.unit, self.labels, self.value) = (name, kind, help, unit, labels, value)
    }
  }

  /// The result of one check.
  public struct Finding: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case subject, state, text, remedy }

    public var subject: String
    /// ok, warning, failed.
    public var state: String
    public var text: String
    /// A command to run, or an instruction.
    public var remedy: String?

    public init(_ subject: String, _ state: String, _ text: String, _ remedy: String?) {
      self.subject = subject
      self.state = state
      self.text = text
      self.remedy = remedy
    }
  }
}
