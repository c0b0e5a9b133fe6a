// The types of the interface io.vehicled, as both programs hold them. The text io.vehicled.varlink is the contract; a test
// holds these structs against it. What is not finite is absent: JSON has no word for it.

/// Everything that the control socket carries.
public enum Contract {
  /// The interface that the methods belong to.
  public static let interface = "io.vehicled"

  /// One value: on the wire an object with exactly one field, named for its type.
  public typealias Value = Protocols.Value

  /// What is known of one property.
  public struct Reading: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case device, property, value, unit, time, age, reason }

    public let device: String
    public let property: String
    public let value: Value?
    public let unit: String?
    /// Microseconds since the Unix epoch.
    public let time: Int?
    /// Seconds.
    public let age: Double?
    /// Why there is no value, or what is to be known of the one there is (`pending`).
    public var reason: String?

    /// A reading. A value that is no finite number is left out.
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
    /// What else there is to know, by short names.
    public var details: [String: String]?

    /// A link.
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
    /// The kind's own word.
    public var state: String
    public var links: [Link]
    /// Who has the motion lease.
    public var holder: String?
    public var readings: [Reading]
    /// What is wrong with it, in a person's words.
    public var fault: String?

    /// A device.
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

  /// Something that happened and is no property.
  public struct Event: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case device, name, text, time }

    /// The name of the event that says that a device is configured no longer.
    public static let removed = "removed"

    public var device: String
    public var name: String
    public var text: String
    /// Microseconds since the Unix epoch.
    public var time: Int

    /// An event.
    public init(device: String, name: String, text: String, time: Int) {
      self.device = device
      self.name = name
      self.text = text
      self.time = time
    }
  }

  /// A row of what an action found.
  public struct Row: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case cells }

    public var cells: [String]

    /// A row of these cells.
    public init(cells: [String]) { self.cells = cells }
  }

  /// Something heard while searching.
  public struct Discovery: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case transport, address, name, rssi, kind, time }

    public var transport: String
    public var address: String
    public var name: String?
    public var rssi: Int?
    public var kind: String?
    /// Microseconds since the Unix epoch.
    public var time: Int

    /// A discovery.
    public init(transport: String, address: String, name: String? = nil, rssi: Int? = nil, kind: String? = nil, time: Int) {
      self.transport = transport
      self.address = address
      self.name = name
      self.rssi = rssi
      self.kind = kind
      self.time = time
    }
  }

  /// One figure of the daemon itself.
  public struct Statistic: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case name, kind, help, unit, labels, value }

    /// As OpenMetrics has it, unit included: `vehicled_memory_resident_bytes`.
    public var name: String
    /// counter, gauge.
    public var kind: String
    public var help: String
    /// In OpenMetrics' words: `bytes`.
    public var unit: String?
    public var labels: [String: String]?
    public var value: Double

    /// A figure.
    public init(_ name: String, _ kind: String, _ help: String, unit: String? = nil, labels: [String: String]? = nil, _ value: Double) {
      (self.name, self.kind, self.help, self.unit, self.labels, self.value) = (name, kind, help, unit, labels, value)
    }
  }

  /// What a look at one thing showed.
  public struct Finding: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case subject, state, text, remedy }

    public var subject: String
    /// ok, warning, failed.
    public var state: String
    public var text: String
    /// A command, or what to do.
    public var remedy: String?

    /// A finding.
    public init(_ subject: String, _ state: String, _ text: String, _ remedy: String?) {
      self.subject = subject
      self.state = state
      self.text = text
      self.remedy = remedy
    }
  }
}

extension Double {
  /// The number, where it is one.
  var finite: Double? { isFinite ? self : nil }
}
