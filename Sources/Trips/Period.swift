// The output of the detector: trips, charges and parked periods, and how they change.

/// A trip, a charge or a parked period.
public struct Period: Sendable, Equatable, Identifiable {
  public enum Kind: String, Sendable { case trip, charge, parking }

  /// Special circumstances of a period, such as missing data.
  public struct Marks: OptionSet, Sendable {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// The charge was derived from the battery current, because the vehicle provides no charging status.
    public static let derived = Marks(rawValue: 1)
    /// The period was derived from the odometer or the state of charge after a time without data. It took place between `start` and `end`.
    public static let unrecorded = Marks(rawValue: 2)
    /// More than a minute of data is missing within the period.
    public static let interrupted = Marks(rawValue: 4)
    /// The vehicle moved with the ignition off.
    public static let towed = Marks(rawValue: 8)
    /// Recording started during the period.
    public static let startUnknown = Marks(rawValue: 16)
    /// A clock step ended the period.
    public static let clockStep = Marks(rawValue: 32)
  }

  /// An interval in microseconds since the Unix epoch.
  public struct Pause: Sendable, Equatable {
    public var start: Int64
    public var end: Int64

    public init(start: Int64, end: Int64) { (self.start, self.end) = (start, end) }
  }

  /// Unique within one detector.
  public let id: Int
  public let kind: Kind
  /// Microseconds since the Unix epoch.
  public var start: Int64
  /// nil while the period is open.
  public var end: Int64?
  public var marks: Marks = []
  /// For a trip, the start of the first trip of its journey.
  public var journey: Int64?
  /// The stops during a trip, or the interruptions of a charge, that last at least `PeriodRules.minPause`.
  public var pauses: [Pause] = []
  public var statistics = Statistics()
}

/// A change of the periods of a device.
public enum Change: Sendable, Equatable {
  /// The period is new, or replaces the one with its `id`.
  case stored(Period)
  /// The period with this `id` no longer exists: it turned out to be part of another one, or too short.
  case removed(Int)
}
