// The methods of io.vehicled that can return more than one reply. The definition in io.vehicled.varlink is the contract; a test compares
// these structs with it.

import Protocols

extension Contract {
  public enum Call: VarlinkMethod {
    public static let name = "io.vehicled.Call"

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case device, action, arguments, lease }
      public var device: String
      public var action: String
      public var arguments: [String: Value]?
      public var lease: String?

      /// Runs an action with these arguments.
      public init(device: String, action: String, arguments: [String: Value]? = nil, lease: String? = nil) {
        self.device = device
        self.action = action
        self.arguments = arguments
        self.lease = lease
      }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case text, progress, columns, rows, data }
      public var text: String?
      /// The progress of the action, 0 to 1.
      public private(set) var progress: Double?
      public var columns: [String]?
      public var rows: [Row]?
      /// Binary output in Base64.
      public var data: String?

      /// Converts a machine's report.
      public init(_ report: Report) {
        text = report.text
        progress = report.progress?.finite
        columns = report.columns.isEmpty ? nil : report.columns
        rows = report.rows.isEmpty ? nil : report.rows.map(Row.init)
        data = report.data.map(Base64.encode)
      }
    }
  }

  public enum Watch: VarlinkMethod {
    public static let name = "io.vehicled.Watch"
    /// The valid range of minimumIntervalMilliseconds; 0 reports every change immediately.
    public static let intervals = 0...3_600_000

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case references, minimumIntervalMilliseconds }
      public var references: [String]?
      public var minimumIntervalMilliseconds: Int?

      /// Watches these references, or all properties if `references` is nil.
      public init(references: [String]? = nil, minimumIntervalMilliseconds: Int? = nil) {
        self.references = references
        self.minimumIntervalMilliseconds = minimumIntervalMilliseconds
      }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case sequence, time, snapshot, changes, schemas, events }
      public var sequence: Int
      /// When the reply was sent, in µs since the Unix epoch; nil from a daemon before version 0.2.
      public var time: Int?
      public var snapshot: [Device]?
      public var changes: [Reading]?
      public var schemas: [Schema]?
      public var events: [Event]?

      /// Creates a snapshot, a list of changes, or an empty heartbeat.
      public init(
        sequence: Int, time: Int? = nil, snapshot: [Device]? = nil, changes: [Reading]? = nil, schemas: [Schema]? = nil,
        events: [Event]? = nil
      ) {
        self.sequence = sequence
        self.time = time
        self.snapshot = snapshot
        self.changes = changes
        self.schemas = schemas
        self.events = events
      }
    }
  }

  public enum Drive: VarlinkMethod {
    public static let name = "io.vehicled.Drive"
    /// The valid range of the deadline between setpoints, in milliseconds.
    public static let deadlines = 100...5000
    /// The default deadline, in milliseconds.
    public static let defaultDeadline = 300

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case device, deadlineMilliseconds }
      public var device: String
      public var deadlineMilliseconds: Int?

      /// Acquires the lease of a device, which is lost if no setpoint arrives within the deadline.
      public init(device: String, deadlineMilliseconds: Int? = nil) {
        self.device = device
        self.deadlineMilliseconds = deadlineMilliseconds
      }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case lease, state }
      public var lease: String
      public var state: String

      /// Creates a result with the lease and its state.
      public init(lease: String, state: String) {
        self.lease = lease
        self.state = state
      }
    }
  }

  public enum Scan: VarlinkMethod {
    public static let name = "io.vehicled.Scan"

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case transport, seconds }
      public var transport: String?
      public var seconds: Int?

      /// Scans one transport, or all transports if `transport` is nil.
      public init(transport: String? = nil, seconds: Int? = nil) {
        self.transport = transport
        self.seconds = seconds
      }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case found, searching, reason }
      public var found: Discovery?
      public var searching: Bool
      public var reason: String?

      /// Creates a result. `found`: a device that was found; `searching`: whether the scan continues; `reason`: why the scan is waiting, if
      /// it is.
      public init(found: Discovery? = nil, searching: Bool, reason: String? = nil) {
        self.found = found
        self.searching = searching
        self.reason = reason
      }
    }
  }

  public enum Record: VarlinkMethod {
    public static let name = "io.vehicled.Record"
    public typealias Parameters = OneDevice

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case line }
      public var line: String

      /// Creates a result with one line of the recording.
      public init(line: String) { self.line = line }
    }
  }
}
