// The methods of the interface io.vehicled.history: parameters and results.

import Protocols

extension HistoryContract {
  /// All methods. Each one must have a handler.
  public static let methods: [any VarlinkMethod.Type] = [
    StatusMethod.self, SeriesMethod.self, SamplesMethod.self, PlotMethod.self, PeriodsMethod.self, PeriodMethod.self, RecutMethod.self,
    DeleteMethod.self, RenameMethod.self, CheckMethod.self, CompactMethod.self, ImportMethod.self, AlertsMethod.self,
  ]

  public enum StatusMethod: VarlinkMethod {
    public static let name = "io.vehicled.history.Status"
    public typealias Parameters = NoParameters

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case recording, reason, size, limit, first, last, devices, dropped }
      public var recording: Bool
      public var reason: String?
      public var size: Int
      public var limit: Int
      public var first: Int?
      public var last: Int?
      public var devices: [String]
      public var dropped: Int

      public init(
        recording: Bool, reason: String? = nil, size: Int, limit: Int, first: Int? = nil, last: Int? = nil, devices: [String], dropped: Int
      ) {
        self.recording = recording
        self.reason = reason
        self.size = size
        self.limit = limit
        self.first = first
        self.last = last
        self.devices = devices
        self.dropped = dropped
      }
    }
  }

  public enum SeriesMethod: VarlinkMethod {
    public static let name = "io.vehicled.history.Series"

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case device }
      public var device: String?

      public init(device: String? = nil) {
        self.device = device
      }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case series }
      public var series: [Series]

      public init(series: [Series]) {
        self.series = series
      }
    }
  }

  public enum SamplesMethod: VarlinkMethod {
    public static let name = "io.vehicled.history.Samples"

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case device, properties, start, end }
      public var device: String
      public var properties: [String]?
      public var start: Int?
      public var end: Int?

      public init(device: String, properties: [String]? = nil, start: Int? = nil, end: Int? = nil) {
        self.device = device
        self.properties = properties
        self.start = start
        self.end = end
      }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case series, samples, damage, progress }
      public var series: [Series]?
      public var samples: [Sample]?
      public var damage: [String]?
      public var progress: Double?

      public init(series: [Series]? = nil, samples: [Sample]? = nil, damage: [String]? = nil, progress: Double? = nil) {
        self.series = series
        self.samples = samples
        self.damage = damage
        self.progress = progress
      }
    }
  }

  public enum PlotMethod: VarlinkMethod {
    public static let name = "io.vehicled.history.Plot"

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case device, property, start, end, points }
      public var device: String
      public var property: String
      public var start: Int
      public var end: Int
      public var points: Int

      public init(device: String, property: String, start: Int, end: Int, points: Int) {
        self.device = device
        self.property = property
        self.start = start
        self.end = end
        self.points = points
      }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case start, width, unit, points, damage }
      public var start: Int
      public var width: Int
      public var unit: String?
      public var points: [PlotPoint]
      public var damage: [String]

      public init(start: Int, width: Int, unit: String? = nil, points: [PlotPoint], damage: [String]) {
        self.start = start
        self.width = width
        self.unit = unit
        self.points = points
        self.damage = damage
      }
    }
  }

  public enum PeriodsMethod: VarlinkMethod {
    public static let name = "io.vehicled.history.Periods"

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case device, kind, start, end, limit }
      public var device: String?
      public var kind: String?
      public var start: Int?
      public var end: Int?
      public var limit: Int?

      public init(device: String? = nil, kind: String? = nil, start: Int? = nil, end: Int? = nil, limit: Int? = nil) {
        self.device = device
        self.kind = kind
        self.start = start
        self.end = end
        self.limit = limit
      }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case periods }
      public var periods: [Period]

      public init(periods: [Period]) {
        self.periods = periods
      }
    }
  }

  public enum PeriodMethod: VarlinkMethod {
    public static let name = "io.vehicled.history.Period"

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case number }
      public var number: Int

      public init(number: Int) {
        self.number = number
      }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case period, pauses, curve }
      public var period: Period
      public var pauses: [Pause]
      public var curve: [CurvePoint]

      public init(period: Period, pauses: [Pause], curve: [CurvePoint]) {
        self.period = period
        self.pauses = pauses
        self.curve = curve
      }
    }
  }

  public enum RecutMethod: VarlinkMethod {
    public static let name = "io.vehicled.history.Recut"

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case device, start, end }
      public var device: String?
      public var start: Int?
      public var end: Int?

      public init(device: String? = nil, start: Int? = nil, end: Int? = nil) {
        self.device = device
        self.start = start
        self.end = end
      }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case progress, periods }
      public var progress: Double?
      public var periods: Int?

      public init(progress: Double? = nil, periods: Int? = nil) {
        self.progress = progress
        self.periods = periods
      }
    }
  }

  public enum DeleteMethod: VarlinkMethod {
    public static let name = "io.vehicled.history.Delete"

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case device, property, start, end }
      public var device: String
      public var property: String?
      public var start: Int?
      public var end: Int?

      public init(device: String, property: String? = nil, start: Int? = nil, end: Int? = nil) {
        self.device = device
        self.property = property
        self.start = start
        self.end = end
      }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case damage }
      public var damage: [String]

      public init(damage: [String]) {
        self.damage = damage
      }
    }
  }

  public enum RenameMethod: VarlinkMethod {
    public static let name = "io.vehicled.history.Rename"
    public typealias Result = NoParameters

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case device, name }
      public var device: String
      public var name: String

      public init(device: String, name: String) {
        self.device = device
        self.name = name
      }
    }
  }

  public enum CheckMethod: VarlinkMethod {
    public static let name = "io.vehicled.history.Check"
    public typealias Parameters = NoParameters

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case progress, blocks, damage }
      public var progress: Double?
      public var blocks: Int?
      public var damage: [String]?

      public init(progress: Double? = nil, blocks: Int? = nil, damage: [String]? = nil) {
        self.progress = progress
        self.blocks = blocks
        self.damage = damage
      }
    }
  }

  public enum CompactMethod: VarlinkMethod {
    public static let name = "io.vehicled.history.Compact"
    public typealias Parameters = NoParameters

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case size, damage }
      public var size: Int
      public var damage: [String]

      public init(size: Int, damage: [String]) {
        self.size = size
        self.damage = damage
      }
    }
  }

  public enum ImportMethod: VarlinkMethod {
    public static let name = "io.vehicled.history.Import"

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case device, source, series, block, continues }
      public var device: String
      public var source: String
      public var series: [Series]
      public var block: String
      public var continues: Bool

      public init(device: String, source: String, series: [Series], block: String, continues: Bool) {
        self.device = device
        self.source = source
        self.series = series
        self.block = block
        self.continues = continues
      }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case samples }
      public var samples: Int

      public init(samples: Int) {
        self.samples = samples
      }
    }
  }

  public enum AlertsMethod: VarlinkMethod {
    public static let name = "io.vehicled.history.Alerts"
    public typealias Parameters = NoParameters

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case alerts }
      public var alerts: [Alert]

      public init(alerts: [Alert]) {
        self.alerts = alerts
      }
    }
  }
}
