// The methods of the interface io.vehicled: parameters and results. The definition in io.vehicled.varlink is the contract; a test
// compares these structs with it.

import Protocols

extension Contract {
  /// Every method; each one must have a handler.
  public static let methods: [any VarlinkMethod.Type] = [
    Status.self, Describe.self, Get.self, Set.self, Call.self, Watch.self, Drive.self, Scan.self, Diagnose.self, Statistics.self,
    Record.self,
    Connect.self, Disconnect.self, Reload.self, LogLevel.self, Log.self,
  ]

  /// The parameters of a method that takes one device, or all devices.
  public struct AnyDevice: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case device }
    public var device: String?

    /// Selects one device; nil selects all.
    public init(device: String? = nil) { self.device = device }
  }

  /// The parameters of a method that takes one device.
  public struct OneDevice: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case device }
    public var device: String

    /// Selects this device.
    public init(device: String) { self.device = device }
  }

  public enum Status: VarlinkMethod {
    public static let name = "io.vehicled.Status"
    public typealias Parameters = AnyDevice

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case devices }
      public var devices: [Device]

      public init(devices: [Device]) { self.devices = devices }
    }
  }

  public enum Diagnose: VarlinkMethod {
    public static let name = "io.vehicled.Diagnose"
    public typealias Parameters = NoParameters

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case findings }
      public var findings: [Finding]

      public init(findings: [Finding]) { self.findings = findings }
    }
  }

  public enum Statistics: VarlinkMethod {
    public static let name = "io.vehicled.Statistics"
    public typealias Parameters = NoParameters

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case statistics }
      public var statistics: [Statistic]

      /// Creates a result; metrics of the same name must be adjacent.
      public init(statistics: [Statistic]) { self.statistics = statistics }
    }
  }

  public enum LogLevel: VarlinkMethod {
    public static let name = "io.vehicled.LogLevel"

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case level }
      public var level: String?

      /// Sets this level; nil only queries the current level.
      public init(level: String? = nil) { self.level = level }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case level }
      public var level: String

      /// Creates a result with the level in effect.
      public init(level: String) { self.level = level }
    }
  }

  public enum Describe: VarlinkMethod {
    public static let name = "io.vehicled.Describe"
    public typealias Parameters = AnyDevice

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case schemas }
      public var schemas: [Schema]

      public init(schemas: [Schema]) { self.schemas = schemas }
    }
  }

  public enum Get: VarlinkMethod {
    public static let name = "io.vehicled.Get"

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case references }
      public var references: [String]

      /// Selects these references: `device.property`, or `property` if exactly one device has it.
      public init(references: [String]) { self.references = references }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case readings }
      public var readings: [Reading]

      /// Creates a result with the readings in the order of the references.
      public init(readings: [Reading]) { self.readings = readings }
    }
  }

  public enum Set: VarlinkMethod {
    public static let name = "io.vehicled.Set"

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case device, property, value, lease }
      public var device: String
      public var property: String
      public var value: Value
      public var lease: String?

      /// Sets a property to a value.
      public init(device: String, property: String, value: Value, lease: String? = nil) {
        self.device = device
        self.property = property
        self.value = value
        self.lease = lease
      }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case reading }
      public var reading: Reading

      /// Creates a result with the reading after the change.
      public init(reading: Reading) { self.reading = reading }
    }
  }

  public enum Connect: VarlinkMethod {
    public static let name = "io.vehicled.Connect"
    public typealias Parameters = OneDevice
    public typealias Result = NoParameters
  }

  public enum Disconnect: VarlinkMethod {
    public static let name = "io.vehicled.Disconnect"
    public typealias Parameters = OneDevice
    public typealias Result = NoParameters
  }

  public enum Reload: VarlinkMethod {
    public static let name = "io.vehicled.Reload"
    public typealias Parameters = NoParameters

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case changed, added, removed }
      public var changed: [String]
      /// The names in `changed` that are new.
      public var added: [String]?
      /// The names in `changed` that are no longer configured.
      public var removed: [String]?

      /// Creates a result from the names of devices and sections.
      public init(changed: [String], added: [String]? = nil, removed: [String]? = nil) {
        (self.changed, self.added, self.removed) = (changed, added, removed)
      }
    }
  }

  /// A log record of the daemon.
  public struct LogRecord: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case time, level, device, link, message, details }
    /// Microseconds since the Unix epoch.
    public var time: Int
    public var level: String
    public var device: String?
    public var link: String?
    public var message: String
    public var details: [String: String]?

    public init(time: Int, level: String, device: String?, link: String?, message: String, details: [String: String]?) {
      (self.time, self.level, self.device, self.link, self.message, self.details) = (time, level, device, link, message, details)
    }
  }

  public enum Log: VarlinkMethod {
    public static let name = "io.vehicled.Log"

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case device, level }
      public var device: String?
      public var level: String?

      /// Selects the records about one device, or all records, of this level or more severe.
      public init(device: String? = nil, level: String? = nil) { (self.device, self.level) = (device, level) }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case records, omitted }
      public var records: [LogRecord]
      /// The number of records that the client has missed before these.
      public var omitted: Int?

      /// Records, oldest first.
      public init(records: [LogRecord], omitted: Int? = nil) { (self.records, self.omitted) = (records, omitted) }
    }
  }
}
